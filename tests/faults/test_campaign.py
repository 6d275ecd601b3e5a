"""A few rounds of scripts/faults; thousands are for the hand."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_what_was_acknowledged_is_there_after_random_faults():
    done = subprocess.run([ROOT / "scripts" / "faults", "--rounds", "16", "--seed", "1"],
                          capture_output=True, text=True, timeout=280)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 lost, 0 wrong rounds, 0 stuck" in done.stdout
