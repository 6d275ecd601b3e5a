"""The end of a step: what blocks nodes still hold goes up the tree to the archive.

Nodes have BLOCKS_LIMIT; they thin what they hold to their share of END_RATE for half of that time, but no block has less
than a row, and start at moments of their own in the other half. Each block costs every daemon on its way some CPU,
however small it is. Where blocks are joined, the nodes right below the head do that.
"""

import constants as c
from tree import HEAD, Tree

BLOCKS = 2  # of a node: its group of the system and that of the tasks


class StepEnd:
    def __init__(self, nodes, seconds, joined, seed=1):
        """`seconds` of series are not sent yet. `joined`: the nodes right below the head join blocks."""
        self.tree = Tree(nodes, seed)
        self.joined = joined
        share = min(0.75 * c.PROFILE_LIMIT, c.END_RATE * c.BLOCKS_LIMIT / 2) / nodes
        self.held = seconds * c.BLOCK_BYTES_PER_SECOND
        self.size = min(self.held, max(share, c.LEAST_BLOCKS_BYTES))
        self.spread = min(c.BLOCKS_LIMIT / 2, self.size * nodes / c.END_RATE)
        self.stored = []
        self.in_time = 0
        self.disk_free = 0.0

    def run(self):
        for daemon in self.tree.daemons[:-1]:
            began = self.tree.random.uniform(0, self.spread)
            for _ in range(BLOCKS):
                self.tree.sim.at(began, self.pass_on, daemon, self.size / BLOCKS)
        self.tree.sim.run()
        return self

    def pass_on(self, daemon, size):
        joins = self.joined and daemon.parent == HEAD
        spent = c.PASS_BLOCK + (c.JOIN_BLOCK if joins else 0)
        self.tree.sim.at(daemon.loop.work(spent), self.send, daemon, size * (c.JOINED_SHARE if joins else 1))

    def send(self, daemon, size):
        arrived = self.store if daemon.parent == HEAD else self.pass_on
        # Joined blocks share a message, and headers with it.
        headers = 0 if self.joined and daemon.parent == HEAD else c.SMALL_BYTES
        self.tree.send(daemon.parent, size + headers, arrived, size)

    def store(self, head, size):
        done = head.loop.work(c.HEAD_JOINED_BLOCK if self.joined else c.HEAD_BLOCK)
        self.disk_free = max(self.disk_free, done) + size / c.ARCHIVE_RATE
        self.stored.append(self.disk_free)
        self.in_time += self.disk_free <= c.BLOCKS_LIMIT

    def figures(self):
        """Seconds until all is stored, bytes in all, share of a node's series that these hold, share
        of blocks that made it in time."""
        total = BLOCKS * self.tree.nodes
        share = self.size / self.held
        size = self.size * (c.JOINED_SHARE if self.joined else 1)
        return max(self.stored), size * self.tree.nodes, share, self.in_time / total
