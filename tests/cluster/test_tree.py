"""The tree of a running step's daemons: who is linked, silent or lost, at the head and at `sonde serve`."""

import json
import os
import signal

from conftest import wait_for
from telemetry import LEVEL, Step, daemon, served


def tree(live, step):
    return json.loads(live.get(f"/api/v1/tree?job={step}"))


def behind(found, host):
    """Seconds by which the newest row is ahead of the newest one with the node's sample."""
    (node,) = [one for one in found["nodes"] if one["host"] == host]
    return (found["newest_tick"] - node["last_tick"]) / 1e9


def state(found, host):
    (node,) = [one for one in found["nodes"] if one["host"] == host]
    return node["state"]


def test_who_is_silent_and_lost_is_told_while_the_step_runs(cluster):
    step = Step(cluster, ["srun", "-N3", "-w", "n[1-3]", *LEVEL, "sleep", "300"])
    live = step.wait_nodes(3)
    found = tree(live, step.id)
    assert found["running"] and found["expected"] == found["registered"] == 3
    assert found["period"] == 100_000_000
    assert sorted(node["host"] for node in found["nodes"]) == ["n1", "n2", "n3"]
    for node in found["nodes"]:
        # Few nodes all send to the head.
        assert (node["parent"], node["state"]) == (None, "connected")
        assert node["carrier"], "what carries the link is known"
        assert 0 < node["since"] < found["now"]
    # What each sends.
    query = f"/api/v1/heatmap?job={step.id}&metric=sonde_sent_bytes_total&by=host&columns=1&start=30s-ago"
    sent = json.loads(live.get(query))
    assert len(sent["names"]) == 3 and all(row[0] > 0 for row in sent["mean"])

    victim = [one for one in range(3) if daemon("node", step.id, one)][1]
    (pid,) = daemon("node", step.id, victim)
    host = f"n{victim + 1}"
    with served(cluster) as archive:
        assert {node["host"] for node in tree(archive, step.id)["nodes"]} == {"n1", "n2", "n3"}
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: behind(tree(live, step.id), host) > 0.5, "the silence", 20)
        os.kill(pid, signal.SIGCONT)
        wait_for(
            lambda: behind(now := tree(live, step.id), host) < 0.5 and state(now, host) == "connected",
            "the node again", 30,
        )
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: state(tree(archive, step.id), host) == "lost", "the loss", 30)
        (node,) = [one for one in tree(live, step.id)["nodes"] if one["host"] == host]
        assert node["note"] and node["since"] <= tree(live, step.id)["now"]
        cluster.slurm("scancel", step.job)
        step.wait()

        def ended():
            found = tree(archive, step.id)
            return not found["running"] and found

        found = wait_for(ended, "the end", 20)
        assert found["nodes"] == [] and found["expected"] == 3
