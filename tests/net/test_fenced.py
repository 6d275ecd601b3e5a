"""A head that was out of reach comes back, and another one has gone on in its place."""

import time

import pytest
from step import HEALS_WITHIN, wait_for

# A node looks past a head that does not answer 6 s after the kernel has given the connection up (10 s).
FENCED_WITHIN = 10.0
PERIOD = 0.2
# Longer than it takes until an acting head is there, if nodes look for one.
STOPPED = 20.0


@pytest.fixture
def counted(make_step):
    """A step whose nodes know who stands by, and whose record knows the nodes."""
    step = make_step(nodes=6, period=PERIOD)
    step.start_with_successors()
    return step


def count(step):
    for node in step.nodes:
        node.add(1)


def check_fenced(step):
    """The former head ends, with its job untouched, and says who goes on. Gives the node whose acting head
    is left: where two nodes had gone on, that of the first in the list."""
    report = step.head.report()
    assert "another head" in report and any(node.host in report for node in step.nodes), report
    assert f"sonde show {step.name}" in report, report
    step.head.wait_exit(FENCED_WITHIN)
    wait_for(lambda: len(step.heads()) == 1, "one head")
    return step.wait_acting()[0]


def check_profile(step, acting):
    """What the two heads have written is one profile, complete and right to the last sample."""
    for node in step.alive():
        node.leave()
    for node in step.nodes:
        node.daemon.wait_exit(HEALS_WITHIN)
    wait_for(lambda: not step.heads(), "the end of the acting head")
    job = step.check_profile()
    notes = job["notes"]
    assert job["state"] == "completed", notes
    assert not [info["host"] for info in job["nodes"] if info["lost"]], notes
    assert any(f"The daemon on {acting.host} went on as acting head" in note for note in notes), notes
    assert any("left the step" in note.lower() and "came back" in note for note in notes), notes
    assert not any("was killed" in note or "end of the step is not known" in note for note in notes), notes
    rows = step.stored_rows()
    assert len({at for at, _, _ in rows}) == len(rows), "each tick once"
    assert max(count for _, count, _ in rows) == step.size
    totals = [total for _, _, total in rows]
    assert totals == sorted(totals), "no counter falls where one head goes on for another"
    assert totals[-1] == step.injected
    step.check_stored_total()
    return job


def check_one_goes_on(step):
    """Once the former head is in reach again."""
    step.mend_head()
    acting = check_fenced(step)
    fault = step.now()
    count(step)
    step.check_whole_since(fault, 2 * HEALS_WITHIN)
    step.wait_total()
    check_profile(step, acting)


def test_a_head_that_was_out_of_reach_is_fenced(counted):
    step = counted
    step.cut_head()
    count(step)
    step.wait_acting()
    check_one_goes_on(step)


def test_nodes_that_stayed_with_the_former_head_go_to_the_acting_one(counted):
    """The half that stands by has lost the head, the other half has not, and each has its own."""
    step = counted
    step.cut_head([step.at(index) for index in (0, 1, 2)])
    count(step)
    step.wait_acting()
    count(step)
    check_one_goes_on(step)


def test_a_head_that_was_stopped_learns_what_it_has_missed(counted):
    """As on a host that hangs: it runs again, and for it no time has passed."""
    step = counted
    step.head.stop()
    step.cut_head()
    count(step)
    step.wait_acting()
    step.mend_head()
    step.head.go_on()
    acting = check_fenced(step)
    count(step)
    step.wait_total()
    check_profile(step, acting)


def test_a_head_that_was_only_stopped_goes_on(counted):
    """Its kernel takes what the nodes send, so nobody goes on in its place, however long that lasts."""
    step = counted
    step.head.stop()
    count(step)
    time.sleep(STOPPED)
    assert step.heads() == [step.head.pid]
    step.head.go_on()
    fault = step.now()
    count(step)
    step.wait_total()
    step.check_whole_since(fault, 2 * HEALS_WITHIN)
    step.finish()
    job = step.check_profile()
    assert job["state"] == "completed", job["notes"]
    step.check_stored_total()


def test_a_step_that_ends_before_its_head_is_back(counted):
    """Nobody tells the former head of the other one: what that one knows of the end counts."""
    step = counted
    step.cut_head()
    count(step)
    step.wait_acting()
    wait_for(lambda: len(step.heads()) == 2, "one acting head")
    step.wait_acting()
    step.wait_whole()
    step.wait_total()
    for node in step.alive():
        node.leave()
    for node in step.nodes:
        node.daemon.wait_exit(HEALS_WITHIN)
    wait_for(lambda: step.heads() == [step.head.pid], "the end of the acting head")
    step.head.finish()
    step.head.report()
    step.head.wait_exit()
    job = step.stored()["job"]
    assert job["state"] == "completed", job["notes"]
    step.check_stored_total()


def test_of_two_acting_heads_the_first_in_the_list_has_the_step(counted):
    """The topmost node reaches neither the head nor the other nodes, and goes on alone; so does the next
    one, with the others."""
    step = counted
    first = step.at(0)
    step.cut_head()
    for node in step.nodes:
        if node is not first:
            first.cut(node)
            node.cut(first)
    count(step)
    wait_for(lambda: len(step.heads()) == 3, "two acting heads", 60)
    step.wires.reset()
    acting = check_fenced(step)
    assert acting is first
    fault = step.now()
    count(step)
    step.check_whole_since(fault, 2 * HEALS_WITHIN)
    step.wait_total()
    check_profile(step, acting)
