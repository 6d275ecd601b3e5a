#!/usr/bin/env python3
"""Writes dashboards/opentsdb/ and dashboards/prometheus/: each dashboard of tables/ for each data source.

make_dashboards.py [--check] LIST_METRICS

LIST_METRICS is the program of a build that prints the metrics, such as build/release/daemon/collect/list_metrics:
units and words are its own. With --check fails if a file is not what would be written, and writes nothing.
"""

import json
import pathlib
import sys

from generator import dashboard, opentsdb, prometheus
from generator.metrics import Metrics
from tables import DASHBOARDS

OUT = pathlib.Path(__file__).resolve().parent / "dashboards"


def files(metrics):
    """{path: text} of all."""
    made = {}
    for source in (opentsdb, prometheus):
        for one in DASHBOARDS:
            path = OUT / source.NAME / f"{one.uid.removeprefix('sonde-')}.json"
            made[path] = json.dumps(dashboard.make(one, metrics, source), indent=2, ensure_ascii=False) + "\n"
    return made


def main(arguments):
    check = arguments[:1] == ["--check"]
    programs = arguments[1:] if check else arguments
    if len(programs) != 1 or programs[0].startswith("-"):
        sys.exit(__doc__)
    made = files(Metrics(programs[0]))
    there = set(OUT.rglob("*.json"))
    if check:
        wrong = [path for path, text in made.items() if path not in there or path.read_text() != text]
        wrong += sorted(there - made.keys())
        if wrong:
            names = ", ".join(str(path.relative_to(OUT)) for path in wrong)
            sys.exit(f"not what {sys.argv[0]} writes: {names}; run it")
        return
    for path in there - made.keys():
        path.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
