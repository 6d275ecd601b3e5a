#!/usr/bin/env python3
# What telemetry takes from an application (LAMMPS, 2 MPI ranks): CPU and wall time, run against run
"""LAMMPS melts a Lennard-Jones crystal with 2 MPI ranks on a node of 2 CPUs, the same number of
steps in every run. Runs go in pairs, one at level 0 and one with telemetry, which of them first
taking turns: level 2 once a second, and level 3 ten times a second. What counts is the difference
within a pair, as a share of the run without.

CPU time is user and system time of the ranks, from wait4(); wall time that of the slower rank, from
exec to end: what srun needs to start a step is the subject of `launch`. Ranks that wait for each
other do so busily, so a rank that is held up shows twice. The daemons' own CPU time is in neither,
but what they take from the ranks is, as there are no CPUs to spare.

The interval is Student's, of the mean at 95 %. `noise` is half of it for the runs at level 0 of
successive pairs, which differ in nothing: what this method cannot see here.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

from leaf import cpu_seconds
from private_cluster import SONDED, cluster, environment, figure, our_plugstack

MELT = pathlib.Path(__file__).resolve().with_name("melt.in")
CASES = {
    "level2": ("--telemetry-level=2", "--telemetry-period=1s"),
    "level3": ("--telemetry-level=3", "--telemetry-period=100ms"),
}
TARGETS = {"level2": 0.2, "level3": 0.5}  # percent
TRIAL_STEPS = 100
TRIALS = 3


def rank(command):
    """Runs as a task of the step: the application as its child, and one line about it."""
    start = time.monotonic()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    print(json.dumps({"cpu": usage.ru_utime + usage.ru_stime, "wall": wall}), flush=True)
    return child.returncode


def daemons():
    """Node daemon and head, by role, as folders of /proc; empty without telemetry."""
    found = {}
    for proc in pathlib.Path("/proc").iterdir():
        try:
            if not proc.name.isdigit():
                continue
            program = (proc / "exe").readlink()
            if program == SONDED:
                found["node"] = proc
            elif program == SONDED.with_name("sonded-head"):
                found["head"] = proc
        except OSError:
            continue
    return found


class Looks:
    """Looks at the daemons twice while a run lasts, early and late; in every run, so that it weighs
    on both of a pair."""

    def __init__(self, expected):
        self.seen = []  # role -> (time, CPU seconds) at each look
        self.timers = [threading.Timer(share * expected, self.look) for share in (0.3, 0.8)]
        for timer in self.timers:
            timer.start()

    def look(self):
        seen = {}
        for role, proc in daemons().items():
            try:
                seen[role] = (time.monotonic(), cpu_seconds(proc))
            except OSError:
                continue
        self.seen.append(seen)

    def shares(self):
        """Role -> share of a core between the looks; without those that were not seen twice."""
        for timer in self.timers:
            timer.cancel()
            timer.join()
        if len(self.seen) < 2:
            return {}
        first, second = self.seen
        return {
            role: (cpu - first[role][1]) / (when - first[role][0])
            for role, (when, cpu) in second.items()
            if role in first
        }


class Bench:
    def __init__(self, env, size):
        self.env = {**env, "OMP_NUM_THREADS": "1"}
        # Runs are root's, on a cluster of their own.
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.env.update(SONDE_REPORT="off")
        self.size = size
        self.expected = 1.0  # seconds: as long as the run before

    def run(self, steps, options=()):
        """CPU and wall seconds of the application, and the daemons' shares of a core."""
        melt = ["lmp", "-in", MELT, "-var", "n", str(self.size), "-var", "steps", str(steps)]
        task = [sys.executable, __file__, "--rank", *melt, "-log", "none", "-screen", "none"]
        looks = Looks(self.expected)
        options = options or ("--telemetry-level=0",)
        command = ["srun", "-n2", "--mpi=pmix", *options, *task]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True)
        shares = looks.shares()
        if done.returncode != 0:
            sys.exit(f"bench/overhead: {' '.join(map(str, command))}:\n{done.stderr}{done.stdout}")
        ranks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.expected = max(r["wall"] for r in ranks)
        return sum(r["cpu"] for r in ranks), self.expected, shares

    def calibrate(self, seconds):
        """Steps for a run of that length. The first run, whose programs and libraries come from the
        disk, and what others use of the machine, only make a trial longer: the shortest counts."""
        start, trial = (
            min(self.run(steps)[1] for _ in range(TRIALS)) for steps in (1, TRIAL_STEPS)
        )
        return max(1, round(seconds * TRIAL_STEPS / max(trial - start, 1e-3)))


