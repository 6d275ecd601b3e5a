"""Ticks: every node samples, parts go up and are merged on the way, the head has a row.

A node sends its own part as soon as it has sampled, and one merged part of all below it when that
is complete or MERGE_WINDOW is over; what comes later is passed on by itself.
"""

import constants as c
from tree import HEAD, Tree, children_of, depth_of

FIRST = 1.0


class Gather:
    """What one daemon has of the parts of one tick that come from below."""

    __slots__ = ("missing", "nodes", "sent")

    def __init__(self, daemon, tree):
        self.nodes = 0
        self.sent = False
        kids = range(min(c.FANOUT, tree.nodes)) if daemon.index == HEAD else None
        kids = kids or children_of(daemon.index, tree.nodes)
        # A child that has children sends two.
        self.missing = sum(2 if tree.daemons[kid].children else 1 for kid in kids)


class Ticks:
    def __init__(self, nodes, count, seed=1):
        self.tree = Tree(nodes, seed)
        self.count = count
        self.latency, self.complete, self.late = [], 0, 0
        self.got = {}
        self.gathers = {}

    def run(self):
        for number in range(self.count):
            tick = FIRST + number * c.PERIOD
            self.got[tick] = 0
            for daemon in self.tree.daemons:
                if daemon.index == HEAD:
                    continue
                self.tree.sim.at(tick + daemon.skew + self.tree.wake_up(), self.sample, daemon, tick)
                if daemon.children:
                    window = tick + daemon.skew + c.MERGE_WINDOW
                    self.tree.sim.at(window, self.pass_up, daemon, tick)
            self.tree.sim.at(tick + c.HEAD_WINDOW, self.close, tick)
            self.tree.sim.run(tick + c.PERIOD / 2)
        self.tree.sim.run()
        return self

    def gather(self, daemon, tick):
        key = (daemon.index, tick)
        if key not in self.gathers:
            self.gathers[key] = Gather(daemon, self.tree)
        return self.gathers[key]

    def sample(self, daemon, tick):
        # The rest of the second's work is done later, on acknowledgements and the like.
        daemon.loop.busy += c.LEAF_TICK - c.SAMPLE + (c.INNER_EXTRA if daemon.children else 0)
        self.tree.sim.at(daemon.loop.work(c.SAMPLE), self.send, daemon, tick, 1, False)

    def send(self, daemon, tick, nodes, merged):
        size = c.INNER_FRAME_BYTES if merged else c.LEAF_FRAME_BYTES
        self.tree.send(daemon.parent, size, self.arrived, tick, nodes, merged)

    def arrived(self, daemon, tick, nodes, merged):
        spent = c.TAKE_INNER_FRAME if merged else c.TAKE_LEAF_FRAME
        self.tree.sim.at(daemon.loop.work(spent), self.taken, daemon, tick, nodes, merged)

    def taken(self, daemon, tick, nodes, merged):
        gather = self.gather(daemon, tick)
        gather.missing -= 1
        if daemon.index == HEAD:
            self.got[tick] += nodes
            if gather.missing == 0:
                self.tree.sim.at(daemon.loop.work(c.HEAD_ROW), self.row, tick)
        elif gather.sent:
            self.late += 1
            self.send(daemon, tick, nodes, merged)
        else:
            gather.nodes += nodes
            if gather.missing == 0:
                self.pass_up(daemon, tick)

    def pass_up(self, daemon, tick):
        gather = self.gather(daemon, tick)
        if gather.sent:
            return
        gather.sent = True
        if gather.nodes:
            self.tree.sim.at(
                daemon.loop.work(c.SMALL_MESSAGE), self.send, daemon, tick, gather.nodes, True
            )

    def row(self, tick):
        self.latency.append(self.tree.sim.now - tick)

    def close(self, tick):
        self.complete += self.got[tick] == self.tree.nodes

    def loads(self):
        """For each level: daemons, CPU seconds and bytes in of one a tick, links of one; of the head without
        those of nodes that come to it."""
        rows = []
        for depth, daemons in sorted(self.tree.levels().items()):
            number = len(daemons) * self.count
            cpu = sum(d.loop.busy for d in daemons) / number
            size = sum(d.bytes_in for d in daemons) / number
            links = max(d.children for d in daemons) + (0 if depth == 0 else 2)
            rows.append((depth, len(daemons), cpu, size, links))
        return rows

    def depth(self):
        return depth_of(self.tree.nodes - 1)
