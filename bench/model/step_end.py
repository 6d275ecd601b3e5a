"""The end of a step: what blocks nodes still hold goes up the tree to the archive.

Nodes have BLOCKS_LIMIT; they thin what they hold to their share of END_RATE for half of that time, but no block has less
than a row, and start at moments of their own in the other half. Each block costs every daemon on its way some CPU,
however small it is. Where blocks are joined, the children of the head and theirs do that; what is joined is passed on.
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

    def depth(self, daemon):
        """1: a child of the head; no more than 3 is told."""
        depth = 1
        while depth < 3 and daemon.parent != HEAD:
            daemon = self.tree.daemons[daemon.parent]
            depth += 1
        return depth

    def pass_on(self, daemon, size, is_joined=False):
        joins = self.joined and not is_joined and self.depth(daemon) < 3
        # What is joined costs as one block does.
        spent = c.PASS_BLOCK / c.JOINED_TOGETHER if is_joined else c.PASS_BLOCK
        if joins:
            spent += c.JOIN_BLOCK
            size *= c.JOINED_SHARE
        self.tree.sim.at(daemon.loop.work(spent), self.send, daemon, size, is_joined or joins)

    def send(self, daemon, size, is_joined):
        # Joined blocks share a message, and headers with it.
        headers = 0 if is_joined else c.SMALL_BYTES
        if daemon.parent == HEAD:
            self.tree.send(daemon.parent, size + headers, self.store, size)
        else:
            self.tree.send(daemon.parent, size + headers, self.pass_on, size, is_joined)

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
