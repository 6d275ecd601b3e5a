#!/usr/bin/env python3
"""Compares what Sonde reads of NVIDIA's GPUs with what nvidia-smi prints.

    compare_with_nvidia_smi.py [PROGRAM [ARGUMENT ...]]

PROGRAM is gpu_probe; without one it is built first, which takes a compiler and nothing else. Each
field is read several times by both, turn by turn: it agrees if one of the pairs is near enough, for
a GPU does not stand still between two programs. The mean power between two readings is compared with
the rise of the energy counter as well.

Exit status: 0 if all agree, 1 if not, 77 where there is no GPU to compare.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import probe  # noqa: E402

SKIPPED = 77
ROUNDS = 5

# How far apart a field may be, of its value and in its unit. What is not here must be the same.
NEAR = {
    "utilization.gpu": (0.2, 10),
    "utilization.memory": (0.2, 10),
    "utilization.encoder": (0.2, 10),
    "utilization.decoder": (0.2, 10),
    "memory.used": (0.01, 16),
    "memory.total": (0.0001, 1),
    "power.draw": (0.1, 5),
    "enforced.power.limit": (0.001, 1),
    "temperature.gpu": (0, 2),
    "temperature.memory": (0, 2),
    "clocks.sm": (0.05, 30),
    "clocks.mem": (0.01, 5),
    "clocks.video": (0.05, 30),
    "fan.speed": (0.05, 3),
}
NUMBERS = {"Active": 1.0, "Not Active": 0.0}


def smi(*arguments):
    """The lines that nvidia-smi prints; None if it fails."""
    try:
        run = subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return run.stdout.splitlines() if run.returncode == 0 else None


def smi_values(query):
    """{device: number} of one field, without devices that lack it; None if it has no such field."""
    lines = smi(f"--query-gpu=index,{query}", "--format=csv,noheader,nounits")
    if lines is None:
        return None
    values = {}
    for line in lines:
        index, text = (part.strip() for part in line.split(",", 1))
        try:
            values[int(index)] = NUMBERS[text] if text in NUMBERS else float(text)
        except ValueError:
            pass  # [N/A]
    return values


def read(program):
    run = subprocess.run(
        [program[0], "--details", "--count", "2", "--period", "1", *program[1:]],
        capture_output=True, text=True, timeout=120, check=False,
    )
    if run.returncode == probe.NO_DEVICE:
        return None
    if run.returncode != 0:
        sys.exit(f"gpu_probe failed: {run.stderr}")
    return probe.Probe(run.stdout)


def agrees(query, ours, theirs):
    share, amount = NEAR.get(query, (0, 0))
    return abs(ours - theirs) <= max(share * abs(theirs), amount)


def compare_energy(device, readings):
    """Whether the energy counter rises as fast as the power says; None if it cannot be told."""
    first, last = readings[0], readings[-1]
    name = "gpu_energy_joules_total"
    if name not in first["metrics"] or "gpu_power_watts" not in last["metrics"]:
        return None
    watts = (last["metrics"][name] - first["metrics"][name]) / (last["at"] - first["at"])
    mean = sum(r["metrics"]["gpu_power_watts"] for r in readings) / len(readings)
    print(f"GPU {device} energy: {watts:.1f} W by the counter, {mean:.1f} W by the power")
    return abs(watts - mean) <= max(0.25 * mean, 20)


def main(arguments):
    if smi("-L") is None:
        print("skipped: there is no nvidia-smi here, or it finds no driver")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        program = arguments or [pathlib.Path(folder) / "gpu_probe"]
        if not arguments:
            probe.build(program[0])
        pairs = {}  # (device, query): [(ours, theirs)]
        energy = []
        for _ in range(ROUNDS):
            ours = read(program)
            if ours is None:
                print("skipped: there is no NVIDIA GPU here")
                return SKIPPED
            for device in ours.devices:
                readings = ours.of(device)
                energy.append(compare_energy(device, readings))
                for query in readings[-1]["fields"]:
                    theirs = smi_values(query)
                    if theirs is None or device not in theirs:
                        continue
                    pairs.setdefault((device, query), []).append(
                        (readings[-1]["fields"][query], theirs[device])
                    )
    print(f"devices: {ours.devices}; opened in {ours.opened:.0f} us; a reading took "
          f"{min(r['took'] for r in ours.readings):.0f} us at best")
    bad = 0
    for (device, query), values in sorted(pairs.items()):
        near = any(agrees(query, *pair) for pair in values)
        bad += not near
        print(f"GPU {device} {query}: {'agrees' if near else 'DIFFERS'} {values[-1]}")
    known = [e for e in energy if e is not None]
    if known and not any(known):
        print("the energy counter DIFFERS from the power")
        bad += 1
    if not pairs:
        print("nothing could be compared")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
