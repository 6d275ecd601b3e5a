#!/usr/bin/env python3
# What a step of N nodes costs, its daemons all on this machine: CPU, memory, coverage, start

"""Real daemons over loopback, fanout 16, level 2, one sample a second.

Environment: NODES ("16 64 256 1024"), WINDOW (60, seconds), CONF (lines for sonde.conf).
"""

import json
import os
import signal
import statistics
import sys
import time
import urllib.error
import urllib.request

from daemon_costs import (
    cpu_by_thread,
    descriptors,
    listening_ports,
    mean,
    median,
    private_bytes,
    received_bytes,
    spent,
    switches,
)
from private_cluster import figure
from step_of_daemons import JOB, STEP, Step

NODES = [int(word) for word in os.environ.get("NODES", "16 64 256 1024").split()]
WINDOW_S = int(os.environ.get("WINDOW", "60"))
CONF = os.environ.get("CONF", "")
FANOUT = 16
METRIC = "node_load1"  # every node has one at every tick
UP_WITHIN_S = 300
SETTLE_S = 4  # from when all are up: by then they have their parents
ROW_OPEN_S = 4  # rows of the last ticks may still change


class Live:
    """The running head, over HTTP."""

    def __init__(self, step):
        self.step = step

    def get(self, path):
        end = self.step.endpoint()
        request = urllib.request.Request(f"http://127.0.0.1:{end['port']}{path}")
        request.add_header("Authorization", f"Bearer {end['token']}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def hosts(self):
        """In the order of their indices in the tree."""
        profile = self.get(f"/api/v1/profile?job={JOB}.{STEP}")
        return [node["host"] for node in profile["job"]["nodes"]]

    def counts(self, since):
        """Second -> how many nodes are in its row."""
        query = f"job={JOB}.{STEP}&metric={METRIC}&points=5000&start={int(since)}"
        try:
            series = self.get(f"/api/v1/series?{query}")["series"]
        except urllib.error.HTTPError as error:
            if error.code != 404:  # no row yet
                raise
            return {}
        return dict(zip(series[0]["time"], series[0]["count"])) if series else {}


def wait_until_up(step, live):
    """Until a tick has all nodes; gives the seconds from the start of the first daemon to it."""
    began = time.time() - (time.monotonic() - step.started)
    while time.monotonic() - step.started < UP_WITHIN_S:
        if step.endpoint() is not None:
            counts = live.counts(began - 1)
            full = [t for t, count in counts.items() if count >= step.nodes_wanted]
            if full:
                return max(0, min(full) - began)
        time.sleep(0.5)
    raise SystemExit(f"bench tree: {step.nodes_wanted} daemons were not up within {UP_WITHIN_S} s")


def roles(step, live):
    """Inner nodes and leaves: node i has the children (i + 1) * fanout and on."""
    by_host = {f"n{i}": daemon for i, daemon in enumerate(step.nodes)}
    order = [by_host[host] for host in live.hosts()]
    inner = (len(order) - 1) // FANOUT
    return order[:inner], order[inner:]


class Window:
    """What daemons spend in WINDOW_S seconds; of head and inner nodes, in every single one."""

    def __init__(self, head, inner, leaves):
        self.head, self.inner = head, inner
        self.ports = listening_ports(head)
        self.daemons = [head, *inner, *leaves]
        before = self._whole()
        self.switched = [switches(d) for d in leaves]
        self.start, self.began = time.monotonic(), time.time()
        self.head_ticks, self.inner_ticks, self.byte_ticks = [], [], []
        self._watch()
        self.wall, self.ended = time.monotonic() - self.start, time.time()
        after = self._whole()
        self.cores = {d: spent(before[d], after[d]) / self.wall for d in self.daemons}
        self.switched = [(switches(d) - n) / self.wall for d, n in zip(leaves, self.switched)]

    def _whole(self):
        return {d: cpu_by_thread(d) for d in self.daemons}

    def _tick(self):
        inner = [cpu_by_thread(d) for d in self.inner[:8]]
        return cpu_by_thread(self.head), inner, received_bytes(self.ports)

    def _watch(self):
        """Between ticks, which are at whole seconds."""
        last = None
        while time.time() - self.began < WINDOW_S:
            time.sleep(1.7 - time.time() % 1 if time.time() % 1 > 0.7 else 0.7 - time.time() % 1)
            now = self._tick()
            if last is not None:
                self.head_ticks.append(spent(last[0], now[0]))
                self.inner_ticks.append(mean([spent(a, b) for a, b in zip(last[1], now[1])]))
                self.byte_ticks.append(now[2] - last[2])
            last = now


def quiet(values):
    return statistics.quantiles(values, n=10)[0] if len(values) > 1 else 0.0


def tell_coverage(name, live, window, nodes):
    counts = live.counts(window.began)
    ticks = range(int(window.began) + 1, int(window.ended))
    got = [min(counts.get(tick, 0), nodes) for tick in ticks]
    figure(f"{name}.complete_ticks", 100 * got.count(nodes) / len(got), "percent", 1)
    figure(f"{name}.coverage", 100 * sum(got) / (nodes * len(got)), "percent", 3)


def tell_cpu(name, window, head, inner, leaves):
    leaf = mean([window.cores[d] for d in leaves])
    above = [window.cores[d] for d in inner]
    figure(f"{name}.cpu_total", sum(window.cores.values()), "cores", 4)
    figure(f"{name}.cpu_own", leaf * (len(inner) + len(leaves)), "cores", 4)
    figure(f"{name}.cpu_merging", sum(c - leaf for c in above), "cores", 4)
    figure(f"{name}.cpu_head", window.cores[head], "cores", 4)
    figure(f"{name}.leaf", 1e6 * leaf, "us_per_tick", 0)
    figure(f"{name}.inner", 1e6 * mean(above), "us_per_tick", 0)
    figure(f"{name}.head", 1e6 * window.cores[head], "us_per_tick", 0)
    # Blocks of nodes come to the head at some ticks; the quietest tenth has none.
    figure(f"{name}.inner_quiet", 1e6 * quiet(window.inner_ticks), "us_per_tick", 0)
    figure(f"{name}.head_quiet", 1e6 * quiet(window.head_ticks), "us_per_tick", 0)
    figure(f"{name}.head_bytes_quiet", quiet(window.byte_ticks), "bytes_per_tick", 0)
    figure(f"{name}.head_bytes", mean(window.byte_ticks), "bytes_per_tick", 0)
    figure(f"{name}.leaf_switches", median(window.switched), "per_second", 2)


def tell_memory(name, head, inner, leaves):
    for role, daemons in (("leaf", leaves), ("inner", inner), ("head", [head])):
        private = [private_bytes(d) / 1e6 for d in daemons]
        if private:
            figure(f"{name}.private_{role}", median(private), "MB")
            figure(f"{name}.private_{role}_worst", max(private), "MB")
            figure(f"{name}.descriptors_{role}", max(descriptors(d) for d in daemons), "1", 0)


def measure(nodes):
    name = f"tree.{nodes}"
    with Step(nodes, conf=f"fanout = {FANOUT}\n{CONF}\n") as step:
        live = Live(step)
        figure(f"{name}.all_up", wait_until_up(step, live), "s", 1)
        time.sleep(SETTLE_S)
        start = sum(sum(cpu_by_thread(d).values()) for d in step.nodes)
        figure(f"{name}.cpu_until_up", 1000 * start / nodes, "ms_of_a_node", 1)
        head = sum(cpu_by_thread(step.head).values())
        figure(f"{name}.head_cpu_until_up", 1000 * head / nodes, "ms_for_a_node", 2)
        inner, leaves = roles(step, live)
        window = Window(step.head, inner, leaves)
        time.sleep(ROW_OPEN_S)
        tell_coverage(name, live, window, nodes)
        tell_cpu(name, window, step.head, inner, leaves)
        tell_memory(name, step.head, inner, leaves)
        report = step.finish()
    told = [line for line in report.splitlines() if line.startswith(("Coverage", "Own cost"))]
    print("".join(f"  {line}\n" for line in told), end="", flush=True)


def interrupted(number, _):
    sys.exit(128 + number)


def main():
    signal.signal(signal.SIGTERM, interrupted)
    for nodes in NODES:
        measure(nodes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
