"""Links that lose, delay and repeat packets, or carry nothing at all one way, processes that stand
still, and clocks that differ. The daemons still live, so nothing of what was counted may be missing at
the end."""

import pytest
from step import BLACK_HOLE_HEALS_WITHIN, story, wait_for

UP, DOWN = "up", "down"


@pytest.fixture
def counted(make_step):
    """A step of eight nodes (2 is the child of 0 and has 6 and 7) that is whole and has counted."""
    step = make_step(nodes=8, seed=1)
    step.start()
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_total()
    return step


def above_of(step, index):
    """The parent, the step for the head."""
    return step if step.parent(index) is None else step.at(step.parent(index))


def ends(step):
    """The step ends with all that was counted."""
    for node in step.alive():
        node.add(1)
    step.wait_total()
    step.finish()
    step.check_profile()
    step.check_stored_total()


@pytest.mark.parametrize(
    "rule",
    [{"drop": 0.1}, {"delay": 0.05, "jitter": 0.05}, {"twice": 0.5}],
    ids=["lossy", "late_and_out_of_order", "repeated"],
)
def test_bad_wires(counted, rule):
    """TCP makes good for them; ticks may come late but whole, since parts that come late are merged
    into their rows."""
    step = counted
    for index in range(8):
        node, above = step.at(index), above_of(step, index)
        step.wires.rule(node.address, above.address, **rule)
        if index % 2 == 0:
            step.wires.rule(above.address, node.address, **rule)
    start = step.now()
    for _ in range(5):
        for node in step.nodes:
            node.add(1)
        step.wait_total(5)
    step.wires.reset()
    rows = step.check_whole_since(step.now())
    assert max(count for at, count, _ in rows if at > start) == 8, story(rows, start)
    ends(step)


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("child", [2, 0], ids=["inner", "top"])
def test_a_black_hole_below_the_head(counted, child, direction):
    """Nothing from a node reaches its parent, or nothing from the parent the node; the node's way to
    the head is another wire, but where the head is its parent."""
    step = counted
    node = step.at(child)
    above = above_of(step, child)
    source, destination = (node, above) if direction == UP else (above, node)
    fault = step.now()
    step.wires.rule(source.address, destination.address, drop=1.0)
    if above is step:
        return healed(step, fault)
    step.check_whole_since(fault, BLACK_HOLE_HEALS_WITHIN)
    step.wires.reset()
    step.wait_whole()
    ends(step)


def healed(step, fault):
    """Nothing heals before the wire does; a node that the head does not reach for a second is back
    then."""
    wait_for(lambda: step.now() > fault + 1.0, "a second")
    step.wires.reset()
    mended = step.now()
    step.check_whole_since(mended, BLACK_HOLE_HEALS_WITHIN)
    ends(step)


def test_a_node_is_cut_off_from_all(counted):
    """Both ways, from everybody: the head calls it lost, and its children go elsewhere."""
    step = counted
    node = step.at(2)
    for other in [step, *step.nodes]:
        if other is not node:
            step.wires.rule(node.address, other.address, drop=1.0)
            step.wires.rule(other.address, node.address, drop=1.0)
    fault = step.now()
    node.lost = True
    step.check_whole_since(fault, BLACK_HOLE_HEALS_WITHIN)
    wait_for(lambda: any(i["lost"] for i in step.profile()["nodes"]), "the head's verdict", 15)
    step.finish()
    step.check_profile()
    step.check_stored_total()


@pytest.mark.parametrize("index", [7, 2, 0], ids=["leaf", "inner", "top"])
def test_stopped_and_continued(counted, index):
    """A process that stands still for longer than anybody waits, and then goes on."""
    step = counted
    node = step.at(index)
    fault = step.now()
    node.daemon.stop()
    node.lost = True  # for the time being
    step.check_whole_since(fault, BLACK_HOLE_HEALS_WITHIN)
    node.lost = False
    node.daemon.go_on()
    went_on = step.now()
    step.check_whole_since(went_on, BLACK_HOLE_HEALS_WITHIN)
    ends(step)


def test_clocks_that_differ(make_step):
    """Nodes whose clocks are seconds ahead or behind count in the ticks of the others, and the profile
    says so."""
    step = make_step(nodes=6, skews={1: 3.0, 3: -3.0, 4: 0.03})
    step.start_nodes()
    wait_for(step.built, "the tree")
    for node in step.nodes:
        node.add(10 + node.id)
    start = step.now()
    step.check_whole_since(start)
    for node in step.nodes:
        node.add(1)
    rows = step.rows()
    assert max(count for _, count, _ in rows) <= 6, story(rows, start)
    assert max(total for _, _, total in rows) <= step.injected, story(rows, start)
    step.finish()
    job = step.check_profile()
    step.check_stored_total()
    coverage = job["coverage"]
    assert coverage["got"] > 0.95 * coverage["expected"], coverage
    told = sorted(note.split(": ")[1] for note in job["notes"] if "the clock is" in note)
    assert [note.split(";")[0] for note in told] == [
        "the clock is 3.0 s ahead of that of the head's host",
        "the clock is 3.0 s behind that of the head's host",
    ]


def test_parents_and_children_of_the_next_release_are_as_any(make_step):
    """What they say in addition costs no link, whoever hears it."""
    step = make_step(nodes=6, next_release=[1, 2])
    step.start(in_turn=True)
    step.rows()
    wait_for(step.built, "the tree, as it was")
    for listener in ("n0", "head"):  # of node 2, and of node 1
        assert [line for line in step.log_of(listener) if "message of type 250 ignored" in line]
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    step.finish()
    step.check_profile()
