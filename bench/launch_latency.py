#!/usr/bin/env python3
"""What the plugin adds to `srun -N4 hostname`, on a private cluster.

Cases take turns, so that a busy machine is busy for all. A minimal program takes the daemon's
place: this measures the plugin, not sonded (give --sonded for that).

  bench/launch_latency.py [--build DIR] [--rounds 60] [--sonded PATH]
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "cluster"
# Reads the lifeline to its end, as a daemon with nothing to do would; the other does not even that.
READER = "int main(void) { char b[32768]; while (recv(3, b, sizeof b, 0) > 0) {} return 0; }"
QUITTER = "int main(void) { return 0; }"


def build(directory, name, source):
    text = "#include <sys/socket.h>\n" + source
    path = directory / name
    command = ["cc", "-static", "-O2", "-x", "c", "-", "-o", path]
    subprocess.run(command, input=text, text=True, check=True)
    return path


def cases(plugin, directory, sonded):
    reader, quitter = (
        build(directory, "reader", READER),
        build(directory, "quitter", QUITTER),
    )
    found = {
        "no plugin": ("", []),
        "level 0": (f"required {plugin} sonded={reader}\n", []),
        "level 2, daemon waits for the end": (f"required {plugin} sonded={reader}\n", ["2"]),
        "level 2, daemon exits at once": (f"required {plugin} sonded={quitter}\n", ["2"]),
    }
    if sonded:
        found["level 2, sonded"] = (f"required {plugin} sonded={sonded}\n", ["2"])
    return found


def run_once(cluster, plugstack, level):
    (cluster / "etc" / "plugstack.conf").write_text(plugstack)
    options = [f"--telemetry-level={level[0]}"] if level else []
    env = {**os.environ, "SLURM_CONF": str(cluster / "etc" / "slurm.conf")}
    command = ["srun", "-N4", *options, "hostname"]
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sonded", type=pathlib.Path)
    options = parser.parse_args()
    plugin = (options.build / "spank" / "spank_sonde.so").resolve()
    with tempfile.TemporaryDirectory(prefix="sonde-bench.") as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        start = subprocess.run([SCRIPT, "start"], check=True, capture_output=True, text=True)
        cluster = pathlib.Path(start.stdout.strip())
        try:
            measure(cluster, cases(plugin, directory, options.sonded), options.rounds)
        finally:
            subprocess.run([SCRIPT, "stop", cluster], check=True)


def measure(cluster, all_cases, rounds):
    times = {name: [] for name in all_cases}
    for number in range(rounds + 2):
        for name, (plugstack, level) in all_cases.items():
            spent = run_once(cluster, plugstack, level)
            if number >= 2:  # the first two warm the caches
                times[name].append(spent)
    base = times["no plugin"]
    print(f"srun -N4 hostname, {rounds} rounds, ms: fastest, median, and the median of the")
    print("differences to the run without plugin of the same round")
    for name, values in times.items():
        differences = [value - without for value, without in zip(values, base)]
        fastest, median = min(values), statistics.median(values)
        print(f"{name:36} {fastest:7.1f} {median:7.1f} {statistics.median(differences):+7.1f}")


if __name__ == "__main__":
    sys.exit(main())
