"""A node of a step without Slurm (step.py): its space, its daemon and its application, and the clock they go by.

Not thread-safe.
"""

import os
import secrets
import socket
import time

from daemons import APPLICATION, Application, Daemon

HEAD = "10.0.0.1"


class WallClock:
    """The wall clock of a daemon, which tests/net/skew.c makes: `ahead` seconds off, and set by set()."""

    def __init__(self, library, path, ahead):
        self._library, self._path, self._ahead = library, path, ahead
        path.write_bytes(bytes(16))

    def environment(self):
        return {
            "LD_PRELOAD": str(self._library), "SKEW_NS": str(int(self._ahead * 1e9)),
            "SKEW_FILE": str(self._path), "ASAN_OPTIONS": "verify_asan_link_order=0",
        }  # fmt: skip

    def set(self, ahead):
        self._write(0, ahead)

    def stand_still(self, seconds):
        """All clocks of the machine, as those of a guest that was paused, did for so long."""
        self._write(8, seconds)

    def _write(self, place, seconds):
        with self._path.open("r+b") as file:
            file.seek(place)
            file.write(int(seconds * 1e9).to_bytes(8, "little", signed=True))


class Node:
    """A node of the step: its space, its daemon and its application. `named`: else it goes by its
    address."""

    def __init__(self, step, node_id, space, clock, named=True):
        self.id = node_id
        self.space = space
        self.address = self.space.address
        self.host = f"n{node_id}" if named else self.address
        self.daemon = self.application = None
        self._log_begins = 0  # that of the daemon there is now
        self.lost = False  # killed, or cut off for good
        self.left = False  # asked to finish
        self.starts = 0
        self._gone_at = None  # it has finished: when that was seen first
        self._step = step
        self.clock = clock  # None: this machine's

    def start(self):
        """Once more after kill(): as on a node that was started anew."""
        name = f"sonde/net/{os.getpid()}.{secrets.token_hex(4)}"
        with self.space.inside():
            door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            door.bind(f"\0{name}")
            door.listen(64)
            door.setblocking(False)
        launch = self._step.launch("node") | {
            "host": self.host, "node_id": self.id, "local_tasks": 1, "tasks": self._step.size,
            "head_host": HEAD, "head_port": self._step.port, "socket": name,
            "archive": self._step.archive_of(self.host),
        }  # fmt: skip
        environment = self._step.environment()
        if self.clock:
            environment |= self.clock.environment()
        self._log_begins = len(self._step.log_of(self.host))
        self.starts += 1
        self.daemon = Daemon(
            self.space, "node", launch, {door: APPLICATION}, environment, self._step.sonded(self.id)
        )
        inside = {"SONDE_SOCKET": name, "SONDE_LEVEL": "1", "SLURM_PROCID": str(self.id)}
        inside |= {"LD_LIBRARY_PATH": str(self._step.library)}
        self.application = Application(self.space, self._step.program, inside)
        self.daemon.send("T", {"rank": self.id, "local": 0, "pid": self.application.pid})
        self.lost = self.left = False

    @property
    def alive(self):
        return self.daemon is not None and not self.lost and not self.left

    def add(self, number):
        self.application.add(number)
        self._step.injected += number

    def gone_at(self):
        """When it was first seen, here, that its daemon has left; None if it has not."""
        if self._gone_at is None and self.left and self.daemon.poll():
            self._gone_at = time.time()
        return self._gone_at

    def log(self):
        """The lines of this node's daemon, not of one before it."""
        return self._step.log_of(self.host)[self._log_begins :]

    # --- Faults

    def kill(self):
        """The node dies: its daemon, and its application with it."""
        self.lost = True
        self._step.deaths.append((time.monotonic(), self.application.added, self))
        self.daemon.kill()
        self.application.close()

    def leave(self):
        """Its task ends and the daemon is asked to deliver and go; does not wait. The task may have ended
        before: so many nodes leave in one moment."""
        self.left = True
        status = self.application.close()
        self.daemon.send("X", {"rank": self.id, "status": status})
        self.daemon.finish()

    def cut(self, other, **rule):
        """One way, from here to `other`: nothing arrives any more, or as Wires.rule says."""
        self._step.wires.rule(self.address, other.address, **(rule or {"drop": 1.0}))

    def mend(self, other):
        self._step.wires.rule(self.address, other.address)

    def close(self):
        if self.daemon is not None:
            self.daemon.close()
            self.application.close()
