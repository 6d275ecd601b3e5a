"""`syslog = yes`: what reaches the system's log, for which a socket of the test's stands in a mount namespace."""

import re
import socket
import subprocess

import pytest
from daemons import SONDE

# A /dev with what programs need of it, and with the test's socket as the system's log.
WITH_LOG = """set -e
mount -t tmpfs sonde "$1"
for name in null zero full random urandom; do
  : >"$1/$name"
  mount --bind "/dev/$name" "$1/$name"
done
mkdir "$1/shm"
mount --bind /dev/shm "$1/shm"
: >"$1/log"
mount --bind "$2" "$1/log"
mount --move "$1" /dev
shift 2
exec "$@"
"""


@pytest.fixture
def run(tmp_path):
    """Runs a step with these lines of sonde.conf, and gives what the system's log gets of it."""

    def run(conf):
        (tmp_path / "dev").mkdir()
        (tmp_path / "sonde.conf").write_text(conf)
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        log.bind(str(tmp_path / "log"))
        script = ["unshare", "--mount", "sh", "-c", WITH_LOG, "sh", tmp_path / "dev", tmp_path / "log"]
        step = [SONDE, "--config", tmp_path / "sonde.conf", "run", "true"]
        subprocess.run(
            [*script, "env", f"SONDE_ARCHIVE={tmp_path}/archive", f"HOME={tmp_path}", *step], check=True
        )
        lines = []
        while True:
            try:
                lines.append(log.recv(65536).decode())
            except BlockingIOError:
                log.close()
                return lines

    return run


def test_errors_of_a_daemon_reach_the_systems_log(run, tmp_path):
    """<11>: an error of a user's program."""
    lines = run("syslog = yes\nfanout = many\n")
    who = r"<1[12]>\w{3} [ \d]\d [\d:]{8} sonded\[\d+\]: (?:error|warning): "
    assert lines and all(re.match(who, line) for line in lines), lines
    wrong = rf"{re.escape(str(tmp_path))}/sonde.conf:2: fanout = many: .*; left out"
    assert lines[0].startswith("<11>") and re.fullmatch(who + wrong, lines[0]), lines


def test_nothing_reaches_it_unless_the_site_asks_for_it(run):
    assert run("fanout = many\n") == []
