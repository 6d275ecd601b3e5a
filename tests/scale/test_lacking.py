"""Rows of 1,000 and of 32,000 nodes that lack one (bench/lacking.cc): the alarms look at that one, and not at all.

In a large step somebody may be late at most ticks.
"""

import os

import growth


def test_what_alarms_cost_in_a_row_that_lacks_a_node_does_not_grow():
    cost = growth.costs(os.environ["BENCH_LACKING"])
    assert growth.growth(cost, "alarms") <= 3, cost
