"""A real Prometheus for tests."""

import contextlib
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

from conftest import wait_for

PROMETHEUS = shutil.which("prometheus")
SCRAPES_NOTHING = "scrape_configs: []\n"


class Prometheus:
    """One that may be started and stopped any number of times, over the same data; a call asks it for
    the present values of a query. It takes remote write."""

    def __init__(self, directory):
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self, config=SCRAPES_NOTHING):
        path = self.directory / "prometheus.yml"
        path.write_text(config)
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    PROMETHEUS,
                    f"--config.file={path}",
                    f"--storage.tsdb.path={self.directory}/data",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--web.enable-remote-write-receiver",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        wait_for(self._ready, "Prometheus", 60)

    def stop(self, number=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def __call__(self, query):
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=20) as answer:
            return json.loads(answer.read())["data"]["result"]

    def samples(self, selector):
        """What is stored of the last hour: {labels as text: [[time in ms, value]]}."""
        return {
            json.dumps(one["metric"], sort_keys=True): [
                [round(t * 1000), float(v)] for t, v in one["values"]
            ]
            for one in self(selector + "[1h]")
        }

    def _ready(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()[-2000:]
        try:
            return urllib.request.urlopen(self.url + "/-/ready", timeout=5).status == 200
        except (urllib.error.URLError, OSError):
            return False


@contextlib.contextmanager
def prometheus(config=None):
    """Starts it with that configuration; without one the test does when it knows its own."""
    with tempfile.TemporaryDirectory(prefix="prometheus") as directory:
        one = Prometheus(pathlib.Path(directory))
        try:
            if config is not None:
                one.start(config)
            yield one
        finally:
            one.stop(signal.SIGKILL)
