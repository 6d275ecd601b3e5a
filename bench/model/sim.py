"""A small discrete-event simulator: events in the order of time, and servers with a queue each."""

import heapq
import itertools


class Sim:
    """Calls functions at their times; `now` is the time in seconds."""

    def __init__(self):
        self.now = 0.0
        self._events = []
        self._order = itertools.count()

    def at(self, time, function, *arguments):
        heapq.heappush(self._events, (max(time, self.now), next(self._order), function, arguments))

    def after(self, delay, function, *arguments):
        self.at(self.now + delay, function, *arguments)

    def run(self, until=float("inf")):
        while self._events and self._events[0][0] <= until:
            self.now, _, function, arguments = heapq.heappop(self._events)
            function(*arguments)


class Server:
    """Does one thing after the other: a daemon's thread, or a network interface."""

    __slots__ = ("sim", "free", "busy")

    def __init__(self, sim):
        self.sim = sim
        self.free = 0.0  # when what it was given so far is done
        self.busy = 0.0  # seconds of work so far

    def work(self, seconds):
        """Gives it work now; when that is done."""
        self.free = max(self.free, self.sim.now) + seconds
        self.busy += seconds
        return self.free