def t_quantile(freedom, p=0.975):
    """Student's t by its expansion about the normal one: Abramowitz and Stegun 26.7.5."""
    z = statistics.NormalDist().inv_cdf(p)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / freedom**i for i, term in enumerate(terms))


def interval(values):
    """Mean, and half the width of its confidence interval."""
    half = t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), half


def differences(pairs, what):
    return [100 * (watched[what] / bare[what] - 1) for bare, watched in pairs]


def judge(values, target):
    """One line: what the interval says about the target."""
    mean, half = interval(values)
    low, high = mean - half, mean + half
    text = f"  95 % interval of the mean {low:+.3f} to {high:+.3f} %, target {target} %"
    if half > target:
        needed = math.ceil(len(values) * (half / target) ** 2)
        text += f": WIDER than the target, so nothing is shown; some {needed} pairs might do"
    elif high <= target:
        text += ": met"
    elif low > target:
        text += ": MISSED"
    else:
        text += ": the target lies in it, so it is neither met nor missed"
    print(text)


def report(name, pairs):
    for what, index in (("cpu", 0), ("wall", 1)):
        values = differences(pairs, index)
        suffix = "" if what == "cpu" else "_wall"
        figure(f"overhead.{name}{suffix}_percent", statistics.median(values), "percent_median")
        figure(f"overhead.{name}{suffix}_mean_percent", statistics.fmean(values), "percent")
        judge(values, TARGETS[name])
    for role in ("node", "head"):
        shares = [100 * watched[2][role] for _, watched in pairs if role in watched[2]]
        if shares:
            share = statistics.median(shares)
            figure(f"overhead.{name}_{role}_daemon", share, "percent_of_a_core")
        else:
            print(f"  no {role} daemon was seen twice in a run: give it more --seconds")


def report_noise(results):
    runs = [bare for together in zip(*results.values()) for bare, _ in together]
    for what, index in (("cpu", 0), ("wall", 1)):
        bare = [run[index] for run in runs]
        values = [100 * (b / a - 1) for a, b in zip(bare, bare[1:])]
        _, half = interval(values)
        figure(f"overhead.noise_{what}_percent", half, "percent_half_interval")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=20, help="of each level; at least 4")
    parser.add_argument("--seconds", type=float, default=10, help="of a run, about")
    parser.add_argument("--size", type=int, default=20, help="cells of the crystal on a side")
    chosen = parser.parse_args()
    if chosen.pairs < 4 or chosen.seconds <= 0 or chosen.size < 4:
        parser.error("--pairs and --size: at least 4; --seconds: above 0")
    return chosen


def main():
    chosen = arguments()
    results = {name: [] for name in CASES}
    with cluster(our_plugstack(), nodes=1) as directory:
        bench = Bench(environment(directory), chosen.size)
        steps = bench.calibrate(chosen.seconds)
        print(f"{steps} steps a run, {chosen.pairs} pairs of each level; pairs as they come:")
        for number in range(chosen.pairs):
            for name, options in CASES.items():
                runs = {}
                turns = (("bare", ()), ("watched", options))
                for kind, extra in turns if number % 2 == 0 else reversed(turns):
                    runs[kind] = bench.run(steps, extra)
                bare, watched = runs["bare"], runs["watched"]
                results[name].append((bare, watched))
                print(
                    f"  {number + 1:3} {name}: CPU {bare[0]:.3f} s and {watched[0]:.3f} s, "
                    f"wall {bare[1]:.3f} s and {watched[1]:.3f} s",
                    flush=True,
                )
    for name, pairs in results.items():
        report(name, pairs)
    report_noise(results)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        sys.exit(rank(sys.argv[2:]))
    sys.exit(main())
