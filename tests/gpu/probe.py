"""Builds and runs gpu_probe (daemon/collect/gpu/gpu_probe.cc) and reads what it prints.

    probe.py build OUTPUT     with the command in its first lines and no other file of the tree's

Nothing but Python's standard library, and a compiler for `build`.
"""

import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "daemon/collect/gpu/gpu_probe.cc"
NO_DEVICE = 3  # exit status


def build(output):
    """Runs the command that the source gives, with another name for the program."""
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    comment = [line[2:].strip() for line in lines if line.startswith("//")]
    first = next(i for i, line in enumerate(comment) if line.startswith("g++ "))
    last = next(i for i in range(first, len(comment)) if not comment[i])
    command = shlex.split(" ".join(comment[first:last]))
    command[command.index("-o") + 1] = str(output)
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror"], cwd=ROOT, check=True)


class Probe:
    """What one run printed: devices, and per reading {device: {...}}."""

    def __init__(self, text):
        self.devices = {}
        self.readings = []  # of (device, seconds, metrics, fields, processes, microseconds)
        for line in text.splitlines():
            kind, *rest = line.split(" ")
            getattr(self, "_" + kind)(*rest)

    def of(self, device):
        return [reading for reading in self.readings if reading["device"] == device]

    def _opened(self, microseconds):
        self.opened = float(microseconds)

    def _device(self, index, uuid, pci, *name):
        self.devices[int(index)] = {"uuid": uuid, "pci": pci, "name": " ".join(name)}

    def _reading(self, index, seconds):
        self.readings.append(
            {"device": int(index), "at": float(seconds), "metrics": {}, "fields": {}, "processes": {}}
        )

    def _metric(self, index, name, number, unit):
        assert re.fullmatch(r'[a-z_]+(\{[a-z]+="[a-z0-9_]+"\})?', name), name
        self.readings[-1]["metrics"][name] = float(number)

    def _field(self, index, query, number):
        self.readings[-1]["fields"][query] = float(number)

    def _process(self, index, pid, number):
        self.readings[-1]["processes"][int(pid)] = float(number)

    def _took(self, index, microseconds):
        self.readings[-1]["took"] = float(microseconds)


def main(arguments):
    if len(arguments) != 2 or arguments[0] != "build":
        print(__doc__, file=sys.stderr)
        return 2
    build(pathlib.Path(arguments[1]).resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
