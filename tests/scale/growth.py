"""Costs of a few nodes and of many, from a program of bench/: what must not grow with the number of nodes."""

import subprocess

FEW, MANY = 1_000, 32_000
RUNS = 3


def costs(program, few=FEW, many=MANY, runs=RUNS):
    """The least cost of each figure in some runs: a processor that others use as well makes work cost more, never less."""
    least = {}
    for _ in range(runs):
        done = subprocess.run([program, str(few), str(many)], capture_output=True, text=True, check=True, timeout=360 / runs)
        for line in done.stdout.splitlines():
            _, name, value, _ = line.split()
            least[name] = min(float(value), least.get(name, float("inf")))
    return least


def growth(cost, name, few=FEW, many=MANY):
    return cost[f"{name}_{many}"] / cost[f"{name}_{few}"]
