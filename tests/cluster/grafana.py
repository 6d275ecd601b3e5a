"""Grafana's own OpenTSDB data source, for tests: the Go code of a checkout, built with a program that calls it.

SONDE_GRAFANA_OPENTSDB names the checkout of grafana/grafana-opentsdb-datasource; the module proxy of Go does not
have it. The program is no file of the checkout, which may be read only: an overlay lays it into it.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import BUILD, SKIPPED

DRIVER = pathlib.Path(__file__).with_name("grafana_driver.go")
VARIABLE = "SONDE_GRAFANA_OPENTSDB"


def skip(why):
    pytest.exit(why, returncode=SKIPPED)


def build():
    """The program, built in the build directory; ends the tests as skipped where that is not possible."""
    source = os.environ.get(VARIABLE)
    if not source:
        skip(f"needs Grafana's data source: {VARIABLE}=DIRECTORY, a checkout of grafana/grafana-opentsdb-datasource")
    source = pathlib.Path(source).resolve()
    if not (source / "pkg" / "opentsdb" / "opentsdb.go").exists():
        skip(f"{VARIABLE}={source} is no checkout of grafana/grafana-opentsdb-datasource")
    if not shutil.which("go"):
        skip("needs Go, to build Grafana's data source")
    directory = BUILD / "grafana"
    directory.mkdir(exist_ok=True)
    # Another run may want it at the same time; Go's cache makes the second build a matter of seconds.
    with open(directory / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        overlay = directory / "overlay.json"
        overlay.write_text(json.dumps({"Replace": {str(source / "pkg" / "driver" / "main.go"): str(DRIVER)}}))
        options = ["-buildvcs=false", "-overlay", str(overlay)]
        # All modules that it is made of have to be there first.
        listed = go(source, "list", "-deps", *options, "./pkg/driver")
        if listed.returncode != 0:
            skip(f"the modules of Grafana's data source cannot be had: {(listed.stderr.splitlines() or ['?'])[-1]}")
        # Renamed into place: a program that runs cannot be written to.
        program = directory / "driver"
        built = go(source, "build", *options, "-o", f"{program}.new", "./pkg/driver")
        assert built.returncode == 0, f"go build failed:\n{built.stderr}"
        os.replace(f"{program}.new", program)
        return program


def go(source, *words):
    return subprocess.run(["go", *words], cwd=source, capture_output=True, text=True, check=False)


class Grafana:
    """The data source in a process of its own, asked over its standard input."""

    def __init__(self, program, log):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8"
        )

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(20)

    def call(self, settings, **asked):
        self.process.stdin.write(json.dumps({"settings": settings, **asked}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the data source has ended"
        # No number changes: -0 is not the integer 0.
        return json.loads(line, parse_int=float)


@contextlib.contextmanager
def running(program, directory):
    with open(directory / "grafana.log", "w", encoding="utf-8") as log:
        grafana = Grafana(program, log)
        try:
            yield grafana
        finally:
            grafana.close()


def settings(live, version=3, resolution=2, limit=1000, basic=False, token=None):
    """A data source of Sonde's, as Grafana stores it: the token in a header, or as a password."""
    data = {"tsdbVersion": version, "tsdbResolution": resolution, "lookupLimit": limit}
    secret = live.token if token is None else token
    url = f"http://127.0.0.1:{live.port}"
    if basic:
        return {"url": url, "json": data, "usesUser": True, "user": "sonde", "secrets": {"basicAuthPassword": secret}}
    data["httpHeaderName1"] = "Authorization"
    return {"url": url, "json": data, "secrets": {"httpHeaderValue1": f"Bearer {secret}"}}
