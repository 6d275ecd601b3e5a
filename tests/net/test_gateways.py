"""A step whose nodes come to the head through gateways, as in one of a hundred thousand nodes: here nine,
of which the first three are gateways."""

import pytest
from step import BLACK_HOLE_HEALS_WITHIN, HEALS_WITHIN, wait_for

NODES = 9
GATEWAYS = 3
GATEWAY_ANSWERS_WITHIN = 2.25  # or its nodes leave it


def at_the_head(step):
    """The addresses of the nodes that have connections of their own to the head."""
    established, _ = step.head.connections()
    return sorted({remote for port, remote, _ in established if port == step.port})


def gateway_of(step, node):
    """Among the step's nodes; None: it has none now."""
    ways = [
        other
        for other in step.nodes[:GATEWAYS]
        if other.alive
        for port, remote, _ in other.daemon.connections()[0]
        if remote == node.address and port in ports_of(other)
    ]
    return ways[0] if ways else None


def ports_of(gateway):
    """At which it lets nodes through: those of the range that it begins with, below the kernel's own."""
    return {port for port in gateway.daemon.connections()[1] if 16384 <= port <= 32767}


def through_gateways(step):
    return at_the_head(step) == sorted(node.address for node in step.nodes[:GATEWAYS])


@pytest.fixture
def step(make_step):
    step = make_step(nodes=NODES, gateways=True)
    step.start_nodes()
    wait_for(lambda: through_gateways(step), "connections of gateways alone")
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_whole()
    step.wait_total()
    return step


def check_end(step):
    step.finish()
    step.check_profile()
    step.check_stored_total()
    return step.stored()["job"]


def test_gateways_and_nodes_of_the_next_release_are_as_any(make_step):
    step = make_step(nodes=NODES, gateways=True, next_release=[1, 3, 5])
    step.start_nodes()
    wait_for(lambda: through_gateways(step), "connections of gateways alone")
    step.wait_whole()
    check_end(step)


def test_the_head_has_connections_of_gateways_alone(step):
    """The profile is as complete as any, and nobody has noticed."""
    ways = [gateway_of(step, node) for node in step.nodes[GATEWAYS:]]
    assert [way.id for way in ways] == [0, 1, 2, 0, 1, 2]
    step.check_no_gap(step.rows())
    job = check_end(step)
    coverage = job["coverage"]
    assert coverage["got"] + coverage["skipped"] == coverage["expected"], coverage
    assert not [note for note in job["notes"] if "gateway" in note or "back" in note], job["notes"]


def test_a_gateway_dies(step):
    """Its nodes come to the head by themselves."""
    gone = step.nodes[1]
    fault = step.now()
    gone.kill()
    step.check_whole_since(fault, 2 * HEALS_WITHIN)
    behind = [step.nodes[4].address, step.nodes[7].address]
    gateways = [step.nodes[0].address, step.nodes[2].address]
    wait_for(lambda: at_the_head(step) == sorted(gateways + behind), "its nodes at the head")
    for node in step.alive():
        node.add(1)
    step.wait_total()
    check_end(step)


def hangs(step, gateway):
    """Its daemon is there and does nothing; its kernel takes what the others send."""
    gateway.daemon.stop()
    gateway.lost = True  # for the time being


def told_of(step, gateway):
    """Whether the profile says that nodes have left that gateway."""
    return any(gateway.host in note and "did not answer" in note for note in step.profile()["notes"])


def test_a_gateway_hangs(step):
    """Its nodes ask whether it is there, and come to the head by themselves: at once if they have something
    to say, else when they have long heard nothing. They lose no sample, and the profile tells of it."""
    hung = step.nodes[1]
    behind = [step.nodes[4], step.nodes[7]]
    fault = step.now()
    hangs(step, hung)
    for node in step.alive():
        node.add(1)
    step.check_whole_since(fault, BLACK_HOLE_HEALS_WITHIN + GATEWAY_ANSWERS_WITHIN)
    # One of them has no reason to say anything.
    wait_for(lambda: all(node.address in at_the_head(step) for node in behind), "its nodes at the head")
    step.wait_total()
    wait_for(lambda: told_of(step, hung), lambda: f"notes: {step.profile()['notes']}")
    hung.lost = False
    hung.daemon.go_on()
    went_on = step.now()
    step.check_whole_since(went_on, BLACK_HOLE_HEALS_WITHIN)
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    job = check_end(step)
    assert not [info["host"] for info in job["nodes"] if info["lost"]], job["nodes"]


