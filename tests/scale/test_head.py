"""A real head with 1,000 and with 32,000 nodes (bench/head.cc): what a node costs it does not grow with their number.

Work that looks at all nodes for each of them costs 32 times as much per node; memory that no cache holds any more costs
up to 2.5 times as much. What lies between the two is the bound.
"""

import os
import subprocess

import pytest

FEW, MANY = 1_000, 32_000
MOST_GROWTH = 6
PHASES = ("register", "parent", "goodbye", "close", "takeover")


@pytest.fixture(scope="module")
def cost():
    done = subprocess.run(
        [os.environ["BENCH_HEAD"], str(FEW), str(MANY)], capture_output=True, text=True, check=True, timeout=240
    )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("figure ")]
    return {name: float(value) for _, name, value, _ in lines}


@pytest.mark.parametrize("kind", ["", "_switches"])
@pytest.mark.parametrize("phase", [*PHASES, "tick"])
def test_what_a_node_costs_does_not_grow(cost, phase, kind):
    name = phase + kind
    growth = cost[f"{name}_{MANY}"] / cost[f"{name}_{FEW}"]
    assert growth <= MOST_GROWTH, cost
