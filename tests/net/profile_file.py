"""Joined blocks as a profile file has them, read by what docs/format.md says alone."""

import ctypes
import struct

HEAD = b"\x89Sonde\r\n"
HEAD_BYTES = 16
OTHER, JOINED = b"x", b"J"
BLOCKS = ord("b")  # their schemas: "s"
MOST_UNFOLDED = 64 << 20
LIBZSTD = ctypes.CDLL("libzstd.so.1")
LIBZSTD.ZSTD_decompress.restype = ctypes.c_size_t


def unpacked(packed):
    into = ctypes.create_string_buffer(MOST_UNFOLDED)
    size = LIBZSTD.ZSTD_decompress(into, ctypes.c_size_t(len(into)), packed, ctypes.c_size_t(len(packed)))
    assert size <= len(into), "a packed record cannot be unfolded"
    return into.raw[:size]


class Bytes:
    """Reads one thing after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        zigzag = self.varint()
        return zigzag >> 1 ^ -(zigzag & 1)

    def text(self):
        return self.take(self.varint())


def records(data):
    """(kind, what it says) of each record."""
    assert data[: len(HEAD)] == HEAD
    at = HEAD_BYTES
    while at < len(data):
        kind, length = struct.unpack_from("<cI", data, at)
        yield kind, data[at + 5 : at + 5 + length]
        at += 5 + length + 4


def entries(joined):
    """[(node, group, [times])] of joined blocks."""
    r = Bytes(joined)
    assert r.take(1) == b"\1"
    found, time = [], 0
    for _ in range(r.varint()):
        node, group = r.varint(), r.text().decode()
        for _ in range(5):  # sequence, how many before it, samples, reasons, stored
            r.varint()
        times = []
        for _ in range(r.varint()):
            time += r.signed()
            times.append(time)
        found.append((node, group, times))
    return found


def joined_records(path):
    """The entries of each record of joined blocks in a profile file."""
    found = []
    for kind, said in records(path.read_bytes()):
        if kind != OTHER:
            continue
        r = Bytes(said)
        if r.take(1) == JOINED and r.text()[0] == BLOCKS:
            found.append(entries(unpacked(r.data[r.at :])))
    return found
