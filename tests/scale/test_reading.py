"""Profiles of steps of 1,000 and of 16,000 nodes, as a head leaves them, read as web server and commands do (bench/reading.cc):
what a node costs does not grow with their number, and what nobody has asked for costs next to nothing.

Who names every series of every node to find a few needs 60 kB and twenty times the time for a node, who lists them all 280
kB. Who decodes all columns for a table of one metric pays 4.2 times as much as for all rows once. Who decodes joined blocks
again for each node in them pays five times as much for a row of 32,000 nodes as of 1,000.
"""

import os

import growth
import pytest

MANY = 16_000

# The most that a question needs of memory, in kB for a node, and of CPU time, by that for reading all rows.
QUESTIONS = {
    "one_host": (6, 0.7),
    "again": (6, 0.35),
    "all_hosts": (12, 3),
    "counted": (14, 4.5),
    "names": (6, 1.2),
    "lookup": (6, 0.7),
    "rows": (8, None),
    "table": (14, 3.8),
}
# Of many nodes a table has spans of few rows, so that a block is read for each of its four rows again.
GROWTH = {"table": 4}


@pytest.fixture(scope="module")
def cost():
    # It asks each question several times itself; others may have had the processor's caches meanwhile.
    return growth.Costs(os.environ["BENCH_READING"], many=MANY)


@pytest.mark.parametrize("stored", ["joined", "apart"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_node_costs_does_not_grow(cost, question, stored):
    cost.check_growth(f"{question}_{stored}", GROWTH.get(question, 3))


@pytest.mark.parametrize("stored", ["joined", "apart"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_not_asked_for_costs_little(cost, question, stored):
    memory, share = QUESTIONS[question]
    assert cost[f"{question}_{stored}_memory_{MANY}"] <= memory, cost
    if share is None:
        return
    cost.check(lambda: cost[f"{question}_{stored}_{MANY}"] <= share * cost[f"rows_{stored}_{MANY}"])
