"""Decodes blocks by docs/format.md alone: nothing here was taken from Sonde's own decoder."""
import ctypes
import ctypes.util
import struct

MISSING = 0x7FF8000000000000
MASK = (1 << 64) - 1


class Damaged(ValueError):
    """What was read is no block."""


def check(good, what):
    if not good:
        raise Damaged(what)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def unpack_frame(frame, size):
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(max(size, 1))
    check(zstd.ZSTD_decompress(out, size, frame, len(frame)) == size, "frame")
    return out.raw[:size]


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def raw(self, count):
        check(self.at + count <= len(self.data), "end")
        self.at += count
        return self.data[self.at - count:self.at]

    def byte(self):
        return self.raw(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                check(value <= MASK, "varint")
                return value
            shift += 7

    def signed(self):
        return unzigzag(self.varint())


def unzigzag(z):
    return z >> 1 ^ -(z & 1)


def wrap(i):
    """Modulo 2^64, signed."""
    i &= MASK
    return i - (1 << 64) if i >> 63 else i


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


class LowBits:
    def __init__(self, data):
        self.number, self.size, self.at = int.from_bytes(data, "little"), len(data), 0

    def take(self, count):
        value = self.number >> self.at & ((1 << count) - 1)
        self.at += count
        check(self.at <= self.size * 8, "low bits")
        return value


def to_bits(scale, i):
    """The 64 bits of the double that integer i stands for."""
    if scale <= 61:
        return bits_of(float(i) * 2.0**scale)
    if 65 <= scale <= 73:
        return bits_of(float(i) / float(10 ** (scale - 64)))
    check(128 <= scale <= 191, "scale")
    return i << (scale - 128) & MASK


def read_head(kind, rows, source, gaps, column):
    """gaps: the patterns of missing rows so far, the first of none."""
    head = {"kind": kind & 15, "low": 0, "base": 0, "gaps": 0}
    check(head["kind"] <= 4 and kind >> 5 & 3 <= 2, "kind")
    if kind & 0x80:
        check(kind & 0x10, "gaps")
        bitmap = source.raw((rows + 7) // 8)
        gaps.append([r for r in range(rows) if not bitmap[r // 8] >> r % 8 & 1])
        check(gaps[-1], "all rows are missing")
    if kind & 0x10:
        check(len(gaps) > 1, "gaps")
        head["gaps"] = len(gaps) - 1
    if head["kind"] != 0:
        head["low"] = source.byte()
        check(head["low"] <= 56, "low bits")
    head["first"] = source.signed()
    if head["kind"] == 3:
        head["base"] = source.signed()
    head["references"] = []
    for _ in range(kind >> 5 & 3):
        number = source.varint()
        head["references"].append((column - 1 - (number >> 1), -1 if number & 1 else 1))
    return head


def read_integers(head, count, source, low):
    kind, value, base = head["kind"], head["first"], head["base"]
    if kind == 0:
        return [value] * count
    residuals = count if kind == 4 else count - 1
    high = [source.varint() for _ in range(residuals)]
    deltas = [unzigzag(z << head["low"] | low.take(head["low"])) for z in high]
    if kind == 4:
        return [wrap(value + d) for d in deltas]
    integers, step = [value], 0
    for d in deltas:
        step = step + d if kind == 2 else d + base
        value += step
        integers.append(wrap(value))
    return integers


def decode(block):
    """(schema id, times, columns), a column being the 64 bits of each value."""
    check(len(block) >= 50 and block[:2] == b"Sb", "magic")
    check(block[2] == 2, f"version {block[2]}")
    check(block[3] == 0, "flags")
    schema, rows, count, first, last, plain_size, frame_size, body_crc, header_crc = struct.unpack(
        "<QHIqqIIII", block[4:50]
    )
    check(crc32c(block[:46]) == header_crc, "checksum of the header")
    check(crc32c(block[50:]) == body_crc, "checksum")
    check(1 <= rows <= 1024 and count <= 65536 and rows * count <= 1 << 23, "bounds")
    source = Bytes(unpack_frame(block[50:50 + frame_size], plain_size))
    low = LowBits(block[50 + frame_size:])

    times, step = [first], 0
    for _ in range(rows - 1):
        step += source.signed()
        times.append(wrap(times[-1] + step))
    check(times == sorted(times) and times[-1] == last, "times")

    kinds, scales = source.raw(count), source.raw(count)
    gaps = [list(range(rows))]
    heads = [read_head(kinds[c], rows, source, gaps, c) for c in range(count)]
    integers, summands, columns = [], [], []
    for c, head in enumerate(heads):
        present = gaps[head["gaps"]]
        own = read_integers(head, len(present), source, low)
        summands.append(1)
        for other, sign in head["references"]:
            check(0 <= other < c and heads[other]["gaps"] == head["gaps"], "reference")
            own = [wrap(a + sign * b) for a, b in zip(own, integers[other])]
            summands[c] += summands[other]
        check(summands[c] <= 16, "summands")
        integers.append(own)
        column = [MISSING] * rows
        for row, integer in zip(present, own):
            column[row] = to_bits(scales[c], integer)
        columns.append(column)
    check(source.at == len(source.data) and (low.at + 7) // 8 == low.size, "tail")
    return schema, times, columns
