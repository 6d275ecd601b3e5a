"""The head dies, or is out of reach; nodes come back to it, or to the one that goes on in its place."""

import os
import signal

import pytest
from step import HEALS_WITHIN, wait_for


@pytest.fixture
def counted(make_step):
    """A step whose nodes know who stands by, and whose record knows the nodes."""
    step = make_step(nodes=6)
    step.start_with_successors()
    return step


def end(step):
    """All that live leave; the acting head ends by itself when they are gone."""
    for node in step.alive():
        node.leave()
    for node in step.nodes:
        if not node.lost:
            node.daemon.wait_exit(HEALS_WITHIN)
    wait_for(lambda: not step.heads(), "the end of the acting head")


def check_goes_on(step, fault, but=()):
    """Somebody else is head, has all that live in its ticks, and loses nothing."""
    acting, pid = step.wait_acting(but)
    assert acting.alive
    rows = step.check_whole_since(fault, 2 * HEALS_WITHIN)
    step.wait_total()
    return acting, pid, rows


def test_the_heads_death_ends_nothing(counted):
    """The topmost node goes on as acting head; the profile has it all when it is taken in."""
    step = counted
    fault = step.now()
    step.head.kill()
    for node in step.nodes:
        node.add(1)
    acting, _, rows = check_goes_on(step, fault)
    assert step.index(acting) == 0
    # What it has begins before it was there: nodes had kept what was not stored.
    assert rows[0][0] < fault
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    end(step)
    stored = step.stored_rows()
    step.check_no_gap(stored)
    step.check_stored_total()
    job = step.check_profile()
    assert job["state"] == "completed", job["notes"]
    assert any("went on as acting head" in note for note in job["notes"]), job["notes"]
    assert job["coverage"]["got"] + job["coverage"]["skipped"] == job["coverage"]["expected"]


def test_counters_of_nodes_that_had_ended_stay(counted):
    """What a node has counted that left before the head died, the acting one has as well."""
    step = counted
    gone = step.at(5)
    gone.add(1000)
    gone.leave()
    gone.daemon.wait_exit(HEALS_WITHIN)
    step.wait_stored()
    fault = step.now()
    step.head.kill()
    check_goes_on(step, fault)
    end(step)
    step.check_stored_total()


def test_without_a_common_file_system(make_step):
    """The acting head learns from the nodes who they are, and stores where it can."""
    step = make_step(nodes=5, own_archives=True)
    step.start()
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_total()
    step.wait_successors()
    fault = step.now()
    step.head.kill()
    acting, _, _ = check_goes_on(step, fault)
    end(step)
    step.archive = step.archive_of(acting.host)
    job = step.check_profile()
    step.check_stored_total()
    assert {info["host"] for info in job["nodes"]} == {node.host for node in step.nodes}
    assert any("knows only the nodes" in note for note in job["notes"]), job["notes"]


def test_head_and_topmost_node_die_together(counted):
    step = counted
    fault = step.now()
    step.at(0).kill()
    step.head.kill()
    acting, _, _ = check_goes_on(step, fault)
    assert step.index(acting) == 1
    end(step)
    step.check_profile()
    step.check_stored_total()


def test_a_state_that_cannot_be_read_is_told(counted):
    """The acting head goes on without it, and says what it does not know."""
    step = counted
    step.wait_stored()
    (state,) = (step.archive / "live").glob("*/state")
    os.kill(step.head.pid, signal.SIGSTOP)
    state.unlink()
    state.mkdir()
    fault = step.now()
    step.kill_head()
    check_goes_on(step, fault)
    end(step)
    notes = step.stored()["job"]["notes"]
    assert any("does not know what nodes had counted that ended before" in note for note in notes), notes


def test_alarms_are_what_they_were_made(make_step):
    """What was added and removed while the step ran is known to whoever goes on."""
    step = make_step(nodes=3)
    step.start()
    rule = 'node_load1 any > 1000 for 5s critical message "{value}"'
    step.change_alarm("add", name="mine", rule=rule)
    step.change_alarm("add", name="passing", rule="node_load1 > 1000")
    step.change_alarm("del", name="passing")
    for name in ("idle_node", "straggler"):
        step.change_alarm("del", name=name)
        changed = step.alarms()
        assert changed["mine"] == rule and not {"passing", name} & set(changed)
        step.wait_successors()
        step.wait_stored()
        step.kill_head()
        step.wait_acting()
        assert step.alarms() == changed
    end(step)


