"""Conclusions about a finished step of 500 and of 8,000 nodes, and a heatmap of it (bench/insight_steps.cc): what a node costs
does not grow with their number. Where the profile was read the more often the more nodes there were, a node cost 4.9 times as
much among stragglers, and 13 times as much in a heatmap; the energy of 8,000 nodes did not fit into 6 GB."""

import os

import growth
import pytest

FEW, MANY = 500, 8_000


@pytest.fixture(scope="module")
def cost():
    return growth.Costs(os.environ["BENCH_INSIGHT_STEPS"], FEW, MANY)


@pytest.mark.parametrize("what, most", [("stragglers", 2.5), ("budget", 2.5), ("heatmap", 6)])
def test_what_a_node_costs_does_not_grow(cost, what, most):
    cost.check_growth(what, most)


def test_energy_costs_less_than_stragglers(cost):
    """Its ticks are longer the more nodes there are, so that a node of few costs more than one of many."""
    assert cost[f"energy_{MANY}"] <= cost[f"stragglers_{MANY}"], cost
