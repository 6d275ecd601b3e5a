"""The profiles of every release are read as they always were, and a damaged one costs nothing else.

SONDE_DAMAGES says how many damages are tried (40 unless set), SONDE_SEED where they begin.
"""

import contextlib
import difflib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import urllib.request

import answers
import pytest

CORPUS = pathlib.Path(__file__).resolve().parent
sys.path.append(str(CORPUS.parent / "net"))
import profile_file  # noqa: E402  (of tests/net, for which the path had to be set)

RELEASES = sorted(path.parent for path in CORPUS.glob("*/archive.tar.gz"))
JOINED = CORPUS / "joined"  # of steps as large ones are, whose blocks of several nodes are one record
NEWEST = [path for path in RELEASES if path != JOINED][-1]
DAMAGES = int(os.environ.get("SONDE_DAMAGES", "40"))
SEED = int(os.environ.get("SONDE_SEED", "1"))
FINE, DAMAGED, NOT_LOOKED = 0, 1, 4


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_profiles_of_a_release_are_read_without_a_difference(release, tmp_path):
    found = answers.of(answers.unpack(release, tmp_path))
    for name, text in found.items():
        expected = (release / name).read_text(encoding="utf-8")
        difference = difflib.unified_diff(expected.splitlines(), text.splitlines(), name, "now", lineterm="")
        assert text == expected, "\n".join(list(difference)[:40])
    assert answers.sonde(tmp_path / "archive", "archive", "verify").returncode == FINE


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_profiles_of_a_release_come_back_from_every_change(release, tmp_path):
    archive = answers.unpack(release, tmp_path)
    before = answers.of(archive)
    listed = json.loads(answers.said(archive, "ls", "--all", "--json"))
    for one in listed:
        step = answers.name_of(one["job"])
        answers.said(archive, "tag", step, "moved")
        answers.said(archive, "tag", step, "--remove", "moved")
        answers.said(archive, "export", step, "--to", tmp_path / f"{step}.sonde")
    answers.said(archive, "archive", "repair")
    assert answers.of(archive) == before
    other = tmp_path / "other"
    for one in listed:
        answers.said(other, "import", tmp_path / f"{answers.name_of(one['job'])}.sonde")
    assert answers.of(other) == before
    assert answers.sonde(other, "archive", "verify").returncode == FINE


def test_joined_blocks_have_what_each_node_counted(tmp_path):
    archive = answers.unpack(JOINED, tmp_path)
    listed = json.loads(answers.said(archive, "ls", "--all", "--json"))
    assert len(listed) == 2
    for one in listed:
        step = answers.name_of(one["job"])
        answers.said(archive, "export", step, "--to", tmp_path / f"{step}.sonde")
        records = profile_file.joined_records(tmp_path / f"{step}.sonde")
        assert any(len({node for node, _, _ in record}) > 1 for record in records)
        counted, levels = {}, {}
        lines = answers.said(archive, "export", step, "--scope", "node", "--to", "jsonl:-").splitlines()
        for told in map(json.loads, lines):
            if told.get("metric") == "work_done_total":
                counted[told["tags"]["host"]] = told["values"][-1]
            if told.get("metric") == "work_level":
                levels[told["tags"]["host"]] = set(told["values"])
        assert counted == {f"n{i}": i + 0.125 for i in range(20)}
        assert levels == {f"n{i}": {0.5 + i / 4} for i in range(20)}


def test_verify_says_by_its_exit_status_that_it_could_not_look(tmp_path):
    done = answers.sonde(tmp_path / "nothing", "archive", "verify")
    assert done.returncode == NOT_LOOKED and "No such file" in done.stderr


def damage(file, chance):
    """One byte or more of a file is wrong, or the file is gone; what was done."""
    data = bytearray(file.read_bytes())
    how = chance.choice(["flip", "flip", "flip", "cut", "zero", "gone"]) if data else "gone"
    at = chance.randrange(len(data)) if data else 0
    if how == "gone":
        file.unlink()
        return f"{file.name} gone"
    if how == "flip":
        data[at] ^= chance.randrange(1, 256)
    elif how == "zero":
        data[at : at + 512] = bytes(len(data[at : at + 512]))
    else:
        del data[at:]
    file.write_bytes(data)
    return f"{file.name} {how} at {at} of {len(data)}"


@contextlib.contextmanager
def serving(archive):
    words = [answers.SONDE, "--archive", archive, "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            line = ""
            while "http" not in line:
                line = server.stdout.readline()
                assert line, server.stderr.read()
            url, token = line.split("Open ")[1].split()[0].split("/#token=")
            yield lambda path: urllib.request.urlopen(
                urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"}), timeout=20
            ).read()
            assert server.poll() is None, server.stderr.read()
        finally:
            server.terminate()


def test_a_damaged_archive_opens_and_shows_the_rest(tmp_path):
    chance = random.Random(SEED)
    good = answers.unpack(NEWEST, tmp_path / "good")
    files = sorted(path.relative_to(good) for path in good.rglob("*") if path.is_file())
    counts = {FINE: 0, DAMAGED: 0}
    told = 0  # by servers
    steps = {path.name.split("~")[0] for path in (good / "live").iterdir()}
    for n in range(DAMAGES):
        archive = tmp_path / "archive"
        shutil.rmtree(archive, ignore_errors=True)
        shutil.copytree(good, archive)
        done_to = damage(archive / files[n % len(files)], chance)
        case = f"seed {SEED}, damage {n}: {done_to}"
        verified = answers.sonde(archive, "archive", "verify", "--json")
        assert verified.returncode in counts, f"{case}: {verified.returncode} {verified.stderr}"
        counts[verified.returncode] += 1
        report = json.loads(verified.stdout)
        assert (verified.returncode == DAMAGED) == bool(report["problems"]), case
        assert all(problem["what"] for problem in report["problems"]), case
        if n % 4 == 0:
            with serving(archive) as get:
                jobs = [job["jobid"] for job in json.loads(get("/job/list?limit=1000")) if job["start_time"]]
                passed_over = json.loads(get("/api/v1/damage"))["damage"]
            listed = answers.sonde(archive, "ls", "--all", "--json")
            assert sorted(jobs) == sorted(
                f"{one['job']['job']}.{one['job']['step']}" for one in json.loads(listed.stdout)
            ), case
            assert not passed_over or verified.returncode == DAMAGED, case
            told += bool(passed_over)
        listed = answers.sonde(archive, "ls", "--all", "--json")
        assert listed.returncode == 0, f"{case}: {listed.stderr}"
        found = {one["key"] for one in json.loads(listed.stdout)}
        if str(files[n % len(files)]).startswith("live/"):
            assert len(found) == 7, f"{case}: {found}"
        else:
            assert found >= steps, f"{case}: {found}"
        for one in json.loads(listed.stdout):
            shown = answers.sonde(archive, "show", answers.name_of(one["job"]))
            assert shown.returncode in (0, 1), f"{case}: {shown.returncode} {shown.stderr}"
            assert shown.stdout or shown.stderr, case
    assert counts[DAMAGED] >= DAMAGES / 4, counts
    assert told >= DAMAGES / 40
