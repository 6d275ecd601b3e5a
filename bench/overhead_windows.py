#!/usr/bin/env python3
# What the daemons take from an application (LAMMPS, 2 MPI ranks): seconds with them against without
"""One run of LAMMPS per level, as in `overhead`, and in it windows of a second by turns with the
step's daemons at work and with them stopped (SIGSTOP, SIGCONT), in pairs, at random which of a pair
comes first. LAMMPS says after every 20 steps, some 15 ms, that they are done. What counts is how
much longer that took in one window of a pair than in the other, on average: what slows the machine
for longer than a pair falls out, and there are hundreds of pairs.

The middle half of these times lies within 2 %, but one in ten is up to twice as long: the host's
other guests. So no single one counts for more than the median and a tenth, 1.4 ms; all that a
daemon does at a tick, the head included, takes less than half of that.

`null` is the same run at level 0, where nothing is stopped: its interval must hold zero, and its
width is what this method cannot see here. The ranks have all CPUs, so whatever the daemons take, and
whatever they disturb in caches, is taken from the ranks. A daemon that goes on takes the sample that
was due while it was stopped: at 1 Hz a window has two samples instead of one.

Not in it, but in `overhead`: starting and ending the step, and what counters opened in the tasks
cost while they count, as they go on while the daemons are stopped.

The interval is Student's, of the mean at 95 %.
"""

import argparse
import contextlib
import os
import random
import selectors
import signal
import statistics
import subprocess
import sys
import time

from overhead import CASES, TARGETS, daemons, interval
from leaf import cpu_seconds
from private_cluster import cluster, environment, figure, our_plugstack

MELT = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {size} 0 {size} 0 {size}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 4711
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo_style custom step
thermo_modify flush yes
thermo {every}
run 100000000
"""
WARM_UP_S = 5  # the crystal has melted by then, and the step's links are up


class Pace:
    """What LAMMPS says through its pipe: when it had done how many steps."""

    def __init__(self, fd):
        self.fd = fd
        self.rest = b""
        self.last = None  # time and step of the last word
        self.selector = selectors.DefaultSelector()
        self.selector.register(fd, selectors.EVENT_READ)

    def until(self, end):
        """Seconds per step of every word up to then, the one under way included."""
        times = []
        while (left := end - time.monotonic()) > 0:
            if not self.selector.select(left):
                break
            word = self.read()
            if word is None:
                continue
            if self.last is not None:
                times.append((word[0] - self.last[0]) / (word[1] - self.last[1]))
            self.last = word
        return times

    def read(self):
        data = os.read(self.fd, 65536)
        if not data:
            raise EOFError
        *lines, self.rest = (self.rest + data).split(b"\n")
        steps = [int(line) for line in lines if line.strip().isdigit()]
        return (time.monotonic(), steps[-1]) if steps else None


@contextlib.contextmanager
def melting(env, directory, chosen, options):
    fifo, script = directory / "pace", directory / "melt.in"
    os.mkfifo(fifo)
    script.write_text(MELT.format(size=chosen.size, every=chosen.every))
    command = ["srun", "-n2", "--mpi=pmix", *options, "lmp", "-in", script]
    command += ["-log", fifo, "-screen", "none"]
    run = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    fd = os.open(fifo, os.O_RDONLY)
    try:
        yield run, Pace(fd)
    finally:
        run.terminate()
        run.communicate()
        os.close(fd)
        fifo.unlink()


def fail(run, what):
    run.kill()
    sys.exit(f"bench/overhead_windows: {what}: {run.communicate()[1]}")


def switch(procs, on):
    for proc in procs.values():
        os.kill(int(proc.name), signal.SIGCONT if on else signal.SIGSTOP)


def measure(run, pace, chosen, rng, watched):
    """Windows as pairs of lists of seconds per step, with the daemons and without; and the daemons'
    shares of a core while they were at work."""
    pace.until(time.monotonic() + WARM_UP_S)
    procs = daemons() if watched else {}
    if watched and set(procs) != {"node", "head"}:
        fail(run, "no daemons beside it")
    before = {role: cpu_seconds(proc) for role, proc in procs.items()}
    pairs, on_time = [], 0.0
    try:
        for number in range(chosen.pairs):
            pair = {}
            for on in rng.sample([True, False], 2):
                start = time.monotonic()
                switch(procs, on)
                pair[on] = pace.until(start + chosen.window)
                on_time += on * (time.monotonic() - start)
            pairs.append((pair[True], pair[False]))
            if (number + 1) % 50 == 0:
                mean, half = interval(slowdowns(pairs))
                print(f"  {number + 1:4} pairs: {mean:+.3f} % +- {half:.3f}", flush=True)
    except EOFError:
        fail(run, "LAMMPS ended")
    finally:
        switch(procs, True)
    shares = {role: (cpu_seconds(p) - before[role]) / on_time for role, p in procs.items()}
    return slowdowns(pairs), shares


def slowdowns(pairs):
    """Percent, of each pair of windows."""
    most = 1.1 * statistics.median(t for pair in pairs for window in pair for t in window)

    def mean(window):
        return statistics.fmean(min(t, most) for t in window)

    return [100 * (mean(on) / mean(off) - 1) for on, off in pairs]


def report(name, values, shares):
    mean, half = interval(values)
    figure(f"overhead_windows.{name}_percent", mean, "percent_mean")
    figure(f"overhead_windows.{name}_median_percent", statistics.median(values), "percent_median")
    text = f"  95 % interval of the mean {mean - half:+.3f} to {mean + half:+.3f} %"
    if name in TARGETS:
        text += f", target {TARGETS[name]} %"
    print(text)
    for role, share in shares.items():
        figure(f"overhead_windows.{name}_{role}_daemon", 100 * share, "percent_of_a_core")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=300, help="of windows, for each case")
    parser.add_argument("--window", type=float, default=1, help="seconds")
    parser.add_argument("--size", type=int, default=10, help="cells of the crystal on a side")
    parser.add_argument("--every", type=int, default=20, help="steps between words of LAMMPS")
    parser.add_argument("--seed", type=int, default=1, help="of the windows' order")
    parser.add_argument("--cases", default="null,level2,level3")
    chosen = parser.parse_args()
    if chosen.pairs < 4 or chosen.window < 0.5 or chosen.size < 4 or chosen.every < 1:
        parser.error("--pairs, --size: at least 4; --window: 0.5; --every: 1")
    return chosen


def main():
    chosen = arguments()
    with cluster(our_plugstack(), nodes=1) as directory:
        env = environment(directory)
        env.update(OMP_NUM_THREADS="1", SONDE_REPORT="off")
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        for name in chosen.cases.split(","):
            options = CASES.get(name, ("--telemetry-level=0",))
            rng = random.Random(chosen.seed)
            with melting(env, directory, chosen, options) as (run, pace):
                values, shares = measure(run, pace, chosen, rng, name != "null")
            report(name, values, shares)


if __name__ == "__main__":
    sys.exit(main())
