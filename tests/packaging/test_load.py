"""scripts/load runs tests beside busy loops, names what failed and leaves no loop behind."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Fails every second time.
IN_TURN = 'if [ -e "$0" ]; then rm "$0"; exit 1; fi; touch "$0"'


def load(build, *words):
    return subprocess.run(
        [ROOT / "scripts" / "load", *words], env={**os.environ, "SONDE_BUILD": str(build)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


def below(marker):
    """Command lines of living processes that have this in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if marker in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def make_tests(build):
    """good passes, in_turn fails in the second run, and beside tells who runs meanwhile."""
    tests = {"good": ["true"], "in_turn": ["sh", "-c", IN_TURN, build / "turn"],
             "beside": ["sh", "-c", 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n" > "$0"; true', build / "beside"]}
    lines = [f"add_test({name} {' '.join(f'[==[{word}]==]' for word in words)})" for name, words in tests.items()]
    (build / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")


def test_what_failed_is_named_with_how_often(tmp_path):
    make_tests(tmp_path)
    done = load(tmp_path, "2", "-R", ".")
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith("== runs: 2, without a failure: 1\n      1 in_turn\n"), done.stdout
    loops = (tmp_path / "beside").read_text().splitlines().count("while :; do :; done")
    assert loops >= 2 * len(os.sched_getaffinity(0))
    assert below(f"SONDE_BUILD={tmp_path}".encode()) == []


def test_all_passed(tmp_path):
    make_tests(tmp_path)
    done = load(tmp_path, "1", "-R", "good")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("== runs: 1, without a failure: 1\n"), done.stdout


def test_a_selection_without_tests_is_an_error(tmp_path):
    make_tests(tmp_path)
    done = load(tmp_path, "-R", "nothing")
    assert done.returncode == 1 and "== runs" not in done.stdout, done.stdout
