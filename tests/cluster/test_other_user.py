"""Another user of the same machines sees nothing of a step's telemetry and disturbs nothing."""

import re
import subprocess

import pytest
from conftest import OTHER_USER, sonded_processes
from telemetry import LEVEL, Step, complete, job_of, notes_of

GARBAGE = """
import os, socket, sys
port = int(sys.argv[1])
# Nonsense, a length beyond every bound, a truncated message, and then many that say nothing.
for what in (os.urandom(4096), b"\\xff\\xff\\xff\\xff\\x01", b"\\x28\\0\\0\\0\\x01\\x01\\0\\0\\0", b""):
    s = socket.create_connection(("127.0.0.1", port), 5)
    s.sendall(what)
    s.settimeout(2)
    if what[:4] != b"":
        try:
            s.shutdown(socket.SHUT_WR)
            answer = s.recv(4096)
        except OSError:
            answer = b""
        assert len(answer) < 200, answer
silent = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(100)]
print("done")
"""

# A hello as libsonde sends it needs the memory; a stranger is refused before anything is read.
STRANGER = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("\\0" + sys.argv[1])
s.settimeout(10)
try:
    s.send(b"hello")
    print(repr(s.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def step(cluster):
    """A step of two nodes, over libfabric."""
    log_dir = cluster.dir / "tmp" / "sonde-test1"
    cluster.conf(f"provider = tcp\nfabric_after = 50ms\nlog_dir = {log_dir}\nlog_level = debug\n")
    running = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "120"])
    running.wait_nodes(2)
    yield running
    if running.process.poll() is None:
        cluster.slurm("scancel", running.job)
        running.wait()
    cluster.wait_clean()


def daemons(step):
    return {
        pid: command.split()[1].removeprefix("--")
        for pid, command in sonded_processes()
        if command.endswith(step.id)
    }


def as_other(cluster, words):
    return cluster.run(words, user=OTHER_USER)


def test_archive_and_logs_are_closed(cluster, step):
    root = cluster.archive()
    paths = [root, *root.rglob("*"), *(cluster.dir / "tmp" / "sonde-test1").glob("sonded.*")]
    assert len(paths) > 5
    for path in paths:
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path} has mode {mode:o}"
    assert as_other(cluster, ["ls", root]).returncode != 0


def test_http_is_closed_to_those_without_the_token(cluster, step):
    live = step.live()
    url = f"http://127.0.0.1:{live.port}/metrics"
    code = f"import urllib.request; print(urllib.request.urlopen({url!r}).status)"
    assert "HTTP Error 401" in as_other(cluster, ["/usr/bin/python3", "-c", code]).stderr


def test_processes_are_closed(cluster, step):
    found = daemons(step)
    assert sorted(found.values()) == ["head", "node", "node"]
    for pid in found:
        for name in ("environ", "mem", "maps", "fd", "exe"):
            reading = f"import os; p = '/proc/{pid}/{name}'; os.listdir(p) if os.path.isdir(p) else "
            reading += "os.readlink(p) if os.path.islink(p) else open(p).read()"
            for user in (OTHER_USER, "sonde-test1"):
                done = cluster.run(["/usr/bin/python3", "-c", reading], user=user)
                assert "PermissionError" in done.stderr, f"{user} may read {name}"
        command = open(f"/proc/{pid}/cmdline", encoding="ascii").read()
        assert not re.search("[0-9a-f]{32}", command)


def test_application_socket_refuses_others(cluster, step):
    lines = open("/proc/net/unix", encoding="ascii").read()
    names = re.findall(rf"@(sonde/\S*/{re.escape(step.id)}\.\S+)", lines)
    assert len(set(names)) == 4, "one for metrics and one for questions, of each node"
    for name in set(names):
        done = as_other(cluster, ["/usr/bin/python3", "-c", STRANGER, name])
        assert done.stdout.strip() in ("b''", "ConnectionResetError", "BrokenPipeError"), done


def test_ports_take_no_strangers(cluster, step):
    ports = set()
    for pid in daemons(step):
        listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True).stdout
        for line in listening.splitlines():
            if f"pid={pid}," in line:
                ports.add(int(line.split()[3].rsplit(":", 1)[1]))
    ports.discard(step.live().port)
    assert len(ports) >= 2, "the rendezvous and the fabric's port of the head"
    for port in ports:
        done = as_other(cluster, ["/usr/bin/python3", "-c", GARBAGE, str(port)])
        assert done.stdout == "done\n", done.stderr


def test_the_step_does_not_notice(cluster, step):
    """Last: after all of this it is complete."""
    step.wait_nodes(2)
    cluster.slurm("scancel", step.job)
    step.wait()
    shown = step.profile()
    assert job_of(shown)["state"] == "cancelled" and len(job_of(shown)["nodes"]) == 2
    assert complete(shown) and not notes_of(shown)
