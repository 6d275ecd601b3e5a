"""A real head with 1,000 and with 32,000 nodes (bench/head.cc): what a node or a tick costs does not grow with their number.

Work that looks at all nodes for each of them costs 32 times as much per node. Memory that no cache holds any more costs
up to 3 times as much per node; a tick looks at the head's children alone, whose number stays.
"""

import os

import growth
import pytest

PER_NODE = ("register", "parent", "first_ticks", "block", "goodbye", "close", "takeover")


@pytest.fixture(scope="module")
def cost():
    return growth.Costs(os.environ["BENCH_HEAD"])


@pytest.mark.parametrize("kind", ["", "_switches"])
@pytest.mark.parametrize("phase", PER_NODE)
def test_what_a_node_costs_does_not_grow(cost, phase, kind):
    cost.check_growth(phase + kind, 5)


@pytest.mark.parametrize("kind", ["", "_switches"])
def test_what_a_tick_costs_does_not_grow(cost, kind):
    cost.check_growth("tick" + kind, 1.3)
