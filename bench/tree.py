#!/usr/bin/env python3
# What a step of N nodes costs, its daemons all on this machine: CPU, memory, coverage, start

"""Real daemons over loopback, fanout 16, level 2, one sample a second. Arguments in the environment:
NODES ("16 64 256 1024"), WINDOW (60 s)."""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

from private_cluster import figure
from step_of_daemons import JOB, STEP, Step

NODES = [int(word) for word in os.environ.get("NODES", "16 64 256 1024").split()]
SECONDS = int(os.environ.get("WINDOW", "60"))
FANOUT = 16
METRIC = "node_load1"  # every node has one at every tick
UP_WITHIN_S = 300


def cpu_seconds(daemon):
    """By thread, from schedstat: nanoseconds, where stat counts in ticks of 10 ms."""
    return {
        task.name: int((task / "schedstat").read_text().split()[0]) / 1e9
        for task in (daemon.proc / "task").iterdir()
    }


def spent(daemon, before):
    """Since then, by threads that still live: what a thread that ended spent is not told."""
    return sum(now - before.get(task, 0) for task, now in cpu_seconds(daemon).items())


def user_and_system(daemon):
    """CPU seconds so far, in ticks of 10 ms: good for many daemons together only."""
    fields = (daemon.proc / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / 100, int(fields[12]) / 100


def all_cpu(daemons):
    return [sum(user_and_system(daemon)) for daemon in daemons]


def system_share(daemons):
    both = [user_and_system(daemon) for daemon in daemons]
    system = sum(system for _, system in both)
    return system / max(system + sum(user for user, _ in both), 1e-9)


def switches(daemon):
    status = (daemon.proc / "status").read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)


def private_bytes(daemon):
    rollup = (daemon.proc / "smaps_rollup").read_text()
    lines = [line for line in rollup.splitlines() if line.startswith("Private_")]
    return 1024 * sum(int(line.split()[1]) for line in lines)


def descriptors(daemon):
    return len(list((daemon.proc / "fd").iterdir()))


