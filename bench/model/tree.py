"""The tree as the model sees it: who is whose child, and what each node and link can do."""

import random

import constants as c
from sim import Server, Sim

HEAD = -1


def parent_of(index):
    return HEAD if index < c.FANOUT else index // c.FANOUT - 1


def children_of(index, nodes):
    first = (index + 1) * c.FANOUT
    return range(first, min(first + c.FANOUT, nodes))


def depth_of(index):
    depth = 1
    while (index := parent_of(index)) != HEAD:
        depth += 1
    return depth


class Node:
    """A daemon: its thread, and what comes in over its network interface."""

    __slots__ = ("index", "parent", "children", "loop", "wire", "bytes_in", "alive", "skew")

    def __init__(self, sim, index, nodes):
        self.index = index
        self.parent = parent_of(index)
        self.children = len(children_of(index, nodes))
        self.loop = Server(sim)
        self.wire = Server(sim)
        self.bytes_in = 0
        self.alive = True
        self.skew = 0.0


class Tree:
    """All daemons of a step; the last one of `daemons` is the head, so daemons[HEAD] is it."""

    def __init__(self, nodes, seed=1):
        self.sim = Sim()
        self.random = random.Random(seed)
        self.nodes = nodes
        self.daemons = [Node(self.sim, index, nodes) for index in range(nodes)]
        head = Node(self.sim, HEAD, nodes)
        head.children = min(c.FANOUT, nodes)
        self.daemons.append(head)
        for daemon in self.daemons:
            daemon.skew = self.random.gauss(0, c.CLOCK_SKEW)

    def wake_up(self):
        """How late a timer is."""
        late = self.random.expovariate(1 / c.WAKE_UP)
        if self.random.random() < c.BUSY_WAKE_UPS:
            late += self.random.uniform(0, c.SLICE)
        return late

    def send(self, to, size, arrived, *arguments):
        """A message to the daemon `to`; it is told when the last byte is there."""
        daemon = self.daemons[to]
        daemon.bytes_in += size
        rate = c.HEAD_BANDWIDTH if to == HEAD else c.NODE_BANDWIDTH
        there = max(daemon.wire.free, self.sim.now + c.LATENCY)
        daemon.wire.free = there + size / rate
        daemon.wire.busy += size / rate
        self.sim.at(daemon.wire.free, arrived, daemon, *arguments)

    def levels(self):
        """Depth -> the daemons there; 0: the head."""
        levels = {0: [self.daemons[HEAD]]}
        for daemon in self.daemons[:-1]:
            levels.setdefault(depth_of(daemon.index), []).append(daemon)
        return levels
