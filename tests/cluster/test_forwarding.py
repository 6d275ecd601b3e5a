"""Steps that are sent on while they run, to Debian's Prometheus."""

import json
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import SONDE, USER, sonded_processes, wait_for
from telemetry import LEVEL, Step


class Prometheus:
    def __init__(self, directory):
        self.directory = directory
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        (directory / "prometheus.yml").write_text("scrape_configs: []\n")
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.directory}/prometheus.yml",
                 "--web.enable-remote-write-receiver", f"--web.listen-address=127.0.0.1:{self.port}",
                 f"--storage.tsdb.path={self.directory}/data"], stdout=log, stderr=log)
        wait_for(self.ready, "Prometheus", 60)

    def ready(self):
        try:
            return urllib.request.urlopen(self.url + "/-/ready", timeout=5).status == 200
        except (urllib.error.URLError, OSError):
            return False

    def stop(self, number=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def samples(self, selector):
        """{labels as text: [[time in ms, value]]}"""
        query = urllib.parse.urlencode({"query": selector + "[1h]"})
        answer = json.loads(urllib.request.urlopen(f"{self.url}/api/v1/query?{query}").read())
        return {json.dumps(one["metric"], sort_keys=True):
                [[round(t * 1000), float(v)] for t, v in one["values"]]
                for one in answer["data"]["result"]}


@pytest.fixture
def prometheus():
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed: scripts/deps install test")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="prometheus"))
    one = Prometheus(directory)
    try:
        yield one
    finally:
        one.stop(signal.SIGKILL)
        shutil.rmtree(directory)


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
