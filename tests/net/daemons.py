"""Starts sonded as the Slurm plugin does: descriptors, launch packet, lifeline (launcher/launch.h).

Daemons are killed by close() at the latest; if this process dies they leave by themselves, since
their lifelines end. The programs are those of SONDE_PROGRAMS, else of SONDE_BUILD, as for
tests/cluster. Not thread-safe.
"""

import contextlib
import fcntl
import os
import pathlib
import select
import signal
import socket
import subprocess
import time

from waits import Waits

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release")).resolve()
PROGRAMS = pathlib.Path(os.environ.get("SONDE_PROGRAMS", BUILD)).resolve()
SONDED = PROGRAMS / "daemon" / "sonded"
# Of the next release, as far as this one can know it (tests/next_release).
NEXT_SONDED = PROGRAMS / "tests" / "next_release" / "daemon" / "sonded"
SONDE = PROGRAMS / "cli" / "sonde"
SANITIZED = (PROGRAMS / "reports").exists()
LIFELINE, LISTEN, APPLICATION = 3, 4, 5
PACKET = 32768


def packet(kind, values):
    return (kind + "".join(f"{key}={value}\n" for key, value in values.items())).encode()


class Daemon:
    """A sonded process in a space. `descriptors`: socket -> its number there; they are closed here."""

    waits = Waits()  # of all of them, for a processor

    def __init__(self, space, role, launch, descriptors, environment, program=SONDED):
        self.role = role
        self.exited = False
        self._report = b""
        self.lifeline, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptors = {theirs: LIFELINE, **descriptors}
        # Out of the way of the numbers they get.
        high = {fcntl.fcntl(s.fileno(), fcntl.F_DUPFD_CLOEXEC, 64): n for s, n in descriptors.items()}
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(3)]
        actions += [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in high.items()]
        arguments = [str(program), f"--{role}", f"{launch['job']}.{launch['step']}"]
        with space.inside():
            self.pid = os.posix_spawn(
                program, arguments, environment, file_actions=actions, setsid=True
            )
        self.waits.watch(self.pid)
        for fd in (null, *high):
            os.close(fd)
        for end in descriptors:
            end.close()
        self.send("L", launch)

    def send(self, kind, values):
        """As the plugin does: what a daemon that has ended does not take is dropped."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.lifeline.send(packet(kind, values))

    def kill(self):
        """As a node's death does: at once, nothing is delivered."""
        self.signal(signal.SIGKILL)
        self.wait_exit()

    def stop(self):
        self.signal(signal.SIGSTOP)

    def go_on(self):
        self.signal(signal.SIGCONT)

    def signal(self, number):
        if not self.exited:
            os.kill(self.pid, number)

    def finish(self):
        """Asks the daemon to deliver and leave; does not wait."""
        with contextlib.suppress(OSError):
            self.lifeline.shutdown(socket.SHUT_WR)

    def poll(self):
        """Whether the process has ended."""
        if not self.exited:
            self.exited = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        return self.exited

    def wait_exit(self, timeout=30.0):
        """`timeout`: seconds in which it is not made to wait for a processor."""
        began, waited = time.monotonic(), self.waits.seconds()
        while not self.poll():
            gone = time.monotonic() - began
            assert gone < timeout or gone < timeout + self.waits.seconds() - waited, (
                f"sonded --{self.role} does not end"
            )
            time.sleep(0.005)

    def report(self, timeout=30.0):
        """What the daemon says over its lifeline until it closes it."""
        deadline = time.monotonic() + timeout
        while True:
            wait = max(deadline - time.monotonic(), 0)
            assert select.select([self.lifeline], [], [], wait)[0], f"no end of the {self.role}"
            more = self.lifeline.recv(PACKET)
            if not more:
                return self._report.decode()
            if more[:1] == b"R":
                self._report += more[1:]

    # --- What it takes

    def memory(self):
        """Private memory in bytes."""
        return 1024 * int(self._proc("smaps_rollup").split("Private_Dirty:")[1].split()[0])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def processor_time(self):
        """Seconds."""
        fields = self._proc("stat").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def connections(self):
        """(local port, remote address, remote port) of the established connections of its space; and
        the ports that listen there."""
        established, listening = [], set()
        for line in self._proc("net/tcp").splitlines()[1:]:
            _, local, remote, state, *_ = line.split()
            if state == "0A":
                listening.add(port_of(local))
            elif state == "01":
                established.append((port_of(local), address_of(remote), port_of(remote)))
        return established, listening

    def _proc(self, name):
        return pathlib.Path(f"/proc/{self.pid}/{name}").read_text()

    def close(self):
        if not self.exited:
            self.kill()
        self.lifeline.close()


def port_of(text):
    return int(text.split(":")[1], 16)


def address_of(text):
    return socket.inet_ntoa(bytes.fromhex(text.split(":")[0])[::-1])


class Application:
    """app.c in a space: a process of the step that counts what it is told to."""

    def __init__(self, space, program, environment):
        with space.inside():
            self._process = subprocess.Popen(
                [program],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        self.pid = self._process.pid
        self.added = 0
        self.alive = True

    def wait_ready(self):
        assert self._process.stdout.readline() == "done\n", self._process.stderr.read()

    def add(self, number):
        self._tell(f"add {number}")
        self.added += number

    def set_level(self, value):
        self._tell(f"level {value}")

    def remark(self, text):
        self._tell(f"remark {text}")

    def chatter(self, gauges):
        """Sets so many gauges all the time from now on."""
        self._tell(f"chatter {gauges}")

    def _tell(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        self.wait_ready()

    def close(self):
        """Ends it; its wait status."""
        if self.alive:
            self.alive = False
            self._process.stdin.close()
            self._process.wait(5)
            self._process.stdout.close()
            self._process.stderr.close()
        return 0
