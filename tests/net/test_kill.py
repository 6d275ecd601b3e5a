"""Nodes die: what they counted stays, what is missing is told, and the others go on."""

import pytest

# With fanout 2, of 8 nodes: 0 and 1 are the head's children; 2 and 3 are 0's, 4 and 5 are 1's, 6 and 7
# are 2's.
VICTIMS = {
    "leaf": [7],
    "inner": [2],
    "top": [0],
    "both_tops": [0, 1],
    "a_whole_branch": [0, 2, 6],
    "brothers": [6, 7],
    "third": [1, 3, 6],
}


def counting(make_step, nodes, **options):
    """A step that is whole and has counted something different on each node."""
    step = make_step(nodes=nodes, **options)
    step.start()
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_total()
    return step


def test_nobody_dies(make_step):
    step = counting(make_step, 6)
    assert [step.parent(i) for i in range(6)] == [None, None, 0, 0, 1, 1]
    rows = step.rows()
    step.finish()
    assert step.check_profile(rows)["state"] == "completed"
    step.check_stored_total()


@pytest.mark.parametrize("victims", VICTIMS.values(), ids=VICTIMS.keys())
def test_killed(make_step, victims):
    step = counting(make_step, 8)
    fault = step.now()
    for victim in victims:
        step.at(victim).kill()
    rows = step.check_whole_since(fault)
    step.finish()
    step.check_profile(rows)
    step.check_totals(rows, fault)
    step.check_stored_total()


def test_counting_goes_on_after_a_death(make_step):
    step = counting(make_step, 4)
    step.at(1).kill()
    for node in step.alive():
        node.add(1)
    step.wait_total()
    step.finish()
    step.check_profile()
    step.check_stored_total()
