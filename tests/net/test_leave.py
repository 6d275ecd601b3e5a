"""Nodes whose tasks are done leave, in any order: nothing is lost and no tick has a gap for it."""

import itertools
import os

import pytest
from step import HEALS_WITHIN, story, wait_for

# All 24 with SONDE_NET_ALL=1; else those of 0 and its children, with 1 the first or the last to go.
ORDERS = list(itertools.permutations(range(4)))
if not os.environ.get("SONDE_NET_ALL"):
    FAMILY = itertools.permutations((0, 2, 3))
    ORDERS = [(1, *order) if i % 2 else (*order, 1) for i, order in enumerate(FAMILY)]


@pytest.mark.parametrize("order", ORDERS, ids=["".join(map(str, order)) for order in ORDERS])
def test_leaving_one_after_the_other(make_step, order):
    """0 and 1 are the head's children, 2 and 3 are 0's."""
    step = make_step(nodes=4)
    step.start()
    for node in step.nodes:
        node.add(100 + node.id)
    rows = []
    for index in order:
        node = step.at(index)
        node.add(1000 * (1 + index))  # at the last moment: the last word has it
        node.leave()
        node.daemon.wait_exit(HEALS_WITHIN)
        if step.alive():
            step.wait_total()
            rows = step.rows()
    step.finish()
    coverage = step.check_profile()["coverage"]
    step.check_stored_total()
    # A machine that is too busy skips ticks, and the profile says for how many.
    assert gaps(rows) <= coverage["skipped"], story(rows, rows[0][0])
    missing = coverage["expected"] - coverage["got"] - coverage["skipped"]
    assert missing == 0, coverage


def gaps(rows):
    """How many nodes are missing in rows, since all were there, that are in a later one."""
    counts = [count for _, count, _ in rows]
    counts = counts[counts.index(4) :]
    return sum(max(counts[i:]) - count for i, count in enumerate(counts))


def test_all_at_once(make_step):
    step = make_step(nodes=12)
    step.start()
    for node in step.nodes:
        node.add(7)
    report = step.finish()
    assert "84" in report
    job = step.check_profile()
    step.check_stored_total()
    assert job["state"] == "completed"
    assert all(info["left"] for info in job["nodes"])


def test_a_parent_leaves_that_has_to_wait_for_a_stopped_child(make_step):
    """The child does not hand over in time; the parent leaves within its time all the same."""
    step = make_step(nodes=4)
    step.start_counting()
    parent, child = step.at(0), step.at(2)
    child.daemon.stop()
    parent.leave()
    parent.daemon.wait_exit(HEALS_WITHIN)
    child.daemon.go_on()
    step.wait_whole()
    child.add(5)
    step.wait_total()
    step.finish()
    step.check_profile()
    step.check_stored_total()


def test_a_node_leaves_while_its_parent_dies(make_step):
    step = make_step(nodes=8)
    step.start_counting()
    step.at(0).kill()
    child = step.at(2)
    child.add(50)
    child.leave()
    child.daemon.wait_exit(HEALS_WITHIN)
    fault = step.now()
    step.check_whole_since(fault)
    wait_for(lambda: step.rows()[-1][2] >= step.injected - 1, "the child's last word")
    step.finish()
    step.check_profile()
    step.check_stored_total()
