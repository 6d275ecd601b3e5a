"""One node in a hundred is lost at a moment: their children find other parents.

A killed process is noticed at once, since its connections close; a machine that vanished at the
first tick at which nothing was heard for SILENCE. A child then asks the head over its control
connection, sends what was not acknowledged to the head meanwhile, connects to the parent it is told,
the nearest ancestor that lives, proves the key, and goes on there. One of the lost is a child of the
head, the worst that can be lost.
"""

import math

import constants as c
from tree import HEAD, Tree, parent_of

ROUND_TRIPS = 3  # TCP's, and the two of the handshake


class Recovery:
    def __init__(self, nodes, vanish, seed=1):
        self.tree = Tree(nodes, seed)
        self.vanish = vanish
        self.whole, self.noticed = [], []
        self.orphans = 0
        self.resent = 0

    def run(self):
        tree = self.tree
        number = max(1, round(c.SHARE_LOST * tree.nodes)) - 1
        lost = [0, *tree.random.sample(range(1, tree.nodes), number)]
        tick = tree.random.uniform(0, c.PERIOD)  # the first one after the loss
        for index in lost:
            tree.daemons[index].alive = False
        for daemon in tree.daemons[:-1]:
            parent = tree.daemons[daemon.parent]
            if not daemon.alive or parent.alive:
                continue
            self.orphans += 1
            silent = c.SILENCE - tree.random.uniform(0, c.PULSE)  # until it has lasted that long
            ticks = max(0, math.ceil((silent - tick) / c.PERIOD))
            noticed = tick + ticks * c.PERIOD + daemon.skew + tree.wake_up()
            tree.sim.at(noticed if self.vanish else c.LATENCY, self.notice, daemon)
        tree.sim.run()
        return self

    def notice(self, orphan):
        self.noticed.append(self.tree.sim.now)
        self.tree.sim.at(orphan.loop.work(c.SMALL_MESSAGE), self.ask, orphan)

    def ask(self, orphan):
        # Own and merged parts of the ticks since the last acknowledgement.
        ticks = 2 + int(self.tree.sim.now / c.PERIOD)
        size = ticks * (c.LEAF_FRAME_BYTES + (c.INNER_FRAME_BYTES if orphan.children else 0))
        self.resent += ticks
        self.tree.send(HEAD, size + c.SMALL_BYTES, self.asked, orphan, ticks)

    def asked(self, head, orphan, ticks):
        parts = ticks * (2 if orphan.children else 1)
        done = head.loop.work(2 * c.SMALL_MESSAGE + parts * c.TAKE_INNER_FRAME)
        self.tree.sim.at(done + c.LATENCY, self.connect, orphan)

    def connect(self, orphan):
        index = parent_of(orphan.parent)
        while not self.tree.daemons[index].alive:
            index = parent_of(index)
        orphan.parent = index
        self.tree.sim.after(2 * ROUND_TRIPS * c.LATENCY, self.prove, orphan)

    def prove(self, orphan):
        orphan.loop.work(c.REGISTER)
        parent = self.tree.daemons[orphan.parent]
        done = max(parent.loop.work(c.REGISTER), orphan.loop.free)
        parent.children += 1
        self.tree.sim.at(done, self.adopted)

    def adopted(self):
        self.whole.append(self.tree.sim.now)

    def figures(self):
        """Orphans, when the last noticed, when the tree is whole, CPU seconds and bytes of the head
        for it, the most children that one has then."""
        head = self.tree.daemons[HEAD]
        most = max(d.children for d in self.tree.daemons if d.alive)
        last = max(self.noticed, default=0)
        whole = max(self.whole, default=0)
        return self.orphans, last, whole, head.loop.busy, head.bytes_in, most