def test_a_successor_whose_parent_waits_for_it(make_step):
    """Once the first node is gone, node 2 sends to a leaf that took its place: that one has lost the
    head as well, and waits for node 2 to go on."""
    step = make_step(nodes=9)
    step.start()
    for node in step.nodes:
        node.add(1)
    step.wait_whole()
    step.wait_total()
    step.at(0).kill()
    step.wait_whole()
    step.wait_successors()
    step.wait_stored()
    fault = step.now()
    step.at(1).kill()
    step.kill_head()
    acting, _, _ = check_goes_on(step, fault)
    assert step.index(acting) == 2
    end(step)
    step.check_stored_total()


def test_acting_heads_die_too(counted):
    step = counted
    fault = step.now()
    step.head.kill()
    _, first, _ = check_goes_on(step, fault)
    step.wait_successors()
    fault = step.now()
    os.kill(first, signal.SIGKILL)
    for node in step.nodes:
        node.add(1)
    check_goes_on(step, fault, but=(first,))
    end(step)
    stored = step.stored_rows()
    step.check_no_gap(stored)
    step.check_profile()
    step.check_stored_total()


def test_an_acting_head_whose_node_is_done_hands_over(counted):
    """It would hold its step's control group there; the others' record goes on with the next."""
    step = counted
    fault = step.now()
    step.head.kill()
    acting, first, _ = check_goes_on(step, fault)
    step.wait_successors()
    fault = step.now()
    acting.leave()
    acting.daemon.wait_exit(3.0)
    assert first not in step.heads(), "it ends with its node's daemon"
    for node in step.alive():
        node.add(1)
    second, _, _ = check_goes_on(step, fault, but=(first,))
    assert second is not acting
    end(step)
    job = step.check_profile()
    assert not any("missing from the totals" in note for note in job["notes"]), job["notes"]
    step.check_no_gap(step.stored_rows())
    step.check_stored_total()


def test_the_head_dies_while_nodes_leave(counted):
    """What they hold is delivered to another one, within the time they have."""
    step = counted
    for node in step.nodes:
        node.application.add(1)
        step.injected += 1
    for node in step.nodes[3:]:
        node.leave()
    step.head.kill()
    for node in step.nodes[:3]:
        node.leave()
    for node in step.nodes:
        node.daemon.wait_exit(HEALS_WITHIN)
    wait_for(lambda: not step.heads(), "the end of the acting head")


def test_a_broken_connection_to_the_head(counted):
    """It is made again; nobody is lost, no tick has a gap and nothing is counted twice."""
    step = counted
    fault = step.now()
    for index in (0, 2, 5):
        step.at(index).space.reset_connections(step.address)
        step.at(index).add(5)
    step.check_whole_since(fault)
    step.wait_total()
    step.finish()
    stored = step.stored_rows()
    step.check_no_gap(stored)
    job = step.check_profile()
    step.check_stored_total()
    assert len(job["nodes"]) == step.size
    assert not any("lost" in note for note in job["notes"]), job["notes"]


def test_a_node_comes_again(counted):
    """Its daemon is killed and started anew, as on a node that was rebooted: counted once."""
    step = counted
    node = step.at(2)
    node.kill()
    node.start()
    fault = step.now()
    node.application.wait_ready()
    node.add(3)
    step.check_whole_since(fault)
    step.wait_total()
    step.finish()
    job = step.check_profile()
    step.check_stored_total()
    assert any("started anew" in note and node.host in note for note in job["notes"]), job["notes"]


def test_a_node_that_has_just_come_again_when_the_head_dies(counted):
    """The acting head has read of the daemon before it only."""
    step = counted
    node = step.at(3)
    node.kill()
    node.start()
    node.application.wait_ready()
    step.wait_successors()
    fault = step.now()
    step.kill_head()
    check_goes_on(step, fault)
    end(step)
    job = step.check_profile()
    assert [info["host"] for info in job["nodes"]].count(node.host) == 2
    assert any("started anew" in note for note in job["notes"]), job["notes"]


def test_a_third_of_the_nodes_comes_again(make_step):
    step = make_step(nodes=9)
    step.start()
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_total()
    again = [step.at(index) for index in (0, 3, 8)]
    for node in again:
        node.kill()
    for node in again:
        node.start()
    fault = step.now()
    for node in again:
        node.application.wait_ready()
        node.add(1)
    step.check_whole_since(fault, 2 * HEALS_WITHIN)
    step.wait_total()
    step.finish()
    step.check_profile()
    step.check_stored_total()
