#!/usr/bin/env python3
# What a node daemon costs at level 2 and 1 Hz in a 4-node step: CPU, network included, and memory

import pathlib
import statistics
import subprocess
import sys
import time

from private_cluster import SONDED, cluster, environment, figure, our_plugstack

WARM_UP_S = 5  # by then the links over libfabric are up
MEASURE_S = 60

def node_daemons():
    found = []
    for proc in pathlib.Path("/proc").iterdir():
        try:
            if proc.name.isdigit() and (proc / "exe").readlink() == SONDED:
                if b"--node" in (proc / "cmdline").read_bytes():
                    found.append(proc)
        except OSError:
            continue
    return found

def cpu_seconds(proc):
    """From schedstat: nanoseconds, where stat counts in ticks of 10 ms."""
    total = 0
    for task in (proc / "task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9

def wakeups(proc):
    status = (proc / "status").read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)

def private_bytes(proc):
    rollup = (proc / "smaps_rollup").read_text()
    return 1024 * sum(
        int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_")
    )

def measure():
    daemons = node_daemons()
    before = [(cpu_seconds(d), wakeups(d)) for d in daemons]
    start = time.monotonic()
    time.sleep(MEASURE_S)
    wall = time.monotonic() - start
    cores = [(cpu_seconds(d) - cpu) / wall for d, (cpu, _) in zip(daemons, before)]
    wakes = [(wakeups(d) - w) / wall for d, (_, w) in zip(daemons, before)]
    figure("leaf.cpu_share", 100 * statistics.median(cores), "percent_of_a_core", 4)
    figure("leaf.cpu_share_worst", 100 * max(cores), "percent_of_a_core", 4)
    figure("leaf.context_switches", statistics.median(wakes), "per_second", 2)
    private = [private_bytes(d) for d in daemons]
    figure("leaf.private_memory", statistics.median(private) / 1e6, "MB")
    figure("leaf.private_memory_worst", max(private) / 1e6, "MB")

def main():
    with cluster(our_plugstack(), "http = off\n") as directory:
        command = ["srun", "-N4", "--telemetry-level=2", "sleep", str(WARM_UP_S + MEASURE_S + 2)]
        step = subprocess.Popen(command, env=environment(directory), stderr=subprocess.PIPE)
        time.sleep(WARM_UP_S)
        measure()
        _, report = step.communicate()
        print(report.decode())
        return step.returncode

if __name__ == "__main__":
    sys.exit(main())
