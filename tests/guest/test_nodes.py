"""Steps whose nodes die, hang, lose their network, their memory or the time end as without telemetry,
and the profile says what is missing and keeps the rest. Each node has a kernel of its own."""

import datetime
import itertools
import re

import pytest

from guest_cluster import has_all_samples
from test_end_of_step import check_times, wanted

NAMES = (
    "plain", "node_death", "node_death_no_kill", "node_hangs", "hung_head", "cut_network", "full_memory",
    "clock_back", "clock_ahead",
)  # fmt: skip
# Shorter than what is done to the node (SILENT in node_scenarios.py), longer than a tick.
GAP = 5.0


@pytest.fixture(scope="module")
def seen(request, node_scenarios):
    return node_scenarios(*dict.fromkeys(wanted(request, "seen")))


def gaps(times):
    return [later - before for before, later in itertools.pairwise(times) if later - before > GAP]


def reaches_the_end(watched, node):
    """The node's last samples in the profile are those of the step's last seconds."""
    begin, day, time = re.search(r"(\d{4}-\d\d-\d\d) \S+ to (\S+ )?(\S+) UTC \(", watched["report"]).groups()
    ended = datetime.datetime.fromisoformat(f"{(day or begin).strip()}T{time}+00:00").timestamp()
    return ended - watched["samples"][node][-1] < GAP


def check_plain(watched):
    assert has_all_samples(watched["report"]), watched["report"]


def check_death(watched):
    assert "node n2 was lost" in watched["report"]
    assert reaches_the_end(watched, "n1")
    assert not gaps(watched["samples"]["n1"])


def check_death_no_kill(watched):
    assert watched["code"][1], "the task on n1 goes on"
    check_death(watched)


def check_hangs(watched, node="n2"):
    assert re.search(r"\d+ never taken: a node was too busy", watched["report"])
    assert f"{node}: samples are missing or late" in watched["report"]
    assert len(gaps(watched["samples"][node])) == 1
    for each in ("n1", "n2"):
        assert reaches_the_end(watched, each)


def check_hung_head(watched):
    check_hangs(watched, "n1")


def check_cut(watched):
    """The node's own series have no gap; its samples missed the rows of the whole step."""
    assert "n2: samples are missing or late" in watched["report"]
    assert re.search(r"\d+ samples came too late to be merged", watched["report"])
    for node in ("n1", "n2"):
        assert reaches_the_end(watched, node)
        assert not gaps(watched["samples"][node])


def check_memory(watched):
    assert "python3" in watched["output"].splitlines()[-1]
    assert reaches_the_end(watched, "n1")
    assert not gaps(watched["samples"]["n1"])
    if "sonded" in watched["output"].splitlines()[-1]:
        assert "node n2 was lost" in watched["report"]


CHECKS = {
    "plain": check_plain, "node_death": check_death, "node_death_no_kill": check_death_no_kill,
    "node_hangs": check_hangs, "hung_head": check_hung_head, "cut_network": check_cut, "full_memory": check_memory,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_as_without_telemetry(seen, name):
    without, watched = seen[name]["without"], seen[name]["with"]
    assert "(timed out)" not in without["output"], "the scenario shows nothing"
    assert watched["code"] == without["code"], watched["output"]
    assert not any(watched["left"].values()), watched["left"]
    check_times(seen[name])
    assert watched["nodes"] == without["nodes"]
    assert not any(watched["left_at_all"].values()), watched["left_at_all"]
    if name == "full_memory":
        # The daemon is what the kernel takes first, and never saves or costs an application.
        killed = [words["output"].splitlines()[-1].replace(" sonded", "") for words in (without, watched)]
        assert killed[0] == killed[1] == "killed: python3"


@pytest.mark.parametrize("name", CHECKS)
def test_the_profile_says_what_is_missing_and_keeps_the_rest(seen, name):
    watched = seen[name]["with"]
    try:
        CHECKS[name](watched)
    except AssertionError:
        print(watched["report"])
        raise