def received_bytes(daemon):
    """Over all TCP connections that it has."""
    command = ["ss", "-tinpH", "state", "established"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    total = 0
    for line, details in zip(lines[::2], lines[1::2]):
        if f"pid={daemon.pid}," in line:
            words = [w for w in details.split() if w.startswith("bytes_received:")]
            total += sum(int(word.partition(":")[2]) for word in words)
    return total


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
        query = f"job={JOB}.{STEP}&metric={METRIC}&points=5000&start={int(since) - 1}"
        try:
            series = self.get(f"/api/v1/series?{query}")["series"]
        except urllib.error.HTTPError as error:
            if error.code != 404:  # no row yet
                raise
            return {}
        return dict(zip(series[0]["time"], series[0]["count"])) if series else {}


def wait_until_up(step, live, nodes):
    """Until a tick has all nodes; gives the seconds since the first daemon was started."""
    began = time.time()
    deadline = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < deadline:
        if step.endpoint() is not None:
            full = [t for t, count in live.counts(began - 60).items() if count >= nodes]
            if full:
                return min(full) - began
        time.sleep(0.5)
    raise SystemExit(f"bench tree: {nodes} daemons were not up within {UP_WITHIN_S} s")


def roles(step, live):
    """Inner nodes and leaves."""
    by_host = {f"n{i}": daemon for i, daemon in enumerate(step.nodes)}
    order = [by_host[host] for host in live.hosts()]
    inner = max(0, min(len(order), (len(order) - 1) // FANOUT))
    return order[:inner], order[inner:]


def median(values):
    return statistics.median(values) if values else 0.0


class Window:
    """What daemons spend between two moments."""

    def __init__(self, daemons, head):
        self.daemons, self.head = daemons, head
        self.cpu = [cpu_seconds(d) for d in daemons]
        self.switches = [switches(d) for d in daemons]
        self.received = received_bytes(head)
        self.began = time.time()
        self.start = time.monotonic()

    def close(self):
        self.wall = time.monotonic() - self.start
        self.ended = time.time()
        self.received = received_bytes(self.head) - self.received
        self.cores = {
            d: spent(d, before) / self.wall for d, before in zip(self.daemons, self.cpu)
        }
        self.wakes = {
            d: (switches(d) - s) / self.wall for d, s in zip(self.daemons, self.switches)
        }


def tell_coverage(name, live, window, nodes):
    counts = live.counts(window.began)
    # Rows stay open for a while; the last ones of the window are complete only later.
    ticks = range(int(window.began) + 2, int(window.ended) - 3)
    full = sum(counts.get(tick, 0) >= nodes for tick in ticks)
    got = sum(min(counts.get(tick, 0), nodes) for tick in ticks)
    figure(f"{name}.complete_ticks", 100 * full / len(ticks), "percent", 1)
    figure(f"{name}.coverage", 100 * got / (nodes * len(ticks)), "percent", 3)


def tell_cpu(name, window, head, inner, leaves):
    head_cpu = window.cores[head]
    inner_cpu = [window.cores[d] for d in inner]
    leaf_cpu = [window.cores[d] for d in leaves]
    leaf = statistics.mean(leaf_cpu)
    total = head_cpu + sum(inner_cpu) + sum(leaf_cpu)
    figure(f"{name}.cpu_total", total, "cores", 4)
    figure(f"{name}.cpu_head", 1e6 * head_cpu, "us_per_tick", 0)
    figure(f"{name}.cpu_inner", 1e6 * (statistics.mean(inner_cpu) if inner else 0), "us_per_tick", 0)
    figure(f"{name}.cpu_leaf", 1e6 * leaf, "us_per_tick", 0)
    own = leaf * (len(inner) + len(leaves))
    figure(f"{name}.cpu_share_own", own, "cores", 4)
    figure(f"{name}.cpu_share_merging", sum(c - leaf for c in inner_cpu), "cores", 4)
    figure(f"{name}.cpu_share_head", head_cpu, "cores", 4)
    figure(f"{name}.cpu_system", 100 * system_share(leaves), "percent_of_a_leaf's", 0)
    figure(f"{name}.switches_leaf", median([window.wakes[d] for d in leaves]), "per_second", 2)


def tell_memory(name, head, inner, leaves):
    for role, daemons in (("leaf", leaves), ("inner", inner), ("head", [head])):
        private = [private_bytes(d) / 1e6 for d in daemons]
        if private:
            figure(f"{name}.private_{role}", median(private), "MB")
            figure(f"{name}.private_{role}_worst", max(private), "MB")
            figure(f"{name}.descriptors_{role}", max(descriptors(d) for d in daemons), "1", 0)


def measure(nodes):
    name = f"tree.{nodes}"
    with Step(nodes, conf=f"fanout = {FANOUT}\n" + os.environ.get("TREE_CONF", "").replace(";", "\n")) as step:
        live = Live(step)
        began = time.time() - (time.monotonic() - step.started)
        wait_until_up(step, live, nodes)
        full = min(t for t, count in live.counts(began - 1).items() if count >= nodes)
        figure(f"{name}.all_up", full - began, "s", 1)
        time.sleep(float(os.environ.get("TREE_SETTLE", "5")))
        figure(f"{name}.cpu_start", 1000 * statistics.mean(all_cpu(step.nodes)), "ms", 1)
        window = Window([step.head, *step.nodes], step.head)
        time.sleep(SECONDS)
        window.close()
        inner, leaves = roles(step, live)
        time.sleep(4)
        tell_coverage(name, live, window, nodes)
        tell_cpu(name, window, step.head, inner, leaves)
        tell_memory(name, step.head, inner, leaves)
        figure(f"{name}.head_bytes", window.received / window.wall, "bytes_per_tick", 0)
        if command := os.environ.get("TREE_EXEC"):
            leaf, node = leaves[-1].pid, (inner or leaves)[0].pid
            env = {**os.environ, "LEAF": str(leaf), "INNER": str(node), "HEAD": str(step.head.pid)}
            subprocess.run(command, shell=True, env=env, check=False)
        report = step.finish()
    print("".join(f"  {line}\n" for line in report.splitlines() if "ost" in line or "overage" in line))


def interrupted(number, _):
    sys.exit(128 + number)


def main():
    signal.signal(signal.SIGTERM, interrupted)
    for nodes in NODES:
        measure(nodes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
