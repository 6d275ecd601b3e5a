"""Archives with known content, and the databases that take it, on ports of the loopback.

A receiver is started when a test asks for it and stopped by its pid; where its program is not
installed the test is skipped and says so.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))
SONDE = BUILD / "cli" / "sonde"
MAKE_ARCHIVE = BUILD / "tests" / "forward" / "make_archive"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url, **parameters):
    full = url + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
    with urllib.request.urlopen(full, timeout=20) as answer:
        return answer.read().decode()


def wait_for(condition, what, limit=60):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"no {what} within {limit} s")


class Archive:
    """Steps of two nodes as make_archive writes them, and the command."""

    def __init__(self, directory):
        self.directory = directory / "archive"
        self.config = directory / "sonde.conf"
        self.config.write_text("")
        self.start = int(time.time()) - 3000

    def add(self, job, rows, start=None):
        start = self.start if start is None else start
        subprocess.run([MAKE_ARCHIVE, self.directory, job, str(start), str(rows)], check=True)

    def command(self, *words):
        return [SONDE, "--archive", self.directory, "--config", self.config, *map(str, words)]

    def export(self, *words, timeout=120):
        return subprocess.run(
            self.command("export", *words), capture_output=True, text=True, timeout=timeout)

    def records(self):
        folder = self.directory / "forward"
        return {p.name: p.read_text() for p in folder.iterdir() if p.suffix != ".lock"}

    def expected(self, rows, scope, start=None, scale=1000):
        """{(metric, host): {time: value}}, times in seconds times `scale`."""
        start = self.start if start is None else start
        nodes = range(2) if scope == "node" else [None]
        out = {}
        for node in nodes:
            host = None if node is None else f"n{node + 1}"
            for tick in range(1, rows + 1):
                t = (start + tick) * scale
                factor = 3 if node is None else node + 1
                heat = tick / 8 + (0.5 if node is None else node)
                out.setdefault(("task_cpu_seconds_total", host), {})[t] = tick * factor
                out.setdefault(("task_resident_memory_bytes", host), {})[t] = 1000 * factor
                if tick % 7:
                    out.setdefault(("app_heat", host), {})[t] = heat
        return out


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path)


class Receiver:
    """A database; `start` and `stop` any number of times over the same data."""

    def __init__(self, directory):
        self.directory = directory
        self.directory.mkdir()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def spawn(self, *words, **more):
        log = open(self.directory / "log", "ab")
        self.process = subprocess.Popen(
            [str(word) for word in words], stdout=log, stderr=log, cwd=self.directory, **more)

    def start(self):
        self.run()
        wait_for(self.is_ready, "answer of " + type(self).__name__)

    def is_ready(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()[-2000:]
        try:
            get(self.url + self.ready)
            return True
        except (urllib.error.URLError, OSError):
            return False

    def stop(self, number=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=60)
            self.process = None


class Prometheus(Receiver):
    ready = "/-/ready"
    window = None

    @property
    def to(self):
        return self.url + "/api/v1/write"

    def run(self):
        config = self.directory / "prometheus.yml"
        window = f"storage: {{tsdb: {{out_of_order_time_window: {self.window}}}}}\n"
        config.write_text("scrape_configs: []\n" + (window if self.window else ""))
        self.spawn("prometheus", f"--config.file={config}", "--web.enable-remote-write-receiver",
                   f"--storage.tsdb.path={self.directory}/data",
                   f"--web.listen-address=127.0.0.1:{self.port}")

    def stored(self, job, start):
        return matrix(self.url, f'{{job="{job}"}}', start)


class VictoriaMetrics(Receiver):
    ready = "/health"

    def __init__(self, directory):
        super().__init__(directory)
        self.opentsdb = free_port()

    @property
    def to(self):
        return self.url + "/api/v1/write"

    def run(self):
        self.spawn("victoria-metrics", f"-httpListenAddr=127.0.0.1:{self.port}",
                   f"-opentsdbHTTPListenAddr=127.0.0.1:{self.opentsdb}",
                   f"-storageDataPath={self.directory}/data", "-retentionPeriod=100y",
                   "-search.latencyOffset=0s", "-search.disableCache")

    def stored(self, job, start):
        """By its own export, which gives what is stored and not what a query makes of it."""
        get(self.url + "/internal/force_flush")
        out = {}
        text = get(self.url + "/api/v1/export", **{"match[]": f'{{job="{job}"}}'})
        for line in text.splitlines():
            one = json.loads(line)
            metric = one["metric"]
            samples = out.setdefault((metric["__name__"], metric.get("host")), [])
            samples += [(t, v) for t, v in zip(one["timestamps"], one["values"]) if v is not None]
        return {key: sorted(samples) for key, samples in out.items()}


class Influx(Receiver):
    ready = "/ping"

    @property
    def to(self):
        return self.url + "/write?db=sonde"

    def run(self):
        config = self.directory / "influxdb.conf"
        data = self.directory / "data"
        config.write_text(f"""
reporting-disabled = true
bind-address = "127.0.0.1:{free_port()}"
[meta]
dir = "{data}/meta"
[data]
dir = "{data}/data"
wal-dir = "{data}/wal"
max-values-per-tag = 0
[http]
bind-address = "127.0.0.1:{self.port}"
log-enabled = false
[monitor]
store-enabled = false
""")
        self.spawn("influxd", "-config", config)

    def start(self):
        super().start()
        self.query("CREATE DATABASE sonde", post=True)

    def query(self, text, post=False):
        parameters = {"q": text, "db": "sonde", "epoch": "ns"}
        if not post:
            return json.loads(get(self.url + "/query", **parameters))
        data = urllib.parse.urlencode(parameters).encode()
        urllib.request.urlopen(self.url + "/query", data=data, timeout=20).read()
        return None

    def stored(self, job, start):
        out = {}
        answer = self.query(f"SELECT value FROM /.*/ WHERE job='{job}' GROUP BY *")
        for series in answer["results"][0].get("series", []):
            key = (series["name"], series["tags"].get("host") or None)
            out[key] = sorted((t, v) for t, v in series["values"])
        return out


def matrix(url, selector, start):
    """What Prometheus has, sample by sample."""
    answer = json.loads(get(url + "/api/v1/query", query=selector + "[2h]", time=start + 7000))
    out = {}
    for one in answer["data"]["result"]:
        metric = one["metric"]
        out[metric["__name__"], metric.get("host")] = [
            (round(t * 1000), float(v)) for t, v in one["values"]]
    return out


def receiver(kind, program):
    @pytest.fixture
    def make(tmp_path):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: scripts/deps install test")
        one = kind(tmp_path / program)
        try:
            one.start()
            yield one
        finally:
            one.stop(signal.SIGKILL)
    return make


prometheus = receiver(Prometheus, "prometheus")
victoria = receiver(VictoriaMetrics, "victoria-metrics")
influx = receiver(Influx, "influxd")


def same(stored, expected):
    """Every sample with its time and its value, and none twice."""
    assert set(stored) == set(expected)
    for key, samples in expected.items():
        assert stored[key] == sorted(samples.items()), key
