"""Steps end when their tasks do: no daemon waits for word that does not come.

A daemon that leaves without word of everything says so in its log: that is what these tests look for,
and no clock.
"""

import pytest
from step import wait_for

GAVE_UP = "not acknowledged"


def wait_moved(step):
    """Until every node sends its data over a link of its own and no longer to its first connection."""

    def moved():
        return all(any("data goes to" in line for line in node.log()) for node in step.nodes)

    wait_for(moved, "links between nodes")


def check_nobody_gave_up(step):
    lines = [line for node in step.nodes for line in node.log() if GAVE_UP in line]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("nodes", [2, 4])
def test_a_step_ends_while_its_links_move(make_step, nodes):
    """One tick after the links have moved, ticks wait for what may come over the former ones."""
    step = make_step(nodes=nodes, period=1.0)
    step.start_nodes()
    wait_moved(step)
    tick = int(step.now()) + 1
    wait_for(lambda: step.now() > tick + 0.1, "the next tick")
    for node in step.nodes:
        node.add(3)
    step.finish()
    check_nobody_gave_up(step)
    step.check_stored_total()


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)], ids=str)
def test_nodes_end_one_after_the_other_while_links_move(make_step, order):
    """Each as soon as the one before has gone."""
    step = make_step(nodes=4, period=1.0)
    step.start_nodes()
    wait_moved(step)
    for index in order:
        node = step.at(index)
        node.add(5)
        node.leave()
        node.daemon.wait_exit()
    step.finish()
    check_nobody_gave_up(step)
    step.check_stored_total()


def test_a_daemon_that_gives_up_says_so(make_step):
    """The administrator reads in its log what it has no word of."""
    step = make_step(nodes=2, period=1.0)
    step.start_nodes()
    node = step.nodes[0]
    step.head.stop()
    try:
        node.leave()
        node.daemon.wait_exit()
    finally:
        step.head.go_on()
    wait_for(lambda: any(GAVE_UP in line for line in node.log()), "what it gave up")


def test_a_node_that_leaves_before_its_values_are_known_to_be_stored_says_so(make_step):
    step = make_step(nodes=2, period=1.0)
    step.start_nodes()
    node = step.nodes[0]
    step.head.stop()
    try:
        node.leave()
        node.daemon.wait_exit()
    finally:
        step.head.go_on()
    # The other one has word in time only of a head that hears it again.
    step.nodes[1].add(1)
    step.wait_total()
    step.finish()
    notes = step.stored()["job"]["notes"]
    unheard = [note for note in notes if "the end of its per-node series may be missing" in note]
    assert len(unheard) == 1 and node.host in unheard[0], notes


def test_a_head_that_is_not_reached_holds_up_nobody(make_step):
    """A firewall drops what the nodes send to srun's host: their steps end as if there was no telemetry."""
    step = make_step(nodes=2, period=1.0)
    step.start_head()
    step.head.stop()
    try:
        for node in step.nodes:
            node.start()
            node.application.wait_ready()
        for node in step.nodes:
            node.leave()
        for node in step.nodes:
            node.daemon.wait_exit()
            wait_for(lambda n=node: any("it has said nothing" in line for line in n.log()), "why it left")
            assert not any("left after" in line for line in node.log()), "\n".join(node.log())
    finally:
        step.head.go_on()
