"""What the programs of SONDE_BUILD read of an archive: texts, by the names of the files that keep them."""

import csv
import io
import json
import math
import os
import pathlib
import subprocess
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))
SONDE = BUILD / "cli" / "sonde"


def unpack(release, directory):
    """The archive of a release's corpus, in `directory`."""
    with tarfile.open(release / "archive.tar.gz") as tar:
        tar.extractall(directory)  # made by scripts/corpus
    return directory / "archive"


def sonde(archive, *words, columns=100):
    env = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": str(columns), "NO_COLOR": "1"}
    return subprocess.run(
        [SONDE, "--archive", archive, *words],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def said(archive, *words, columns=100):
    done = sonde(archive, *words, columns=columns)
    assert done.returncode == 0, f"sonde {words}: {done.stderr}"
    return done.stdout


def sums(archive, scope):
    """Of every series of every profile how many values it has, and their exact sum."""
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        said(archive, "export", "--all", "--quiet", "--to", f"csv:{directory}/", "--scope", scope)
        for file in sorted(pathlib.Path(directory).iterdir()):
            names, *rows = csv.reader(io.StringIO(file.read_text(encoding="utf-8")))
            lines.append(f"== {file.name} {scope}: {len(rows)} rows\n")
            for i, name in enumerate(names[1:], 1):
                values = [float(row[i]) for row in rows if row[i]]
                lines.append(f"{name}: {len(values)} values, {math.fsum(values)!r}\n")
    return "".join(lines)


def lines_of(value, path=""):
    """A line for each list and each object without others in it; without help texts, which are long."""
    if isinstance(value, dict):
        value = {name: member for name, member in value.items() if name != "help"}
        inner = {name: m for name, m in value.items() if isinstance(m, (dict, list)) and name != "tags"}
        value = {name: m for name, m in value.items() if name not in inner}
        own = f"{path} {json.dumps(value, sort_keys=True)}\n" if value else ""
        return own + "".join(lines_of(m, f"{path}.{name}") for name, m in sorted(inner.items()))
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return "".join(lines_of(one, f"{path}[{i}]") for i, one in enumerate(value))
    return f"{path} {json.dumps(value)}\n"


def name_of(job):
    """What finds this step alone."""
    array = job["array_job"]
    return f"{array}_{job['array_task']}.{job['step']}" if array else f"{job['job']}.{job['step']}"


def of(archive):
    listed = json.loads(said(archive, "ls", "--all", "--json"))
    answers = {"ls.txt": said(archive, "ls", "--all", columns=200)}
    steps = [name_of(one["job"]) for one in listed]
    answers["reports.txt"] = "".join(f"== {step}\n" + said(archive, "show", step) for step in steps)
    profiles = {step: json.loads(said(archive, "show", step, "--json"))["profile"] for step in steps}
    answers["profiles.txt"] = "".join(f"== {step}\n" + lines_of(profiles[step]) for step in steps)
    answers["series.txt"] = sums(archive, "job") + sums(archive, "node")
    return answers
