"""Runs in the guest: steps that do unusual things, each without telemetry and with it.

  scenarios.py CONTAIN [NAME...]

Prints one JSON object, scenario -> what was seen. /share/sonde has the programs, /share/scripts the
private cluster. Only the standard library is here.
"""

import json
import subprocess
import sys

import end_scenarios
import life_scenarios
import silence_scenarios
from guest_cluster import CLUSTER, COUNTERS, NODES, Cluster, read, see_all, start_cluster

SCENARIOS = {**end_scenarios.SCENARIOS, **life_scenarios.SCENARIOS, **silence_scenarios.SCENARIOS}


def main():
    contain, names = sys.argv[1] == "contain", sys.argv[2:] or list(SCENARIOS)
    cluster = Cluster(start_cluster(contain))
    seen = see_all(cluster, SCENARIOS, names)
    seen["version"] = cluster.run(["srun", "--version"])[1]
    for node in NODES:
        seen[f"counters.{node}"] = read(f"{COUNTERS}/{node}.prom")
        seen[f"log.{node}"] = [
            line for line in read(f"{cluster.dir}/log/slurmd.{node}.log").splitlines() if " sonde: " in line
        ]
    json.dump(seen, sys.stdout, indent=1)
    subprocess.run([CLUSTER, "stop", cluster.dir], capture_output=True, check=False)


main()
