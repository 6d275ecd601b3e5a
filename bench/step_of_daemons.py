"""A step without Slurm: real daemons on this machine, started as the plugin starts them.

The head and N node daemons get their launch packets over lifelines (launcher/launch.h). All nodes watch
the same idle process as their task. Everything is ended by pid; if this process is killed, the
lifelines close and the daemons end by themselves.
"""

import contextlib
import json
import os
import pathlib
import resource
import secrets
import signal
import socket
import subprocess
import tempfile
import time

from private_cluster import BUILD, SONDED

LIFELINE, LISTEN = 3, 4
JOB, STEP = 4711, "0"
SPARE_DESCRIPTORS = 64
# Beyond what a daemon takes to leave (slurmstepd waits for 2 s) on a machine that all share.
END_PATIENCE_S = 60
PASSED_ON = ("LD_PRELOAD", "LD_LIBRARY_PATH")


def packet(kind, **values):
    lines = "".join(f"{key}={value}\n" for key, value in values.items())
    return (kind + lines).encode()


class Daemon:
    """One sonded, with the launcher's end of its lifeline."""

    def __init__(self, role, launch, log, listen=None):
        self.lifeline, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [(os.POSIX_SPAWN_OPEN, fd, log, flags, 0o600) for fd in (1, 2)]
        actions.append((os.POSIX_SPAWN_DUP2, theirs.fileno(), LIFELINE))
        if listen is not None:
            actions.append((os.POSIX_SPAWN_DUP2, listen.fileno(), LISTEN))
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        argv = [str(SONDED), f"--{role}", f"{JOB}.{STEP}"]
        self.pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
        theirs.close()
        self.proc = pathlib.Path(f"/proc/{self.pid}")
        self.lifeline.send(packet("L", role=role, job=JOB, step=STEP, **launch))

    def finish(self):
        with contextlib.suppress(OSError):
            self.lifeline.shutdown(socket.SHUT_WR)

    def report(self):
        """What it sends until it closes the lifeline: pieces of the closing report."""
        text = b""
        while piece := self.lifeline.recv(65536):
            if piece[:1] == b"R":
                text += piece[1:]
        return text.decode()

    def end(self, patience):
        """Waits for it, kills it when patience is at its end. Gives what it has used in all."""
        deadline = time.monotonic() + patience
        while (ended := os.wait4(self.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                ended = os.wait4(self.pid, 0)
                break
            time.sleep(0.005)
        self.used = ended[2]
        return self.used


def keep_low_descriptors_free():
    """dup2 onto itself would leave a descriptor that closes on exec."""
    for _ in range(LISTEN + 2):
        fd = os.open("/dev/null", os.O_RDONLY)
        if fd > LISTEN + 2:
            os.close(fd)


def make_room(nodes):
    wanted = nodes + SPARE_DESCRIPTORS
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        raise SystemExit(f"{nodes} daemons need {wanted} open files, the limit is {hard}: ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Step:
    """Head and nodes; `started` is when the first of them was spawned."""

    def __init__(self, nodes, level=2, conf="", period_ns=10**9):
        self.nodes_wanted = nodes
        self.level, self.conf, self.period_ns = level, conf, period_ns
        self.head = None
        self.nodes = []
        self.task = None
        self.directory = None

    def __enter__(self):
        make_room(self.nodes_wanted)
        keep_low_descriptors_free()
        self.directory = tempfile.TemporaryDirectory(prefix="sonde-step-")
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        path = pathlib.Path(self.directory.name)
        (path / "sonde.conf").write_text("http_port = 0\n" + self.conf)
        self.task = subprocess.Popen(["cat"], env={}, stdin=subprocess.PIPE)  # ends with us
        listen = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = listen.getsockname()[1]
        common = {
            "cluster": "bench", "job_name": "tree", "user": "bench", "uid": os.getuid(),
            "command": "cat", "home": path, "archive": path / "archive",
            "host": "head", "nodes": self.nodes_wanted, "tasks": self.nodes_wanted, "level": self.level,
            "period": self.period_ns, "key": secrets.token_hex(32), "config": path / "sonde.conf",
        }  # fmt: skip
        self.started = time.monotonic()
        log = path / "log"
        self.head = Daemon("head", common, log, listen)
        listen.close()
        for index in range(self.nodes_wanted):
            place = {"node_id": index, "host": f"n{index}", "local_tasks": 1}
            place |= {"head_host": "127.0.0.1", "head_port": self.port}
            node = Daemon("node", common | place, log)
            node.lifeline.send(packet("T", rank=index, local=0, pid=self.task.pid))
            self.nodes.append(node)

    def __exit__(self, *_):
        """All end, the nodes first, as with srun."""
        self.finish()
        for daemon in [*self.nodes, *([self.head] if self.head else [])]:
            daemon.lifeline.close()
            daemon.end(END_PATIENCE_S)
        if self.task is not None:
            self.task.kill()
            self.task.wait()
        self.directory.cleanup()

    def finish(self):
        """Tells all to finish; gives the closing report."""
        nodes, self.nodes = self.nodes, []
        for node in nodes:
            with contextlib.suppress(OSError):
                node.lifeline.send(packet("X", rank=0, status=0))
            node.finish()
        for node in nodes:
            node.lifeline.close()
            node.end(END_PATIENCE_S)
        if self.head is None:
            return ""
        head, self.head = self.head, None
        head.finish()
        with contextlib.suppress(OSError):
            head.lifeline.settimeout(END_PATIENCE_S)
            report = head.report()
            head.end(END_PATIENCE_S)
            return report
        head.end(0)  # it did not end by itself
        return ""

    def endpoint(self):
        """Host, port and token of the running head's web server; None while there is none."""
        for found in pathlib.Path(self.directory.name).glob("archive/live/*/endpoint.json"):
            with contextlib.suppress(ValueError):
                return json.loads(found.read_text())
        return None
