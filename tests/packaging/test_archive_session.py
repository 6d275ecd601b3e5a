"""The session of docs/archive.md is what a user sees who types it."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))


def session():
    """The commands, and what they print; ... in it is anything."""
    text = (ROOT / "docs" / "archive.md").read_text(encoding="utf-8")
    lines = text.split("```sh\n# A session", 1)[1].split("\n", 1)[1].split("```", 1)[0].splitlines()
    commands = [line for line in lines if not line.startswith("# ")]
    printed = [line[2:] for line in lines if line.startswith("# ")]
    assert len(commands) >= 15 and len(printed) >= 10
    return "\n".join(commands), printed


def test_the_session_prints_what_the_page_says(tmp_path):
    commands, printed = session()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    environment.update(PATH=f"{BUILD / 'cli'}:{os.environ['PATH']}", HOME=str(tmp_path),
                       SONDE_ARCHIVE=str(tmp_path / "archive"), LC_ALL="C.UTF-8", COLUMNS="200",
                       SONDE_SONDED=os.environ.get("SONDE_SONDED", str(BUILD / "daemon" / "sonded")))
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        # Where a command fails the server is still there.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, err
    expected = "\n".join(re.escape(line).replace(re.escape("..."), ".*") for line in printed)
    assert re.fullmatch(expected, out.rstrip("\n")), out
