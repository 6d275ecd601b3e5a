#!/usr/bin/env python3
# What level 2 adds to the time of srun, by the step's length and nodes, and how much of it at the end

"""Environment: NODES ("1 2 3 4"), LENGTHS ("0.1 0.5 1 2 3 5 10 20", seconds), PAIRS (5).

Steps with level 2 and without the plugin take turns on two private clusters. The step's tasks write
down when they end, so a run has two parts: all of srun, and the end alone, from the last task's end to
srun's. Figures are differences, pair by pair, so what the machine did meanwhile weighs on both; what is
above the limit is marked, and the benchmark fails if a median is. Each is run behind a step of no length:
a machine may take the programs of a cluster that was idle for half a minute out of memory, and then reads
them from disk."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from private_cluster import cluster, environment, figure, our_plugstack

NODES = [int(n) for n in os.environ.get("NODES", "1 2 3 4").split()]
LENGTHS = [float(length) for length in os.environ.get("LENGTHS", "0.1 0.5 1 2 3 5 10 20").split()]
PAIRS = int(os.environ.get("PAIRS", "5"))
LIMIT_MS = 30
ARCHIVED = 0.5  # seconds: by then its head has put away the step that went before
# Its last act, so that nothing but its exit follows; the clock is the same for all processes.
TASK = """
import sys, time
time.sleep(float(sys.argv[1]))
with open(f"{sys.argv[2]}/{time.clock_gettime_ns(time.CLOCK_MONOTONIC)}", "x"): pass
"""


def run(env, nodes, length, *options):
    """Milliseconds of all of srun, and from the last task's end on."""
    with tempfile.TemporaryDirectory(prefix="sonde-added-") as ends:
        task = [sys.executable, "-S", "-c", TASK, str(length), ends]
        start = time.monotonic_ns()
        subprocess.run(
            ["srun", f"-N{nodes}", *options, *task], env=env, check=True, capture_output=True
        )
        end = time.monotonic_ns()
        ended = [int(name) for name in os.listdir(ends)]
    assert len(ended) == nodes, f"{len(ended)} of {nodes} tasks ended"
    return (end - start) / 1e6, (end - max(ended)) / 1e6


def run_warm(env, nodes, length, *options):
    run(env, nodes, 0, *options)
    time.sleep(ARCHIVED)
    return run(env, nodes, length, *options)


def quartiles(values):
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def measure(bare, ours, nodes, length):
    """Whether the median is within the limit."""
    added, at_end = [], []
    for _ in range(PAIRS):
        without = run_warm(bare, nodes, length)
        level2 = run_warm(ours, nodes, length, "--telemetry-level=2")
        added.append(level2[0] - without[0])
        at_end.append(level2[1] - without[1])
    for name, values in (("total", added), ("end", at_end)):
        low, median, high = quartiles(values)
        figure(f"added_time.{nodes}_nodes_{length:g}s_{name}", median, "ms", 1)
        mark = f"  ABOVE {LIMIT_MS} ms" if median > LIMIT_MS else ""
        print(f"  quartiles of {PAIRS} pairs {low:.1f} to {high:.1f} ms{mark}", flush=True)
    return max(statistics.median(added), statistics.median(at_end)) <= LIMIT_MS


def main():
    most = max(NODES)
    with cluster("", nodes=most) as without, cluster(our_plugstack(), nodes=most) as with_plugin:
        bare, ours = environment(without), environment(with_plugin)
        kept = [measure(bare, ours, nodes, length) for nodes in NODES for length in LENGTHS]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
