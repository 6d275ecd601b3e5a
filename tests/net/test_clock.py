"""Wall clocks that are set while a step runs: its ticks go on in steady time, and a note tells of it."""

import time

import pytest

HOUR = 3600.0
# Long enough for a tick that is missing to be seen.
A_WHILE = 2.0


def notes_of_clocks(job):
    return [note for note in job["notes"] if "clock" in note]


def watch(step):
    """Rows go on for a while, each with all nodes; gives them."""
    fault = step.now()
    time.sleep(A_WHILE)
    rows = step.check_whole_since(fault)
    since = [row for row in rows if row[0] > fault - 1]
    step.check_no_gap(since)
    assert since[-1][0] < step.now() + 1, "rows lie ahead of the time"
    return rows


def finish(step, begun):
    """Ends the step; gives its stored description, whose times are those of the real clock."""
    for node in step.nodes:
        node.add(3)
    step.wait_total()
    step.finish()
    job = step.check_profile()
    step.check_stored_total()
    start, end = job["start"] / 1e9, job["end"] / 1e9
    assert abs(start - begun) < 5, job
    assert abs(end - time.time()) < 5, job
    step.check_no_gap(step.stored_rows())
    return job


@pytest.mark.parametrize("ahead", [-HOUR, HOUR, -5.0])
def test_the_heads_clock_is_set(make_step, ahead):
    step = make_step(nodes=4, clocks=True)
    begun = time.time()
    step.start()
    step.clock.set(ahead)
    watch(step)
    job = finish(step, begun)
    [note] = notes_of_clocks(job)
    way = "back" if ahead < 0 else "forward"
    amount = "5.0" if ahead == -5.0 else "3600"
    assert f"the clock of the head's host was set {way} by {amount} s at " in note


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
def test_a_nodes_clock_is_set(make_step, ahead):
    """Of one that has children, and of one that has none."""
    step = make_step(nodes=4, clocks=True)
    begun = time.time()
    step.start()
    inner, leaf = step.at(0), step.at(3)
    inner.clock.set(ahead)
    watch(step)
    leaf.clock.set(-ahead)
    watch(step)
    job = finish(step, begun)
    said = notes_of_clocks(job)
    ways = ("forward", "back") if ahead > 0 else ("back", "forward")
    for node, way in zip((inner, leaf), ways, strict=True):
        assert [f"the clock was set {way} by 3600 s at " in n for n in said if node.host in n] == [True]
    assert len(said) == 2, said


def test_all_clocks_are_set_together(make_step):
    """As by a site's time server: equal notes of the nodes are one."""
    step = make_step(nodes=6, clocks=True)
    begun = time.time()
    step.start()
    for clock in (step.clock, *(node.clock for node in step.nodes)):
        clock.set(-HOUR)
    watch(step)
    said = notes_of_clocks(finish(step, begun))
    # Unless the minute was over between two of them.
    assert 2 <= len(said) <= 3, said


def test_a_clock_that_is_set_again_and_again_is_told_a_few_times(make_step):
    step = make_step(nodes=2, clocks=True)
    begun = time.time()
    step.start()
    for i in range(12):
        fault = step.now()
        step.at(0).clock.set(HOUR if i % 2 == 0 else -HOUR)
        step.check_whole_since(fault)
    job = finish(step, begun)
    assert len(notes_of_clocks(job)) <= 5, job["notes"]
    assert any("more often" in note for note in notes_of_clocks(job)), job["notes"]


def test_an_acting_head_goes_on_in_the_steps_time(make_step):
    """Though the clocks of all nodes say something else by then."""
    step = make_step(nodes=4, clocks=True)
    step.start()
    for clock in (step.clock, *(node.clock for node in step.nodes)):
        clock.set(HOUR)
    watch(step)
    step.wait_successors()
    step.wait_stored()
    step.kill_head()
    step.wait_acting()
    step.wait_whole()
    rows = step.rows()
    assert abs(rows[-1][0] - step.now()) < 5, rows[-1]
    for node in step.nodes:
        node.add(2)
    step.wait_total()
    step.finish()
    stored = step.stored_rows()
    assert stored[-1][0] < time.time() + 5, stored[-1]


def test_a_guest_that_was_paused_goes_on_in_the_right_ticks(make_step):
    """Nobody else has waited for it, and its connection is lost."""
    step = make_step(nodes=4, clocks=True)
    begun = time.time()
    step.start()
    node = step.at(0)
    node.clock.stand_still(20)
    step.reset_head_connections(node)
    watch(step)
    [note] = notes_of_clocks(finish(step, begun))
    assert f"{node.host}: the clock was 20 s behind that of the head's host at " in note


def test_a_question_for_the_last_minutes_is_by_the_steps_time(make_step):
    step = make_step(nodes=2, clocks=True)
    step.start()
    step.clock.set(-HOUR)
    watch(step)
    query = {"metric": "sonde_memory_bytes", "aggregator": "count"}
    answer = step._request("/api/query", {"start": "1m-ago", "queries": [query]})
    assert answer and answer[0]["dps"], answer
    newest = max(int(at) for at in answer[0]["dps"])
    assert abs(newest - time.time()) < 5, (newest, time.time())
    step.finish()
