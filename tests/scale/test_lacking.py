"""Rows of 1,000 and of 32,000 nodes that lack one (bench/lacking.cc): the alarms look at that one, and not at all; who keeps
which nodes are in the rows looks at all of them no more often than they change. Else a row costs some 32 times as much.

In a large step somebody may be late at most ticks.
"""

import os

import growth
import pytest


@pytest.fixture(scope="module")
def cost():
    return growth.Costs(os.environ["BENCH_LACKING"])


@pytest.mark.parametrize("what, most", [("alarms", 3), ("presence", 8)])
def test_what_a_row_costs_that_lacks_a_node_does_not_grow(cost, what, most):
    cost.check_growth(what, most)
