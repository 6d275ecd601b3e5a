"""Fixtures for tests of libsonde's languages: programs under `sonde run`, which needs no Slurm.

SONDE_BUILD names the build directory, build/release unless set. Every test has an archive of its
own. Programs are watched every 20 ms; none has to live that long, for what a program sets is
recorded when it ends.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import made  # noqa: E402  (of tests/, for which the path had to be set)

BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release")).resolve()
SONDE = BUILD / "cli" / "sonde"
PACKAGE = BUILD / "libclient" / "python"
# The distribution's: what a cluster's users have.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def made_python(name):
    """The interpreter of an environment that scripts/prepare makes; a test without it is skipped."""
    place = made.place(name)
    if place is None:
        pytest.skip(made.why(name))
    return place / "bin" / "python"


def environment(**more):
    """That of a program which knows nothing of the step that the tests may run in."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SONDE_", "SLURM_", "PMI"))}
    return {**kept, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", **more}


class Watched:
    """A program that has run under `sonde run`, and its profile."""

    def __init__(self, done, shown, sonde):
        self.returncode, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        self.profile = shown["profile"]
        self.sonde = sonde

    def entries(self, metric):
        return [entry for entry in self.profile["footprint"] if entry["metric"] == metric]

    def entry(self, metric, **tags):
        """The footprint of one series."""
        found = [e for e in self.entries(metric) if tags.items() <= e["tags"].items()]
        assert len(found) == 1, (metric, tags, [e["metric"] for e in self.profile["footprint"]])
        return found[0]

    def last(self, metric, **tags):
        return self.entry(metric, **tags)["last"]

    def distribution(self, metric):
        """What a histogram came to."""
        (found,) = [d for d in self.profile["moments"]["distributions"] if d["metric"] == metric]
        return found

    def figures(self):
        return {f["name"]: (f["value"], f["unit"]) for f in self.profile["job"]["figures"]}

    def remarks(self):
        return [remark["text"] for remark in self.profile["moments"]["remarks"]]

    def points(self, metric):
        """The values of a metric that one series has, by their seconds since 1970."""
        lines = self.export("jsonl:-", metric)
        found = [one for one in map(json.loads, lines) if "values" in one]
        assert len({json.dumps(one["tags"]) for one in found}) == 1, found
        return {round(t / 1e9, 3): v for one in found for t, v in zip(one["times"], one["values"])}

    def export(self, to, metric):
        """The lines that `sonde export` writes of each node's series of a metric."""
        words = ["export", "--all", "--quiet", "--to", to, "--scope", "node", "--metrics", metric]
        done = run(*self.sonde, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def phases(self):
        """How often each began and ended."""
        counts = {}
        for phase in self.profile["moments"]["phases"]:
            began, ended = counts.get(phase["name"], (0, 0))
            counts[phase["name"]] = (began + phase["began"], ended + phase["ended"])
        return counts


class Watch:
    def __init__(self, archive):
        self.archive = archive

    def __call__(self, *command, level=1, env=None, timeout=60):
        """Runs a command to its end under telemetry."""
        sonde = [SONDE, "--archive", self.archive, "--config", os.devnull]
        watch = ["run", "--quiet", "--level", str(level), "--period", "20ms", "--"]
        done = run(*sonde, *watch, *command, env=env, timeout=timeout)
        shown = run(*sonde, "show", "--json")
        assert shown.returncode == 0, done.stderr + shown.stderr
        return Watched(done, json.loads(shown.stdout), sonde)

    def python(self, program, *arguments, interpreter=PYTHON, **options):
        """The same with a Python program, which must succeed."""
        done = self(interpreter, "-c", program, *arguments, **options)
        assert done.returncode == 0, done.stderr
        return done


def run(*command, env=None, timeout=60, **options):
    return subprocess.run(
        [str(word) for word in command],
        env=environment(**(env or {})),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )


def run_python(program, *arguments, interpreter=PYTHON, **options):
    """A Python program without telemetry."""
    return run(interpreter, "-c", program, *arguments, **options)


def interpreters():
    """Every Python from 3.9 on that this machine has."""
    found = {}
    places = [pathlib.Path("/usr/bin"), *pathlib.Path.home().glob(".pyenv/versions/*/bin")]
    for path in sorted(p for place in places for p in place.glob("python3")):
        asked = run(path, "-c", "import sys; print(*sys.version_info[:2])")
        if asked.returncode == 0:
            version = tuple(map(int, asked.stdout.split()))
            if version >= (3, 9):
                found.setdefault(version, path)
    return [pytest.param(path, id=".".join(map(str, v))) for v, path in sorted(found.items())]


@pytest.fixture
def watch(tmp_path):
    return Watch(tmp_path / "archive")
