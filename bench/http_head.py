"""How late the ticks of a real head are while 64 clients ask it over HTTP, and when nobody does.

A step of 4 nodes on a private cluster, the head beside srun as always. A task subscribes to the step's
ticks and takes the time from a tick to its value: nodes, head, and the way back, nothing of HTTP. The
clients have nice 10, for as a rule they are on other machines. Run by bench/http.sh.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from private_cluster import BUILD, cluster, environment, figure, our_plugstack

WARM_UP_S = int(os.environ.get("WARM_UP_S", 10))
WINDOW_S = int(os.environ.get("WINDOW_S", 30))
ROUNDS = int(os.environ.get("ROUNDS", 2))
METRIC = "node_load1"

# The task: prints "TICK MILLISECONDS" for each tick.
PROBE = """
import os, sys, time
from sonde.query import Query
if os.environ["SLURM_PROCID"] != "0":
    time.sleep(float(sys.argv[2]))
    sys.exit(0)
with Query() as query:
    def told(news):
        now = time.time()
        for series in news.series:
            for point in series.points:
                print(point.time, (now - point.time) * 1000, flush=True)
    query.subscribe(sys.argv[1], told, "max")
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        query.poll(0.5)
"""


def endpoint_of(directory):
    live = directory / "home" / "root" / ".local" / "share" / "sonde" / "live"
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for found in live.glob("*/endpoint.json"):
            return json.loads(found.read_text())
        time.sleep(0.05)
    raise SystemExit("bench http: the step's head does not serve")


def load(endpoint):
    """64 clients for a window; their figures as printed."""
    command = ["nice", "-n", "10", BUILD / "bench" / "bench_http", "--clients", str(endpoint["port"]),
               endpoint["token"], str(WINDOW_S), METRIC]  # fmt: skip
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lateness(lines, windows):
    return [late for tick, late in lines if any(a <= tick < b for a, b in windows)]


def main():
    quiet, loaded, answers = [], [], []
    with cluster(our_plugstack()) as directory, tempfile.NamedTemporaryFile("w+") as script:
        script.write(PROBE)
        script.flush()
        seconds = WARM_UP_S + 2 * ROUNDS * WINDOW_S + 10
        env = environment(directory)
        env["PYTHONPATH"] = str(BUILD / "libclient" / "python")
        step = subprocess.Popen(
            ["srun", "-N4", "--telemetry-level=2", sys.executable, script.name, METRIC, str(seconds)],
            env=env, stdout=subprocess.PIPE, text=True)  # fmt: skip
        endpoint = endpoint_of(directory)
        time.sleep(WARM_UP_S)
        for _ in range(ROUNDS):
            begin = time.time()
            time.sleep(WINDOW_S)
            quiet.append((begin, time.time()))
            begin = time.time()
            answers.append(load(endpoint))
            loaded.append((begin, time.time()))
        out, _ = step.communicate(timeout=seconds + 60)
    lines = [tuple(map(float, line.split())) for line in out.splitlines()]
    alone, busy = lateness(lines, quiet), lateness(lines, loaded)
    for name, values in ("alone", alone), ("loaded", busy):
        if not values:
            raise SystemExit(f"bench http: no ticks were told ({name})")
        figure(f"http.ticks_{name}", statistics.median(values), "ms")
        print(f"  {len(values)} ticks, {min(values):.2f} to {max(values):.2f} ms")
    figure("http.ticks_later", statistics.median(busy) - statistics.median(alone), "ms")
    print(answers[-1], end="")


if __name__ == "__main__":
    main()
