"""The session of docs/endpoints.md is what a user sees who types it."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))


def steps():
    """Pairs of a command and what it prints."""
    text = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
    session = text.split("```sh\n# A session", 1)[1].split("\n", 1)[1].split("```", 1)[0]
    setup, found, command = [], [], []
    for line in session.splitlines():
        if line.startswith("# "):
            found.append(("\n".join(command), line[2:]))
            command = []
        elif not command and re.match(r"[a-z]+=", line):
            setup.append(line)
        else:
            command.append(line)
    assert not command and len(found) >= 8
    return "\n".join(setup), found


@pytest.fixture
def server():
    process = subprocess.Popen(
        [BUILD / "cli" / "sonde", "serve", "--ephemeral", "--listen", "127.0.0.1:0", "--token", "T"],
        stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        yield address.group(0)
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0


def test_the_session_prints_what_the_page_says(server):
    setup, session = steps()
    for command, expected in session:
        done = subprocess.run(
            ["bash", "-euc", setup + "\n" + command], capture_output=True, text=True, timeout=30,
            env={**os.environ, "url": server, "token": "T"}, check=True)
        assert done.stdout == expected, command


def test_without_the_token_there_is_nothing(server):
    done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                           f"{server}/api/version"], capture_output=True, text=True, timeout=30,
                          check=True)
    assert done.stdout == "401"
