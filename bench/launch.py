#!/usr/bin/env python3
# What telemetry adds to `srun -N4 hostname`, and -N1: level 2 and level 0 against no plugin, taking turns

import statistics
import subprocess
import sys
import time

from private_cluster import cluster, environment, figure, our_plugstack

PAIRS = 40
WARM_UP = 3


def srun(env, nodes, *options):
    start = time.perf_counter()
    command = ["srun", f"-N{nodes}", *options, "hostname"]
    subprocess.run(command, env=env, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


def measure(bare, ours, nodes, name):
    cases = {
        "none": lambda: srun(bare, nodes),
        "level0": lambda: srun(ours, nodes),
        "level2": lambda: srun(ours, nodes, "--telemetry-level=2"),
    }
    times = {case: [] for case in cases}
    for turn in range(PAIRS + WARM_UP):
        # Each comes as often behind a step of level 2, whose head archives while the next one runs.
        first = turn % len(cases)
        for case in [*cases, *cases][first : first + len(cases)]:
            spent = cases[case]()
            if turn >= WARM_UP:
                times[case].append(spent)
    for case, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        figure(f"{name}.{case}_median", median, "ms", 1)
        print(f"  quartiles {low:.1f} to {high:.1f} ms over {PAIRS} runs")
    for case in ("level0", "level2"):
        # Pair by pair, so that what the machine did meanwhile weighs on both.
        added = [b - a for a, b in zip(times["none"], times[case])]
        low, median, high = statistics.quantiles(added, n=4)
        figure(f"{name}.{case}_added", median, "ms", 1)
        print(f"  quartiles of the pairs {low:.1f} to {high:.1f} ms")


def main():
    with cluster("") as without, cluster(our_plugstack()) as with_plugin:
        bare, ours = environment(without), environment(with_plugin)
        measure(bare, ours, 4, "launch")
        measure(bare, ours, 1, "launch.one_node")


if __name__ == "__main__":
    sys.exit(main())
