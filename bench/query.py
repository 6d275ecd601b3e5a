#!/usr/bin/env python3
# A question about the last minute from within a 4-node step, by libsonde and over the head's HTTP

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from private_cluster import BUILD, cluster, environment, latencies, our_plugstack

WARM_UP_S = int(os.environ.get("WARM_UP_S", 90))  # a minute to ask for, and blocks that were sealed
ROUNDS = int(os.environ.get("ROUNDS", 1000))
METRIC = "node_memory_MemAvailable_bytes"
LABELS = {
    "job": "job-wide, libsonde",
    "job_http": "job-wide, HTTP",
    "host": "by host, libsonde",
    "host_http": "by host, HTTP",
}


def wait_for(found, seconds=30):
    end = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > end:
            raise SystemExit("bench query: the step's head does not serve")
        time.sleep(0.1)
    return value


def tell_endpoint(directory, path):
    """Writes host, port and token where the program looks for them."""
    live = directory / "home" / "root"
    (found,) = wait_for(lambda: list(live.glob(".local/share/sonde/live/*/endpoint.json")))
    endpoint = json.loads(found.read_text())
    text = f"{endpoint['host']} {endpoint['port']} {endpoint['token']}\n"
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def main():
    with cluster(our_plugstack()) as directory, tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "endpoint"
        command = ["srun", "-N4", "--telemetry-level=2", BUILD / "bench" / "bench_query", path]
        command += [str(WARM_UP_S), str(ROUNDS), METRIC]
        step = subprocess.Popen(
            command, env=environment(directory), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        tell_endpoint(directory, path)
        out, errors = step.communicate()
    if step.returncode != 0:
        print(errors, file=sys.stderr)
        return 1
    latencies("query", LABELS, (line.split(" ", 1)[1] for line in out.splitlines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
