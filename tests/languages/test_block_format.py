"""An independent decoder, written by docs/format.md alone, agrees with Sonde's bit for bit."""
import os
import pathlib
import random
import struct
import subprocess

import pytest
from block_decoder import Damaged, decode


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    program = pathlib.Path(os.environ["SONDE_BUILD"]) / "tests/unit/block_samples"
    subprocess.run([program, folder], check=True)
    return sorted(folder.glob("*.block"))


def expected(path):
    data = path.with_suffix(".values").read_bytes()
    rows, columns = struct.unpack_from("<QQ", data)
    numbers = struct.unpack_from(f"<{rows}q{rows * columns}Q", data, 16)
    values = numbers[rows:]
    return list(numbers[:rows]), [list(values[c * rows:(c + 1) * rows]) for c in range(columns)]


def test_every_value_comes_back_bit_for_bit(samples):
    assert len(samples) > 40
    for path in samples:
        block = path.read_bytes()
        times, columns = expected(path)
        assert decode(block) == (len(times) * 1_000_003, times, columns), path.name


def test_damage_is_found_by_the_checksums(samples):
    chance = random.Random(1)
    block = min((p.read_bytes() for p in samples), key=len)
    for at in range(len(block)):
        bad = bytearray(block)
        bad[at] ^= 1 << chance.randrange(8)
        with pytest.raises(Damaged):
            decode(bytes(bad))
        with pytest.raises(Damaged):
            decode(block[:at])
