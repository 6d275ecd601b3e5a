"""How the site lets daemons run, in sonde.conf: where, how much they may take, and which events root opens
for them; and that no user changes that."""

import json
import os

import pytest
from conftest import SONDE, SONDED
from plugin_alone import PLUGSTACK, Daemon, daemon  # noqa: F401

LEVEL = "--telemetry-level=2"
SETTINGS = "daemon_nice = 5\ndaemon_memory = 512M\ndaemon_oom_score = 900\ndaemon_cpus = 1\n"


@pytest.fixture(scope="module")
def cluster(make_cluster):
    return make_cluster(plugstack=PLUGSTACK)


@pytest.fixture(scope="module")
def _daemon(cluster):
    return Daemon(cluster)


def by_role(records):
    return {record.launch["role"]: record.itself for record in records}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_daemons_run_as_the_site_says(cluster, daemon):
    cluster.conf(SETTINGS)
    names = ("NICE", "MEMORY", "OOM_SCORE", "CPUS")
    env = {f"SONDE_DAEMON_{name}": "0" for name in names}
    done = cluster.run(["srun", "-N1", LEVEL, "true"], env=env)
    assert done.returncode == 0, done.stderr
    seen = by_role(daemon.wait_records(2))
    node, head = seen["node"], seen["head"]
    assert (node["oom"], node["nice"], node["data"], node["cpus"]) == (900, 5, 512 << 20, [1])
    # The head is a process of the user's on the launch host, of which only the score is the site's.
    assert (head["oom"], head["nice"], head["cpus"]) == (900, 0, sorted(os.sched_getaffinity(0)))
    assert head["data"] == -1


def test_a_wrong_line_is_told_and_the_default_holds(cluster, daemon):
    conf = cluster.conf("daemon_nice = -5\ndaemon_memory = 512M\n")
    done = cluster.run(["srun", "-N1", LEVEL, "true"])
    assert f"sonde: {conf}:1: daemon_nice = -5: expected 0 to 19; ignored" in done.stderr
    node = by_role(daemon.wait_records(2))["node"]
    assert (node["nice"], node["data"]) == (0, 512 << 20)


def test_a_host_watches_so_many_steps_at_a_time(cluster, daemon):
    cluster.conf("max_heads = 2\n")
    gate = cluster.dir / "tmp" / "gate"
    script = f"until [ -e {gate} ]; do sleep 0.05; done"
    steps = [cluster.popen(["srun", "-N1", "--overlap", LEVEL, "bash", "-c", script]) for _ in range(2)]
    daemon.wait_records(4)
    third = cluster.run(["srun", "-N1", LEVEL, "echo", "fine"])
    assert (third.returncode, third.stdout) == (0, "fine\n")
    refused = "2 steps are watched from this host already (max_heads in sonde.conf)"
    assert refused in third.stderr
    gate.touch()
    assert [step.wait(30) for step in steps] == [0, 0]
    daemon.forget()
    # What has ended holds none.
    done = cluster.run(["srun", "-N1", LEVEL, "true"])
    assert done.returncode == 0 and refused not in done.stderr
    assert len(daemon.wait_records(2)) == 2


# --- With the real daemon


@pytest.fixture(scope="module")
def whole(make_cluster):
    """A cluster with the daemon itself."""
    return make_cluster(plugstack=PLUGSTACK.replace("@DIR@/standin/sonded", str(SONDED)), nodes=1)


def job_of(cluster, *words):
    done = cluster.run(["srun", "-N1", *words])
    assert done.returncode == 0, done.stderr
    step = done.stderr.split("for step ")[1].split(";")[0]
    shown = cluster.run([SONDE, "show", "--json", step])
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)["profile"]["job"]


REFUSED = "not permitted here (kernel.perf_event_paranoid, and perf_events in sonde.conf)"


@pytest.mark.parametrize("setting, refused", [("grant", False), ("never", True)])
def test_root_opens_events_as_the_site_says(whole, setting, refused):
    whole.conf(f"perf_events = {setting}\n")
    notes = job_of(whole, "--telemetry-level=3", "--telemetry-events=page-faults", "true")["notes"]
    assert any(REFUSED in note for note in notes) == refused, notes


def test_a_daemon_lives_within_its_memory(whole):
    """What it may not have it does without, and the step does not notice."""
    whole.conf("daemon_memory = 16M\n")
    job = job_of(whole, LEVEL, "sleep", "1")
    assert job["state"] == "completed" and job["coverage"]["got"] > 0
