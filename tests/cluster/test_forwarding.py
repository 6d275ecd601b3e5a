"""Steps that are sent on while they run, to Debian's Prometheus."""

import json
import pathlib
import tempfile

import pytest
from conftest import SONDE, USER, sonded_processes, wait_for
from prometheus import PROMETHEUS
from prometheus import prometheus as a_prometheus
from telemetry import LEVEL, Step


@pytest.fixture
def prometheus():
    if PROMETHEUS is None:
        pytest.skip("prometheus is not installed: scripts/deps install test")
    with a_prometheus() as one:
        yield one


@pytest.fixture
def room(cluster):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="forward", dir=cluster.home(USER)))
    directory.chmod(0o777)
    yield directory
    cluster.conf("")


def nothing_runs():
    wait_for(lambda: not sonded_processes(), "the end of all processes", 25)


def until_told(cluster, room):
    """A step that runs until the file `stop` is there."""
    words = ["srun", "-N2", *LEVEL, "sh", "-c",
             f"while [ ! -e {room}/stop ]; do sleep 0.1; done"]
    return Step(cluster, words)


def exported(cluster, step, scope):
    """{name of a series: {time in ms: value}} by the file that the command writes."""
    done = cluster.run([SONDE, "export", step, "--to", "-", "--scope", scope], user=USER)
    assert done.returncode == 0, done.stderr
    out = {}
    for line in done.stdout.splitlines():
        if line.startswith("#"):
            continue
        series, value, time = line.rsplit(" ", 2)
        out.setdefault(series, {})[int(time.replace(".", ""))] = float(value)
    return out


def same_as_archive(prometheus, cluster, step, scope):
    """Prometheus has every sample of the archive, and no other."""
    archived = exported(cluster, step, scope)
    stored = {}
    for labels, values in prometheus.samples(f'{{job="{step}"}}').items():
        metric = json.loads(labels)
        name = metric.pop("__name__")
        text = ",".join(f'{k}="' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
                        for k, v in sorted(metric.items()))
        stored[f"{name}{{{text}}}"] = dict(values)
        assert len(values) == len(dict(values))
    assert stored == archived
    return archived


@pytest.mark.parametrize("scope", ["job", "node"])
def test_a_running_step_is_in_prometheus_while_it_runs_and_whole_afterwards(
        cluster, room, prometheus, scope):
    prometheus.start()
    cluster.conf(f"forward.test = {prometheus.url}/api/v1/write scope={scope}\n")
    step = until_told(cluster, room)
    where = "node" if scope == "node" else "job"
    wait_for(lambda: prometheus.samples(f'node_load1{{job="{step.id}"}}'), f"samples by {where}", 60)
    assert step.process.poll() is None
    (room / "stop").touch()
    code, seconds = step.wait()
    assert code == 0 and seconds < 10
    nothing_runs()
    archived = same_as_archive(prometheus, cluster, step.id, scope)
    assert len(archived) > 100
    pending = cluster.run([SONDE, "--config", cluster.dir / "sonde.conf", "export", "--pending"],
                          user=USER)
    assert "nothing waits to be sent" in pending.stderr


def test_a_receiver_that_is_away_hinders_nothing_and_gets_it_later(cluster, room, prometheus):
    conf = cluster.conf(f"forward.test = {prometheus.url}/api/v1/write\n")
    step = until_told(cluster, room)
    wait_for(lambda: [c for _, c in sonded_processes() if "--forward" in c], "the process", 20)
    doctor = cluster.run([SONDE, "--config", conf, "doctor"], user=USER)
    assert f"forward.test   {prometheus.url}/api/v1/write does not take series now" in doctor.stdout
    (room / "stop").touch()
    code, seconds = step.wait()
    assert code == 0 and seconds < 10
    nothing_runs()
    command = [SONDE, "--config", conf, "export", "--pending"]
    waits = cluster.run([*command, "--dry-run"], user=USER)
    assert step.id in waits.stdout and "0 samples sent so far" in waits.stdout
    prometheus.start()
    done = cluster.run(command, user=USER)
    assert done.returncode == 0 and step.id in done.stderr, done.stderr
    same_as_archive(prometheus, cluster, step.id, "job")
    doctor = cluster.run([SONDE, "--config", conf, "doctor"], user=USER)
    assert f"ok      forward.test   {prometheus.url}/api/v1/write answers" in doctor.stdout


def test_the_next_step_sends_what_one_has_left(cluster, room, prometheus):
    cluster.conf(f"forward.test = {prometheus.url}/api/v1/write\n")
    first = Step(cluster, ["srun", "-N1", *LEVEL, "sleep", "0.5"])
    assert first.wait()[0] == 0
    nothing_runs()
    prometheus.start()
    second = until_told(cluster, room)
    wait_for(lambda: prometheus.samples(f'node_load1{{job="{first.id}"}}'), "the first step", 60)
    (room / "stop").touch()
    assert second.wait()[0] == 0
    nothing_runs()
    for step in (first, second):
        same_as_archive(prometheus, cluster, step.id, "job")


def test_a_wrong_line_is_a_note_of_the_profile(cluster, room):
    cluster.conf("forward.test = gopher://x\n")
    step = Step(cluster, ["srun", "-N1", *LEVEL, "true"])
    assert step.wait()[0] == 0
    notes = step.profile()["profile"]["job"]["notes"]
    assert any("not forwarded as configured: forward.test" in note for note in notes)
    assert not [c for _, c in sonded_processes() if "--forward" in c]
