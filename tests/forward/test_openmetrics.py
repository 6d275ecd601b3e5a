"""OpenMetrics text, read by Prometheus' own tools."""

import re
import shutil
import subprocess

import pytest
from conftest import same

ROWS = 200


def test_promtool_makes_blocks_of_it_that_have_every_sample(archive, tmp_path):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: scripts/deps install test")
    archive.add("1", ROWS)
    archive.add("2", 10, start=archive.start + 1000)
    file = tmp_path / "steps.om"
    done = archive.export("--all", "--to", file, "--scope", "node")
    assert done.returncode == 0, done.stderr
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", file,
                    tmp_path / "data"], check=True, capture_output=True)
    (tmp_path / "data" / "wal").mkdir()
    dump = subprocess.run(["promtool", "tsdb", "dump", tmp_path / "data"], check=True,
                          capture_output=True, text=True).stdout
    stored = {}
    for line in dump.splitlines():
        labels, value, time = re.match(r"\{(.*)\} (\S+) (\d+)$", line).groups()
        name, job, host = (re.search(rf'{key}="([^"]*)"', labels).group(1)
                           for key in ("__name__", "job", "host"))
        stored.setdefault(job, {}).setdefault((name, host), []).append((int(time), float(value)))
    same(stored["1.0"], archive.expected(ROWS, "node"))
    same(stored["2.0"], archive.expected(10, "node", start=archive.start + 1000))


def test_families_are_whole_and_described(archive):
    archive.add("1", 3)
    done = archive.export("1.0", "--to", "-")
    assert done.returncode == 0 and done.stderr == ""
    t = archive.start
    labels = 'cluster="frost",job="1.0"'
    assert done.stdout == f"""\
# TYPE app_heat gauge
# HELP app_heat What is \\"measured\\" as app_heat
app_heat{{{labels},user="ada"}} 0.625 {t + 1}.000
app_heat{{{labels},user="ada"}} 0.75 {t + 2}.000
app_heat{{{labels},user="ada"}} 0.875 {t + 3}.000
# TYPE task_cpu_seconds counter
# UNIT task_cpu_seconds seconds
# HELP task_cpu_seconds What is \\"measured\\" as task_cpu_seconds_total
task_cpu_seconds_total{{{labels},mode="user, =\\"1\\"",user="ada"}} 3 {t + 1}.000
task_cpu_seconds_total{{{labels},mode="user, =\\"1\\"",user="ada"}} 6 {t + 2}.000
task_cpu_seconds_total{{{labels},mode="user, =\\"1\\"",user="ada"}} 9 {t + 3}.000
# TYPE task_resident_memory_bytes gauge
# UNIT task_resident_memory_bytes bytes
# HELP task_resident_memory_bytes What is \\"measured\\" as task_resident_memory_bytes
task_resident_memory_bytes{{{labels},user="ada"}} 3000 {t + 1}.000
task_resident_memory_bytes{{{labels},user="ada"}} 3000 {t + 2}.000
task_resident_memory_bytes{{{labels},user="ada"}} 3000 {t + 3}.000
# EOF
"""


def test_a_file_that_cannot_be_written_is_said_and_none_is_left(archive, tmp_path):
    archive.add("1", 3)
    done = archive.export("1.0", "--to", tmp_path / "no" / "x.om")
    assert done.returncode == 1 and "No such file" in done.stderr
    assert list(tmp_path.glob("**/*.om*")) == []


def test_a_dry_run_counts_what_would_be_sent(archive):
    archive.add("1", ROWS)
    samples = sum(map(len, archive.expected(ROWS, "node").values()))
    done = archive.export("--all", "--to", "http://127.0.0.1:1/api/v1/write", "--scope", "node",
                          "--dry-run")
    assert done.stdout == f"1 profiles, {samples} samples of 6 series\n"
    assert not (archive.directory / "forward").exists()
