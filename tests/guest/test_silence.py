"""What is not watched, and daemons that fail, are told; a closed stderr is not written to."""

import re

import pytest

from test_end_of_step import check


@pytest.fixture(scope="module")
def seen(scenarios):
    return scenarios("closed_stderr", "async_step", "killed_daemon")


@pytest.fixture(scope="module")
def seen_contained(scenarios):
    return scenarios("killed_daemon", contain=True)


@pytest.mark.parametrize("name", ("closed_stderr", "async_step", "killed_daemon"))
def test_nodes_are_as_without_telemetry(seen, name):
    check(seen, name)


def test_closed_stderr_is_never_written_to(seen):
    """Written to, it kept srun for 7 s."""
    watched = seen["closed_stderr"]["with"]
    assert watched["code"] == 0
    assert re.fullmatch(r"seconds [0-9.]+ [0-9.]+", watched["output"]), watched["output"]
    opened, closed = map(float, watched["output"].split()[1:])
    assert closed < opened + 4


def test_step_of_srun_async_says_that_it_is_not_watched(seen):
    without, watched = seen["async_step"]["without"], seen["async_step"]["with"]
    assert watched["code"] == without["code"]
    assert "rc 0" in watched["output"] and "not watched" not in without["output"]
    assert watched["output"].count("steps of srun --async are not watched") == 1, watched["output"]


def check_killed(seen):
    """One of the two nodes' daemons was killed, each time that the scenario ran."""
    lines = [line for node in ("n1", "n2") for line in seen[f"log.{node}"] if "ended early" in line]
    assert len(lines) == seen["killed_daemon"]["looks"], lines
    for line in lines:
        assert "ended early: it was killed, or ended without a word; the step goes on" in line


def test_killed_daemon_is_told_once(seen):
    check_killed(seen)


def test_killed_daemon_is_told_once_with_contain_spank(seen_contained):
    check_killed(seen_contained)


def check_counted(seen):
    """Where the site looks, whatever directory the job has in its place."""
    for node in ("n1", "n2"):
        assert re.search(r"^sonde_daemon_starts_total\{.*\} [1-9]", seen[f"counters.{node}"], re.M), node
    counters = seen["counters.n1"] + seen["counters.n2"]
    killed = re.findall(r"^sonde_daemon_failures_total\{.*reason=\"killed\"\} (\d+)", counters, re.M)
    assert len(killed) == 2 and sum(map(int, killed)) == seen["killed_daemon"]["looks"]


def test_daemons_are_counted(seen):
    check_counted(seen)


def test_daemons_are_counted_with_contain_spank(seen_contained):
    check_counted(seen_contained)
