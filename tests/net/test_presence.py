"""Which nodes are in the rows of the whole step, as the profile and the points of a metric say it."""

import os
import signal
import time

from step import COUNTED, HEALS_WITHIN, PRESENT, wait_for


def runs_of(job):
    """Times in seconds; what is left out is 0."""
    return [
        {
            "first": run["first"] / 1e9,
            "nodes": run["nodes"],
            "joined": run.get("joined", 0),
            "left": run.get("left", 0),
            "back_from": run.get("back_from", 0) / 1e9,
        }
        for run in job["presence"]
    ]


def check_runs(runs):
    """Each run's numbers follow from those of the one before."""
    nodes = 0
    for run in runs:
        nodes += run["joined"] - run["left"]
        assert run["nodes"] == nodes, runs
        assert run["back_from"] < run["first"], runs


def steady(runs, period):
    """Without the moments in which a node was away for a few ticks: on a busy machine a daemon misses some."""
    kept = []
    for run in runs:
        gone = kept[-1] if kept else None
        some_left = gone and gone["left"] and gone["nodes"] and not gone["joined"]
        are_back = some_left and run["joined"] == gone["left"] and run["back_from"] and not run["left"]
        if are_back and run["first"] - gone["first"] < 4 * period:
            kept.pop()
        else:
            kept.append(run)
    return kept


def ticks(step, since=0):
    return [row for row in step.rows() if row[0] > since]


def test_a_daemon_that_is_stopped_is_absent_and_back(make_step):
    """Its ticks of that time are in no row, and it is told since when."""
    step = make_step(nodes=4)
    step.start_counting()
    stopped = step.at(3)
    begin = step.now()
    away = []  # ticks, as rows alone tell while it does not answer

    def missing():
        away[:] = [at for at, count, _ in ticks(step, begin) if count == 3]
        return len(away) >= 5

    os.kill(stopped.daemon.pid, signal.SIGSTOP)
    try:
        wait_for(missing, "ticks without it")
    finally:
        os.kill(stopped.daemon.pid, signal.SIGCONT)
    end = step.now()
    step.check_whole_since(end)
    late = step.late_since(end)
    live = step.profile()
    # When it is back the nodes' series answer for that time, in which it has a line.
    rows = step.rows()
    assert all(count == 4 for at, count, _ in rows if away[0] <= at <= away[-1]), (rows, away)
    for metric in (PRESENT, COUNTED):
        told = step.series(metric)["nodes"]
        assert any(nodes == 3 and begin - 1 < at < end + 1 for at, nodes in told), told
        assert told[-1][1] == 4, told
    step.check_presence(live, [row for row in rows if begin < row[0] < end])
    step.finish()
    job = step.check_profile()
    runs = runs_of(job)
    check_runs(runs)
    story = f"from {begin} to {end} without it in {away}; stored: {runs}"
    # Of the tick at which it was stopped its sample may have come when it was back.
    gone = [run for run in runs if run["first"] < away[0] + step.period / 2][-1]
    back = next(run for run in runs if run["first"] > gone["first"] and run["nodes"] == 4)
    # On a busy machine it may have been away already when it was stopped.
    assert gone["left"] == 1, story
    assert gone["first"] < begin or away[0] - gone["first"] < 1.1 * step.period, story
    assert away[-1] < back["first"] < end + HEALS_WITHIN + late, story
    # Nobody else was away, and the last tick at which it was there is the one before it left.
    assert abs(gone["first"] - step.period - back["back_from"]) < step.period / 10, story
    step.check_presence(job, step.stored_rows()[:-1])
    with step.serving() as ask:
        for metric in (PRESENT, COUNTED):
            told = [nodes for _, nodes in ask(step.series_path(metric))["nodes"]]
            assert 3 in told and max(told) == 4, told
    step.check_stored_total()


def test_one_that_comes_late_joins_and_one_that_ends_leaves(make_step):
    step = make_step(nodes=4)
    step.start_nodes(3)
    for node in step.alive():
        node.add(1)
    step.wait_total()
    step.nodes[3].start()
    step.wait_registered(step.nodes)
    step.wait_whole()
    ended = step.nodes[1]
    ended.leave()
    ended.daemon.wait_exit(HEALS_WITHIN)
    step.wait_whole()
    rows = step.rows()
    step.finish()
    job = step.check_profile()
    runs = runs_of(job)
    check_runs(runs)
    runs = steady(runs, step.period)
    assert all(run["back_from"] == 0 for run in runs), runs
    joined = next(run for run in runs if run["nodes"] == 4)
    left = next(run for run in runs if run["first"] > joined["first"])
    assert (joined["joined"], left["left"], left["nodes"]) == (1, 1, 3), runs
    info = {node["host"]: node for node in job["nodes"]}
    assert joined["first"] > info["n3"]["joined"] / 1e9
    assert left["first"] > info["n1"]["left"] / 1e9 - step.period
    step.check_presence(job, rows)
    step.check_stored_total()


def test_an_acting_head_goes_on_with_what_the_head_told(make_step):
    """All are there before and after: the runs tell of one step, as the rows do."""
    step = make_step(nodes=4)
    step.start_counting()
    step.wait_successors()
    step.wait_stored()
    whole = step.now()
    step.kill_head()
    step.wait_acting()
    fault = step.now()
    step.check_whole_since(fault)
    step.finish()
    job = step.check_profile()
    runs = steady(runs_of(job), step.period)
    assert all(run["nodes"] == 4 for run in runs if whole - 1 < run["first"] < fault), runs
    before = [run for run in runs if run["first"] < whole]
    assert before and before[-1]["nodes"] == 4, runs
    assert runs[0]["first"] < job["start"] / 1e9 + 2, runs
    step.check_presence(job, step.stored_rows()[:-1])
