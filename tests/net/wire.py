"""Carries packets between TUN devices: the process behind spaces.Wires.

    wire.py '{"10.0.0.1": 5, ...}'

The argument maps addresses to descriptors of devices. Rules come on stdin, one JSON list a line,
[from, to, {"drop": .., "delay": .., "jitter": .., "twice": ..}], each answered with "done" once it
holds; a number instead does away with all rules and seeds what is random. Packets that are delayed keep
their order unless there is jitter. Ends with stdin.

It is a man in the middle as well. Rules of that kind are {"flip": share}, of the packets of TCP in which
a bit of the data is changed; {"rewrite": [hex, hex]}, what is put in the place of what;
{"lead": [address, port]}, where connections go in the place of the second address. A text instead of a
list is looked for in all data from then on; the answer is how often the one before was seen.
"""

import heapq
import json
import os
import random
import selectors
import struct
import sys
import time

MTU = 65536
TCP = 6  # the protocol's number in a packet
BATCH = 64


class Wires:
    def __init__(self, devices):
        self.by_address = {packed(address): fd for address, fd in devices.items()}
        self.rules = {}
        self.marker = b""
        self.seen = 0
        self.led = {}  # (who, its port, where it is led to) -> address and port that it knows
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
        if self.marker and self.marker in packet:
            self.seen += 1
        rule = self.rules.get((source, destination))
        if packet[9] == TCP and (rule or self.led):
            packet = self.meddle(packet, rule or {})
            destination = packet[16:20]
        fd = self.by_address.get(destination)
        if fd is None:
            return
        if rule is None:
            return put(fd, packet)
        if self.random.random() < rule.get("drop", 0):
            return
        for _ in range(2 if self.random.random() < rule.get("twice", 0) else 1):
            wait = rule.get("delay", 0) + rule.get("jitter", 0) * self.random.random()
            if wait <= 0:
                put(fd, packet)
            else:
                self.count += 1
                heapq.heappush(self.late, (time.monotonic() + wait, self.count, fd, packet))

    def meddle(self, packet, rule):
        """What the man in the middle makes of a packet of TCP."""
        source, destination = packet[12:16], packet[16:20]
        header = 4 * (packet[0] & 15)
        ports = struct.unpack_from(">HH", packet, header)
        changed = bytearray(packet)
        if rule.get("lead"):
            address, port = packed(rule["lead"][0]), rule["lead"][1]
            self.led[source, ports[0], address, port] = destination + packet[header + 2 : header + 4]
            changed[16:20] = address
            struct.pack_into(">H", changed, header + 2, port)
        if known := self.led.get((destination, ports[1], source, ports[0])):
            changed[12:16], changed[header : header + 2] = known[:4], known[4:]
        data = header + 4 * (packet[header + 12] >> 4)
        if data < len(packet):
            if rule.get("rewrite"):
                before, after = map(bytes.fromhex, rule["rewrite"])
                changed[data:] = changed[data:].replace(before, after)
            if self.random.random() < rule.get("flip", 0):
                changed[self.random.randrange(data, len(packet))] ^= 1 << self.random.randrange(8)
        return with_checksums(changed, header)

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
            answer = "done"
            if isinstance(words, int):
                self.reset(words)
            elif isinstance(words, str):
                answer, self.seen, self.marker = self.seen, 0, words.encode()
            else:
                self.rule(*words)
            os.write(1, f"{answer}\n".encode())
        return bool(more)

    def reset(self, seed):
        self.rules.clear()
        self.late.clear()
        self.led.clear()
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


def with_checksums(packet, header):
    """Of a packet of IPv4 and TCP."""
    packet[10:12] = bytes(2)
    packet[10:12] = checksum(bytes(packet[:header]))
    segment = packet[header:]
    segment[16:18] = bytes(2)
    pseudo = packet[12:20] + struct.pack(">BBH", 0, TCP, len(segment))
    packet[header + 16 : header + 18] = checksum(bytes(pseudo + segment))
    return bytes(packet)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", total ^ 0xFFFF)


def packed(address):
    return bytes(map(int, address.split(".")))


def put(fd, packet):
    try:
        os.write(fd, packet)
    except OSError:  # the device's queue is full, or it is gone: lost, as on any wire
        pass


if __name__ == "__main__":
    Wires(json.loads(sys.argv[1])).run()
