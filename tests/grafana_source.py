"""Grafana's own OpenTSDB data source, for tests: the Go code of a checkout, built with a program that calls it.

SONDE_GRAFANA_OPENTSDB names the checkout of grafana/grafana-opentsdb-datasource; the module proxy of Go does not
have it. The program is no file of the checkout, which may be read only: an overlay lays it into it.
"""

import fcntl
import json
import os
import pathlib
import subprocess

DRIVER = pathlib.Path(__file__).resolve().parent / "cluster" / "grafana_driver.go"
VARIABLE = "SONDE_GRAFANA_OPENTSDB"


class Lacking(Exception):
    """What this machine does not have."""


class BuildError(Exception):
    """What the compiler says."""


def go(source, *words, **options):
    try:
        return subprocess.run(["go", *words], cwd=source, capture_output=True, text=True, check=False, **options)
    except FileNotFoundError as error:
        raise Lacking("needs Go, to build Grafana's data source") from error


def build(directory, **options):
    """The program, built in `directory`. Two that want it at once wait; the second one has little to do, for Go
    keeps what it has compiled. `options` are for the commands' processes."""
    source = os.environ.get(VARIABLE)
    if not source:
        raise Lacking(f"{VARIABLE} names no checkout of grafana/grafana-opentsdb-datasource")
    source = pathlib.Path(source).resolve()
    if not (source / "pkg" / "opentsdb" / "opentsdb.go").exists():
        raise Lacking(f"{VARIABLE}={source} is no checkout of grafana/grafana-opentsdb-datasource")
    with open(directory / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        overlay = directory / "overlay.json"
        overlay.write_text(json.dumps({"Replace": {str(source / "pkg" / "driver" / "main.go"): str(DRIVER)}}))
        flags = ["-buildvcs=false", "-overlay", str(overlay)]
        # All modules that it is made of have to be there first.
        listed = go(source, "list", "-deps", *flags, "./pkg/driver", **options)
        if listed.returncode != 0:
            why = (listed.stderr.splitlines() or ["?"])[-1]
            raise Lacking(f"the modules of Grafana's data source cannot be had: {why}")
        # Renamed into place: a program that runs cannot be written to.
        program = directory / "driver"
        built = go(source, "build", *flags, "-o", f"{program}.new", "./pkg/driver", **options)
        if built.returncode != 0:
            raise BuildError(f"go build failed:\n{built.stderr}")
        os.replace(f"{program}.new", program)
        return program
