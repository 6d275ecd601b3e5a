#!/usr/bin/env python3
# A question about the last minute from a Python program of a 4-node step: sonde.query, get_data()

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from private_cluster import BUILD, cluster, environment, latencies, our_plugstack

WARM_UP_S = int(os.environ.get("WARM_UP_S", 90))  # a minute to ask for
ROUNDS = int(os.environ.get("ROUNDS", 1000))
METRIC = "node_memory_MemAvailable_bytes"
LABELS = {
    "job": "job-wide, sonde.query",
    "host": "by host, sonde.query",
    "get_data": "by host, AnalysisClient.get_data",
    "get_data_300s": "the same of five minutes, as far as the step is that old",
}


def ask(seconds, rounds, metric):
    """The task of rank 0: prints lines `NAME MICROSECONDS`."""
    from sonde import AnalysisClient
    from sonde.query import Query

    client = AnalysisClient()
    client.connect()
    with Query() as query:
        questions = {
            "job": lambda: query.get(metric, last=60, downsample="1s-avg"),
            "host": lambda: query.get(metric, last=60, downsample="1s-avg", by="host"),
            "get_data": lambda: client.get_data(metric, start_time=time.time() - 60),
            "get_data_300s": lambda: client.get_data(metric),
        }
        time.sleep(seconds)
        for name, question in questions.items():
            if len(question()) != (1 if name == "job" else 4):
                sys.exit(f"bench python_query: {name} has not the answers of 4 nodes")
        for turn in range(rounds):
            # Every second time the other way round: what comes after a pause is slower.
            for name, question in list(questions.items())[:: 1 if turn % 2 == 0 else -1]:
                start = time.perf_counter_ns()
                question()
                print(name, (time.perf_counter_ns() - start) / 1000)
            time.sleep(0.002)


def work(done, *arguments):
    """A task; the others wait until rank 0 has asked."""
    done = pathlib.Path(done)
    if os.environ["SLURM_PROCID"] != "0":
        while not done.exists():
            time.sleep(0.5)
        return
    try:
        ask(int(arguments[0]), int(arguments[1]), arguments[2])
    finally:
        done.touch()


def main():
    with cluster(our_plugstack()) as directory, tempfile.TemporaryDirectory() as scratch:
        env = environment(directory)
        env["PYTHONPATH"] = str(BUILD / "libclient" / "python")
        command = ["srun", "-N4", "--telemetry-level=2", sys.executable, __file__, "work"]
        command += [f"{scratch}/done", str(WARM_UP_S), str(ROUNDS), METRIC]
        step = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if step.returncode != 0:
        print(step.stderr, file=sys.stderr)
        return 1
    latencies("python_query", LABELS, step.stdout.splitlines())
    return 0


if __name__ == "__main__":
    sys.exit(work(*sys.argv[2:]) if sys.argv[1:2] == ["work"] else main())
