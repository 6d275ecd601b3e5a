"""A real inner node in steps of 1,000 and of 32,000 nodes (bench/inner_node.cc): it has as many children, and a tick and
their end cost the same. The first ticks tell the nodes below, once, and may cost more."""

import os

import growth
import pytest


@pytest.fixture(scope="module")
def cost():
    return growth.Costs(os.environ["BENCH_INNER_NODE"])


@pytest.mark.parametrize("kind", ["", "_switches"])
@pytest.mark.parametrize("phase, most", [("tick", 1.3), ("end", 2)])
def test_what_children_cost_does_not_grow(cost, phase, most, kind):
    cost.check_growth(phase + kind, most)
