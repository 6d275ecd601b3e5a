#!/usr/bin/env python3
# What a 1 s step on 4 nodes costs, and what 1000 short steps leave behind in Slurm's daemons

"""Environment: ROUNDS (20) steps of 1 s; STEPS (1000) steps of `true` on a private cluster, with a look
at Slurm's daemons after every EVERY (50). What grows with every step shows in the trend, the median of what it
grew by from look to look; an arena that once takes another piece only in the growth."""

import itertools
import os
import pathlib
import subprocess
import sys
import time

from daemon_costs import descriptors, mean, median, private_bytes
from private_cluster import SCRIPT, SONDED, cluster, environment, figure, our_plugstack
from step_of_daemons import Step

ROUNDS = int(os.environ.get("ROUNDS", "20"))
STEPS = int(os.environ.get("STEPS", "1000"))
EVERY = int(os.environ.get("EVERY", "50"))
NODES = 4
WARM_UP = 100  # steps, until caches and arenas have their size


def cpu_ms(daemon):
    return 1000 * (daemon.used.ru_utime + daemon.used.ru_stime)


def one_second_steps():
    """Without Slurm: the daemons' own cost from exec to exit, as the kernel counts it."""
    nodes, heads = [], []
    for _ in range(ROUNDS):
        with Step(NODES) as step:
            daemons, head = step.nodes[:], step.head
            time.sleep(max(0, 1 - (time.monotonic() - step.started)))
            step.finish()
        nodes += [cpu_ms(daemon) for daemon in daemons]
        heads.append(cpu_ms(head))
    figure("short_steps.node_cpu", mean(nodes), "ms", 1)
    figure("short_steps.node_cpu_worst", max(nodes), "ms", 1)
    figure("short_steps.head_cpu", mean(heads), "ms", 1)


class SlurmDaemon:
    def __init__(self, line):
        self.name, pid = line.split()
        self.pid = int(pid)
        self.proc = pathlib.Path(f"/proc/{pid}")

    def state(self):
        return private_bytes(self) / 1e6, descriptors(self)


def slurm_daemons(directory):
    done = subprocess.run([SCRIPT, "ps", directory], check=True, capture_output=True, text=True)
    found = [SlurmDaemon(line) for line in done.stdout.splitlines()]
    return [daemon for daemon in found if daemon.name.startswith(("slurmctld", "slurmd"))]


def left_behind():
    """What a step must not leave on a host: daemons, their sockets, shared memory."""
    daemons = 0
    for exe in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            daemons += exe.readlink().parent == SONDED.parent
        except OSError:
            continue
    unix = pathlib.Path("/proc/net/unix").read_text().count("@sonde")
    shared = len([path for path in pathlib.Path("/dev/shm").iterdir() if "sonde" in path.name])
    return {"daemons": daemons, "sockets": unix, "shared_memory": shared}


def allocate(env):
    command = ["salloc", f"-N{NODES}", "--no-shell"]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    (number,) = [line.split()[-1] for line in done.stderr.splitlines() if "Granted" in line]
    return number


def run_steps(env, job, options, count):
    command = ["srun", f"--jobid={job}", f"-N{NODES}", *options, "true"]
    failed = 0
    for _ in range(count):
        failed += subprocess.run(command, env=env, capture_output=True, check=False).returncode != 0
    return failed


def trend(values):
    """A step's, of what was read every EVERY steps."""
    return median([after - before for before, after in itertools.pairwise(values)]) / EVERY


def many_steps(name, plugstack, options):
    """What grows in Slurm's daemons; compare with the same number of steps without telemetry."""
    with cluster(plugstack, "report = off\n") as directory:
        env = environment(directory)
        job = allocate(env)
        before = left_behind()
        failed = run_steps(env, job, options, WARM_UP)
        daemons = slurm_daemons(directory)
        states = [[daemon.state() for daemon in daemons]]
        start = time.monotonic()
        for _ in range(STEPS // EVERY):
            failed += run_steps(env, job, options, EVERY)
            states.append([daemon.state() for daemon in daemons])
        wall = time.monotonic() - start
        subprocess.run(["scancel", job], env=env, check=True)
        after = left_behind()
        deadline = time.monotonic() + 10  # the last head may still store its profile
        while after["daemons"] > before["daemons"] and time.monotonic() < deadline:
            time.sleep(0.1)
            after = left_behind()
    figure(f"{name}.failed", failed, "1", 0)
    figure(f"{name}.wall", 1000 * wall / (STEPS // EVERY * EVERY), "ms_per_step", 1)
    for index, daemon in enumerate(daemons):
        memory = [state[index][0] for state in states]
        files = [state[index][1] for state in states]
        figure(f"{name}.{daemon.name}_memory_growth", memory[-1] - memory[0], "MB")
        figure(f"{name}.{daemon.name}_memory_trend", 1e6 * trend(memory), "B_per_step", 1)
        figure(f"{name}.{daemon.name}_descriptors_growth", files[-1] - files[0], "1", 0)
        print(f"  private MB every {EVERY} steps: " + " ".join(f"{m:.3f}" for m in memory))
        print("  descriptors: " + " ".join(map(str, files)), flush=True)
    for what, number in after.items():
        figure(f"{name}.left_{what}", number - before[what], "1", 0)


def main():
    one_second_steps()
    many_steps("short_steps.level2", our_plugstack(), ["--telemetry-level=2"])
    many_steps("short_steps.without", "", [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