def test_a_gateway_hangs_at_the_steps_end(make_step):
    """Its nodes say goodbye to the head itself, within the time that they have. The gateway is nobody's
    parent here."""
    step = make_step(nodes=NODES, gateways=True, fanout=16)
    step.start_nodes()
    wait_for(lambda: gateway_of(step, step.nodes[4]) is step.nodes[1], "a gateway")
    step.wait_whole()
    hung = step.nodes[1]
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    hangs(step, hung)
    report = step.finish()
    job = step.stored()["job"]
    unheard = [info["host"] for info in job["nodes"] if not info["left"] or info["lost"]]
    assert unheard == [hung.host], (job["nodes"], report)
    assert not [note for note in job["notes"] if "without word" in note], job["notes"]
    step.check_stored_total()


def test_a_gateway_hangs_before_its_nodes_come(make_step):
    """It listens, so that they connect, and nobody answers."""
    step = make_step(nodes=NODES, gateways=True)
    step.start_nodes(GATEWAYS)
    hung = step.nodes[1]
    wait_for(lambda: all(ports_of(node) for node in step.nodes[:GATEWAYS]), "the gateways' ports")
    hangs(step, hung)
    for node in step.nodes[GATEWAYS:]:
        node.start()
    behind = [step.nodes[4].address, step.nodes[7].address]
    wait_for(lambda: set(behind) <= set(at_the_head(step)), "its nodes at the head", 10)
    hung.lost = False
    hung.daemon.go_on()
    step.wait_registered(step.nodes)
    step.wait_whole()
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    check_end(step)


def test_a_gateway_ends_before_the_others(step):
    """Its nodes take another gateway; it is gone as soon as any other node."""
    gone = step.nodes[1]
    ended = step.now()
    gone.leave()
    gone.daemon.wait_exit(HEALS_WITHIN)
    step.check_whole_since(ended)
    others = [step.nodes[0], step.nodes[2]]
    for node in (step.nodes[4], step.nodes[7]):
        wait_for(lambda node=node: gateway_of(step, node) in others, "another gateway")
    assert at_the_head(step) == sorted(node.address for node in others)
    for node in step.alive():
        node.add(1)
    step.wait_total()
    job = check_end(step)
    assert not [info for info in job["nodes"] if info["lost"]], job["nodes"]


def test_without_its_gateway_a_node_comes_by_itself(make_step):
    """Packets to the gateway vanish."""
    step = make_step(nodes=NODES, gateways=True)
    alone = step.nodes[5]
    alone.cut(step.nodes[2])
    step.start_nodes()
    direct = sorted(node.address for node in [*step.nodes[:GATEWAYS], alone])
    assert at_the_head(step) == direct
    step.wait_whole()
    check_end(step)


def test_a_gateway_loses_the_head_for_a_moment(step):
    """It comes back, and its nodes by themselves; nothing is missing."""
    step.reset_head_connections(step.nodes[2])
    behind = [step.nodes[5].address, step.nodes[8].address]
    gateways = [node.address for node in step.nodes[:GATEWAYS]]
    wait_for(lambda: at_the_head(step) == sorted(gateways + behind), "all of them at the head")
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    check_end(step)


def test_the_head_dies(step):
    """All find the acting head."""
    step.wait_successors()
    wait_for(step.described, "a record of all nodes")
    fault = step.now()
    step.kill_head()
    for node in step.nodes:
        node.add(1)
    acting, _ = step.wait_acting()
    assert step.index(acting) == 0
    step.check_whole_since(fault, 2 * HEALS_WITHIN)
    step.wait_total()
    step.finish()
    step.check_stored_total()
