#!/usr/bin/env python3
# A model of the tree, calibrated with the other benchmarks, for 1024, 10,000 and 100,000 nodes

"""Environment: NODES ("1024 10000 100000"), PLOT (a file for the plot as SVG)."""

import math
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "model"))

import constants as c
from plot import cumulative_plot
from private_cluster import figure
from recovery import Recovery
from step_end import StepEnd
from ticks import Ticks

NODES = [int(word) for word in os.environ.get("NODES", "1024 10000 100000").split()]
SAMPLES = 100_000  # ticks times nodes at least
UNSENT_S = c.LAST_BLOCK_ROWS  # the open block; what was sealed before has gone up already


def tell_ticks(nodes):
    count = max(5, min(60, SAMPLES // nodes))
    ticks = Ticks(nodes, count).run()
    name = f"scaling.{nodes}"
    figure(f"{name}.depth", ticks.depth(), "levels", 0)
    figure(f"{name}.tick_latency", 1e3 * statistics.median(ticks.latency), "ms", 2)
    figure(f"{name}.tick_latency_worst", 1e3 * max(ticks.latency), "ms", 2)
    figure(f"{name}.complete_ticks", 100 * ticks.complete / count, "percent", 1)
    figure(f"{name}.late_parts", ticks.late / count, "per_tick", 1)
    for depth, number, cpu, size, links in ticks.loads():
        level = f"{name}.level{depth}"
        figure(f"{level}_daemons", number, "1", 0)
        figure(f"{level}_cpu", 1e6 * cpu, "us_per_tick", 0)
        figure(f"{level}_bytes", size, "bytes_per_tick", 0)
        figure(f"{level}_links", links, "1", 0)
    figure(f"{name}.head_memory", (c.HEAD_MEMORY + nodes * c.HEAD_MEMORY_PER_NODE) / c.MB, "MB", 0)
    tell_registration(nodes)
    # Until nodes have parents all send to the head.
    flat = nodes * c.TAKE_LEAF_FRAME + c.HEAD_ROW
    figure(f"{name}.first_ticks", 1e3 * flat, "ms_of_the_head_per_tick", 1)
    return ticks.latency


def tell_registration(nodes):
    """All daemons begin in the same moment; each gateway proves the key to the head, then takes its
    nodes."""
    name = f"scaling.{nodes}"
    gateways = nodes if nodes <= c.DIRECT_NODES else math.ceil(math.sqrt(nodes))
    each = c.HEAD_DIRECT_NODE if gateways == nodes else c.HEAD_GATEWAY_NODE
    head = nodes * each
    behind = math.ceil((nodes - gateways) / gateways)
    figure(f"{name}.connections", gateways + min(nodes, c.FANOUT), "1", 0)
    figure(f"{name}.registration", head, "s_of_the_head", 2)
    figure(f"{name}.registered", head + 4 * c.LATENCY + behind * c.REGISTER, "s", 2)


def tell_end(nodes):
    for way, joined in (("end", nodes >= c.JOIN_FROM), ("end_apart", False)):
        seconds, size, share, in_time = StepEnd(nodes, UNSENT_S, joined).run().figures()
        name = f"scaling.{nodes}.{way}"
        figure(name, seconds, "s", 2)
        figure(f"{name}_bytes", size / c.MB, "MB", 1)
        figure(f"{name}_share", 100 * share, "percent_of_what_is_held", 1)
        figure(f"{name}_in_time", 100 * in_time, "percent_of_blocks", 1)


def tell_recovery(nodes):
    for how in ("killed", "vanished"):
        run = Recovery(nodes, how == "vanished").run()
        orphans, noticed, whole, cpu, size, most = run.figures()
        name = f"scaling.{nodes}.{how}"
        figure(f"{name}_orphans", orphans, "1", 0)
        figure(f"{name}_noticed", noticed, "s")
        figure(f"{name}_whole", whole, "s")
        figure(f"{name}_head_cpu", 1e3 * cpu, "ms", 1)
        figure(f"{name}_head_bytes", size / c.KB, "kB", 0)
        figure(f"{name}_most_children", most, "1", 0)


def main():
    latencies = {}
    for nodes in NODES:
        latencies[nodes] = tell_ticks(nodes)
        tell_end(nodes)
        tell_recovery(nodes)
    if path := os.environ.get("PLOT"):
        pathlib.Path(path).write_text(cumulative_plot(latencies))
    return 0


if __name__ == "__main__":
    sys.exit(main())
