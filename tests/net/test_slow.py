"""A link that takes less than is to go over it: detail is left out and told, and nobody waits for it.

Each node has 1,000 gauges that change all the time, which is 100 kB a second of a node with two
children. Over its link go 50 then, by the kernel's token bucket.
"""

import time

import pytest
from step import story, wait_for

SLOW = 50_000  # bytes a second
GAUGES = 1000
BEGINS = "ticks are left out"
# The 2 s that a node has, on a busy machine; its link would take tens of seconds for all it has.
IN_TIME = 8.0
ENDS = "no ticks are left out any more"


@pytest.fixture
def busy(make_step):
    """A step whose nodes have much to say, and have counted."""
    step = make_step(nodes=6, period=0.5)
    step.start()
    for node in step.nodes:
        node.application.chatter(GAUGES)
        node.add(10 + node.id)
    step.wait_total()
    step.wait_whole()
    yield step
    for node in step.nodes:  # the next test has the same wires
        node.space.throttle()


def throttle(node):
    done = node.space.throttle(SLOW)
    if "qdisc kind is unknown" in done.stderr:
        pytest.skip("this kernel has no token bucket (sch_tbf)")
    assert done.returncode == 0, done.stderr


def wait_said(node, text):
    wait_for(lambda: any(text in line for line in node.log()), f"{node.host}: {text}", 30)


def test_a_parent_on_a_slow_link_leaves_out_ticks_and_recovers(busy):
    step, slow = busy, busy.at(0)
    assert step.children(0) == [2, 3]
    fault = step.now()
    throttle(slow)
    wait_said(slow, BEGINS)
    for node in step.nodes:  # no application waits
        node.add(5)
    told = step.now()
    wait_for(lambda: step.rows()[-1][0] > told, "a tick of the others, which do not wait")
    others = len(step.nodes) - 3
    rows = [row for row in step.rows() if row[0] > fault]
    assert all(count >= others for _, count, _ in rows), story(rows, fault)

    mended = step.now()
    slow.space.throttle()
    wait_said(slow, ENDS)
    step.wait_whole()
    step.wait_total()
    rows = [row for row in step.rows() if fault + 2 < row[0] < mended]
    whole = [row for row in rows if row[1] == len(step.nodes)]
    assert whole, f"left out are some ticks, not all: {story(rows, fault)}"
    step.finish()
    job = step.check_profile()
    step.check_stored_total()
    for what in (BEGINS, ENDS):
        assert any(what in note for note in job["notes"]), job["notes"]
    coverage = job["coverage"]
    assert coverage["got"] + coverage["skipped"] < coverage["expected"], coverage


@pytest.mark.parametrize("index", [0, 2], ids=["parent", "leaf"])
def test_a_step_ends_in_time_on_a_slow_link(busy, index):
    """With what fits through the link in that time."""
    step, slow = busy, busy.at(index)
    known = step.injected
    throttle(slow)
    for node in step.nodes:
        node.add(5)
    if index == 0:
        wait_said(slow, BEGINS)
    start = time.monotonic()
    for node in step.alive():
        node.leave()
    for node in step.nodes:
        node.daemon.wait_exit()
    took = time.monotonic() - start
    assert took < IN_TIME, f"{took:.1f} s"
    step.finish()
    missing = any("missing from the totals" in note for note in step.stored()["job"]["notes"])
    assert missing or known <= step.stored_total() <= step.injected
