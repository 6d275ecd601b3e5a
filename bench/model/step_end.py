"""The end of a step: what blocks nodes still hold goes up the tree to the archive.

Each node holds its share of the profile's limit at most. `left` is how much of that was not sent
before: 1 where nothing goes up while the step runs; else the last block alone.
"""

import constants as c
from tree import HEAD, Tree

# Tasks of a step do not end at the same moment.
SPREAD = 0.05
BLOCKS = 2  # of a node: its group of the system and that of the tasks


class StepEnd:
    def __init__(self, nodes, seconds, left, batched=False, seed=1):
        """`batched`: inner nodes put their children's blocks into one message."""
        self.tree = Tree(nodes, seed)
        self.batched = batched
        held = min(seconds * c.BLOCK_BYTES_PER_SECOND, c.PROFILE_LIMIT / nodes)
        last = min(held, c.LAST_BLOCK_ROWS * c.BLOCK_BYTES_PER_SECOND)
        self.size = held if left >= 1 else min(last, left * held)
        self.stored = []
        self.in_time = 0
        self.disk_free = 0.0

    def run(self):
        for daemon in self.tree.daemons[:-1]:
            began = self.tree.random.uniform(0, SPREAD)
            for _ in range(BLOCKS):
                self.tree.sim.at(began, self.pass_on, daemon, self.size / BLOCKS, began)
        self.tree.sim.run()
        return self

    def pass_on(self, daemon, size, began):
        spent = c.PASS_BLOCK / (c.FANOUT if self.batched else 1)
        self.tree.sim.at(daemon.loop.work(spent), self.send, daemon, size, began)

    def send(self, daemon, size, began):
        arrived = self.store if daemon.parent == HEAD else self.pass_on
        self.tree.send(daemon.parent, size + c.SMALL_BYTES, arrived, size, began)

    def store(self, head, size, began):
        spent = c.HEAD_BLOCK / (c.FANOUT if self.batched else 1)
        done = head.loop.work(spent)
        self.disk_free = max(self.disk_free, done) + size / c.ARCHIVE_RATE
        self.stored.append(self.disk_free)
        self.in_time += self.disk_free - began <= c.FINISH_LIMIT

    def figures(self):
        """Seconds until all is stored, bytes in all, share of blocks that made it in time."""
        total = BLOCKS * self.tree.nodes
        return max(self.stored), self.size * self.tree.nodes, self.in_time / total
