"""Carries packets between TUN devices: the process behind spaces.Wires.

    wire.py '{"10.0.0.1": 5, ...}'

The argument maps addresses to descriptors of devices. Rules come on stdin, one JSON list a line,
[from, to, {"drop": .., "delay": .., "jitter": .., "twice": ..}], each answered with "done" once it
holds; a number instead does away with all rules and seeds what is random. Packets that are delayed keep
their order unless there is jitter. Ends with stdin.
"""

import heapq
import json
import os
import random
import selectors
import sys
import time

MTU = 65536
BATCH = 64


class Wires:
    def __init__(self, devices):
        self.by_address = {packed(address): fd for address, fd in devices.items()}
        self.rules = {}
        self.random = random.Random(0)
        self.late = []  # (when, number, fd, packet)
        self.count = 0
        self.control = b""

    def take(self, fd):
        for _ in range(BATCH):
            try:
                packet = os.read(fd, MTU)
            except BlockingIOError:
                return
            if len(packet) >= 20 and packet[0] >> 4 == 4:
                self.route(packet)

    def route(self, packet):
        source, destination = packet[12:16], packet[16:20]
        fd = self.by_address.get(destination)
        if fd is None:
            return
        rule = self.rules.get((source, destination))
        if rule is None:
            return put(fd, packet)
        if self.random.random() < rule["drop"]:
            return
        for _ in range(2 if self.random.random() < rule["twice"] else 1):
            wait = rule["delay"] + rule["jitter"] * self.random.random()
            if wait <= 0:
                put(fd, packet)
            else:
                self.count += 1
                heapq.heappush(self.late, (time.monotonic() + wait, self.count, fd, packet))

    def deliver(self):
        """Hands over what is due; how long nothing else is."""
        now = time.monotonic()
        while self.late and self.late[0][0] <= now:
            _, _, fd, packet = heapq.heappop(self.late)
            put(fd, packet)
        return self.late[0][0] - now if self.late else None

    def obey(self):
        """False at the end."""
        more = os.read(0, 65536)
        *lines, self.control = (self.control + more).split(b"\n")
        for line in lines:
            words = json.loads(line)
            if isinstance(words, int):
                self.reset(words)
            else:
                self.rule(*words)
            os.write(1, b"done\n")
        return bool(more)

    def reset(self, seed):
        self.rules.clear()
        self.late.clear()
        self.random = random.Random(seed)

    def rule(self, source, destination, rule):
        key = packed(source), packed(destination)
        self.rules.pop(key, None)
        if any(rule.values()):
            self.rules[key] = rule

    def run(self):
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ)
        for fd in self.by_address.values():
            selector.register(fd, selectors.EVENT_READ)
        wait = None
        while True:
            for key, _ in selector.select(wait):
                if key.fd != 0:
                    self.take(key.fd)
                elif not self.obey():
                    return
            wait = self.deliver()


def packed(address):
    return bytes(map(int, address.split(".")))


def put(fd, packet):
    try:
        os.write(fd, packet)
    except OSError:  # the device's queue is full, or it is gone: lost, as on any wire
        pass


if __name__ == "__main__":
    Wires(json.loads(sys.argv[1])).run()
