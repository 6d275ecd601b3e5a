#!/usr/bin/env python3
# What telemetry adds to `srun -N4 hostname`: level 2 and level 0 against no plugin, taking turns

import statistics
import subprocess
import sys
import time

from private_cluster import cluster, environment, figure, our_plugstack

PAIRS = 40
WARM_UP = 3


def srun(env, *options):
    start = time.perf_counter()
    subprocess.run(["srun", "-N4", *options, "hostname"], env=env, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


def main():
    with cluster("") as without, cluster(our_plugstack()) as with_plugin:
        bare, ours = environment(without), environment(with_plugin)
        cases = {
            "none": lambda: srun(bare),
            "level0": lambda: srun(ours),
            "level2": lambda: srun(ours, "--telemetry-level=2"),
        }
        times = {name: [] for name in cases}
        for turn in range(PAIRS + WARM_UP):
            for name, run in cases.items():
                spent = run()
                if turn >= WARM_UP:
                    times[name].append(spent)
    for name, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        figure(f"launch.{name}_median", median, "ms", 1)
        print(f"  quartiles {low:.1f} to {high:.1f} ms over {PAIRS} runs")
    for name in ("level0", "level2"):
        # Pair by pair, so that what the machine did meanwhile weighs on both.
        added = [b - a for a, b in zip(times["none"], times[name])]
        low, median, high = statistics.quantiles(added, n=4)
        figure(f"launch.{name}_added", median, "ms", 1)
        print(f"  quartiles of the pairs {low:.1f} to {high:.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
