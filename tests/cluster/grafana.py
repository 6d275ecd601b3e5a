"""Grafana's own OpenTSDB data source, for tests, in a process of its own; tests/grafana_source.py builds it."""

import contextlib
import json
import subprocess

import grafana_source
import made
import pytest
from conftest import SKIPPED


def build():
    """The program as the sources are now; ends the tests as skipped where scripts/prepare has not made it."""
    place = made.place("grafana-source")
    if place is None:
        pytest.exit(made.why("grafana-source"), returncode=SKIPPED)
    return grafana_source.build(place)


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
