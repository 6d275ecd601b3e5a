"""The head dies, and nodes come back: what is promised for these."""

import pytest
from step import HEALS_WITHIN, promise, wait_for


@pytest.fixture
def counted(make_step):
    step = make_step(nodes=6)
    step.start()
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_total()
    return step


def test_the_heads_death_does_not_hang_anybody(counted):
    """Whatever becomes of the telemetry, the nodes leave in their time when their tasks are done."""
    step = counted
    step.head.kill()
    for node in step.nodes:
        node.application.add(1)
    for node in step.nodes:
        node.leave()
    for node in step.nodes:
        node.daemon.wait_exit(HEALS_WITHIN)


def test_the_heads_death_ends_nothing(counted):
    """The topmost node goes on as acting head; the profile has it all when it is taken in."""
    step = counted
    step.head.kill()
    for node in step.nodes:
        node.add(1)
    try:
        wait_for(lambda: any(node.daemon.poll() for node in step.nodes), "", 0.5)
        promise(False, "death of the head", "daemons ended with it")
    except AssertionError as nobody_ended:
        if "in vain" not in str(nobody_ended):
            raise
    for node in step.nodes:
        node.leave()
    for node in step.nodes:
        node.daemon.wait_exit(HEALS_WITHIN)
    promise(step.stored_total() == step.injected, "death of the head", "the stored total")


def test_a_node_comes_again(counted):
    """Its daemon is killed and started anew, as on a node that was rebooted: counted once."""
    step = counted
    node = step.at(2)
    node.kill()
    node.start()
    fault = step.now()
    try:
        node.application.wait_ready()
        node.add(3)
        step.check_whole_since(fault)
    except AssertionError as error:
        promise(False, "restarts", str(error))
    step.wait_total()
    step.finish()
    step.check_stored_total()
