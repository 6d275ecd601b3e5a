"""A random sequence of faults, the same again for the same seed.

SONDE_NET_SECONDS says for how long, 20 unless set; SONDE_NET_SEED which sequence, `random` for another
one each time: the seed of a failure stands in its message. By hand, for ten minutes:

    SONDE_NET_SECONDS=600 SONDE_NET_SEED=random python3 -m pytest -q -s tests/net/test_random.py

A round is some faults at once, which last for up to 1.5 s; then links and processes are well again, and
the ticks have to be whole. The head may die as well, and the acting heads after it. When a third of its
nodes is gone, a step ends, its profile is checked, and another one begins.
"""

import os
import random
import time

from step import BLACK_HOLE_HEALS_WITHIN
from strangers import Crowd, hello

SECONDS = float(os.environ.get("SONDE_NET_SECONDS", "20"))
SEED = os.environ.get("SONDE_NET_SEED", "268622")  # one that found something
SEED = time.time_ns() % 1_000_000 if SEED == "random" else int(SEED)
NODES = 9


class Round:
    """Faults of one round and their end. A node that is to die counts nothing in it, so that what it
    counted has reached the head."""

    def __init__(self, step, chance, tell):
        self.step, self.chance, self.tell = step, chance, tell
        self.stopped, self.crowds = [], []
        self.headless = False
        self.spared = list(step.alive())  # those that may still be hurt
        chance.shuffle(self.spared)

    def run(self):
        faults = [self.kill, self.leave, self.stop, self.black_hole, self.bad_wire, self.strangers]
        faults += [self.come_again, self.kill_head, self.reset]
        weights = [1, 1, 2, 2, 3, 1, 1, 1, 1]
        for fault in self.chance.choices(faults, weights, k=self.chance.randint(1, 3)):
            fault()
        end = time.monotonic() + self.chance.uniform(0.2, 1.5)
        while time.monotonic() < end:
            self.count()
            time.sleep(0.05)  # the pace of counting, not a wait

    def count(self):
        """One of those that nothing happens to counts."""
        self.step.goodbyes_stored()  # sees when they leave
        quiet = [node for node in self.spared if node.alive]
        if quiet:
            self.chance.choice(quiet).add(self.chance.randint(1, 1000))

    def take(self):
        """A node to be hurt; None if there would be too few left."""
        return self.spared.pop() if len(self.spared) > 2 else None

    def kill(self):
        if node := self.take():
            self.tell(f"kill {node.host}")
            node.kill()

    def come_again(self):
        """A daemon that is started anew knows srun's host only."""
        if self.step.head.exited or self.headless:
            return
        if node := self.take():
            self.tell(f"{node.host} dies and comes again")
            node.kill()
            node.start()
            node.application.wait_ready()

    def kill_head(self):
        if not self.headless and self.step.successors_known() and self.step.goodbyes_stored():
            self.tell("kill the head")
            self.headless = True
            self.step.kill_head()

    def reset(self):
        node = self.chance.choice(self.step.alive())
        self.tell(f"the connections of {node.host} are reset")
        self.step.reset_head_connections(node)

    def leave(self):
        if node := self.take():
            self.tell(f"{node.host} leaves")
            node.leave()

    def stop(self):
        if node := self.take():
            self.tell(f"stop {node.host}")
            node.daemon.stop()
            self.stopped.append(node)

    def wire(self):
        """Between a node and the head or the parent it began with, either way."""
        index = self.chance.randrange(NODES)
        parent = self.step.parent(index)
        above = [self.step] if parent is None else [self.step, self.step.at(parent)]
        return self.chance.sample([self.step.at(index), self.chance.choice(above)], 2)

    def black_hole(self):
        source, destination = self.wire()
        self.tell(f"nothing from {source.address} to {destination.address}")
        self.step.wires.rule(source.address, destination.address, drop=1.0)

    def bad_wire(self):
        source, destination = self.wire()
        rule = self.chance.choice(
            [{"drop": 0.2}, {"delay": 0.1, "jitter": 0.1}, {"twice": 0.5}, {"delay": 0.3}]
        )
        self.tell(f"{rule} from {source.address} to {destination.address}")
        self.step.wires.rule(source.address, destination.address, **rule)

    def strangers(self):
        if self.step.head.exited:
            return
        self.tell("strangers at the head")
        words = self.chance.choice([b"", hello(), b"GET / HTTP/1.0\r\n\r\n"])
        head = (self.step.address, self.step.port)
        self.crowds.append(Crowd(self.step.outside, head, 100, words))

    def mend(self):
        for node in self.stopped:
            node.daemon.go_on()
        self.step.wires.reset(self.chance.randrange(1 << 30))
        for crowd in self.crowds:
            crowd.close()
        if self.headless:
            self.step.wait_acting()


def run_step(step, chance, deadline, tell):
    step.start()
    while time.monotonic() < deadline and len(step.alive()) > NODES * 2 / 3:
        one = Round(step, chance, tell)
        try:
            one.run()
        finally:
            one.mend()
        tell("all is well again")
        step.check_whole_since(step.now(), BLACK_HOLE_HEALS_WITHIN)
        step.wait_total()
    step.finish()
    step.check_profile()
    step.check_stored_total()


def test_random_faults(make_step):
    chance = random.Random(SEED)
    start = time.monotonic()
    told = [f"SONDE_NET_SEED={SEED}"]

    def tell(text):
        told.append(f"{time.monotonic() - start:.1f} s: {text}")
        print(told[-1])

    try:
        while time.monotonic() < start + SECONDS:
            step = make_step(nodes=NODES, seed=chance.randrange(1 << 30))
            run_step(step, chance, start + SECONDS, tell)
            step.close()
    except Exception as error:
        raise AssertionError("\n".join([*told[:1], *told[-12:]])) from error
