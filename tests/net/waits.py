"""How long daemons waited for a processor.

What is promised within a time is promised of daemons that may run. Where other programs have the
processors they are late by what they waited themselves, and that says the kernel: the second number
of /proc/PID/task/TID/schedstat, in ns (Linux, Documentation/scheduler/sched-stats.rst). Daemons wait
for one another too, so of several the sum counts. Not thread-safe.
"""

import contextlib
import pathlib

PROC = pathlib.Path("/proc")


class Waits:
    def __init__(self):
        self._watched = []
        self._seen = {}  # thread -> seconds; of those that ended what was seen last

    def watch(self, pid):
        """A process and its children."""
        self._watched.append(pid)

    def seconds(self):
        """Of all that are watched, since they began."""
        for pid in self._watched:
            self._look(pid)
        return sum(self._seen.values())

    def _look(self, pid):
        with contextlib.suppress(OSError):  # ended meanwhile
            for thread in (PROC / str(pid) / "task").iterdir():
                self._seen[thread] = int((thread / "schedstat").read_text().split()[1]) / 1e9
                for child in (thread / "children").read_text().split():
                    self._look(int(child))
