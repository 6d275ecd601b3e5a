"""Runs in guests of their own: steps whose nodes die, hang, lose their network, memory or time.

  node_scenarios.py [NAME...]

On main it prints one JSON object, scenario -> what was seen; on a node it is the node's agent.
/share/sonde has the programs, /share/scripts the private cluster. Only the standard library is here.
"""

import json
import re
import socket
import subprocess
import sys
import time

import node_agent
from batch_job import BatchJob
from guest_cluster import CLUSTER, NothingToSee, require, see_all, wait_for
from node_cluster import NODES, UNTIL_GO, WORK, NodeCluster, ask, finish, outside, see, shell

# Longer than a node waits for a head that does not answer, and a head for a node (kPatience, 6 s, and kAnswer, 2 s).
SILENT = 12.0
# Enough for what came late to arrive, and for some new samples.
LATER = 5.0
# Munge takes nothing from a node whose clock is off by more than an hour.
CLOCK_STEP = 3540


def elapse(seconds):
    """For what has no end that could be waited for."""
    wait_for(lambda: False, seconds)


def started(cluster, level, *words):
    step = cluster.popen(["srun", *level, "-N2", *words, "bash", "-c", UNTIL_GO])
    cluster.running(bool(level))
    if level:
        # Its first samples, before anything happens.
        elapse(2.0)
    return step


def plain(cluster):
    """All is well: what the others are compared with."""
    return see(cluster, lambda level: finish(started(cluster, level)))


def node_death(cluster):
    def run(level):
        step = started(cluster, level)
        cluster.power_off("n2")
        output = step.communicate(timeout=120)[0]
        return step.returncode, output

    return see(cluster, run)


def node_death_no_kill(cluster):
    """The task on the first node goes on."""

    def run(level):
        step = started(cluster, level, "--no-kill")
        cluster.power_off("n2")
        wait_for(lambda: cluster.node_states()["n2"].startswith("DOWN"), 100, 0.5)
        elapse(LATER)
        goes_on = bool(ask("n1")["tasks"])
        code, output = finish(step)
        return [code, goes_on], output

    return see(cluster, run)


def disturbed(verb, undo):
    """A step whose second node is disturbed for longer than a head waits, and then goes on."""

    def scenario(cluster):
        def run(level):
            step = started(cluster, level)
            outside(verb, "n2")
            elapse(SILENT)
            outside(undo, "n2")
            elapse(LATER)
            return finish(step)

        return see(cluster, run)

    return scenario


# Piece by piece: the kernel refuses at once what it could never have.
EATER = """
held = []
while True:
    held.append(bytearray(1 << 20))
    held[-1][::4096] = b"1" * 256
"""
UNTIL_EATING = f"until [ -e {WORK}/eat ]; do sleep 0.1; done"


def full_memory(cluster):
    """A task takes all of the second node's memory, which Slurm does not limit; the first node's goes on."""
    (WORK / "eat.py").write_text(EATER)

    def run(level):
        (WORK / "eat").unlink(missing_ok=True)
        eater = f"[ $SLURM_PROCID = 0 ] || exec python3 {WORK}/eat.py"
        shell("n2", "dmesg --clear")
        step = cluster.popen(
            ["srun", *level, "-N2", "--mem=0", "--kill-on-bad-exit=0", "bash", "-c",
             f"{UNTIL_EATING}; {eater}; {UNTIL_GO}"])  # fmt: skip
        cluster.running(bool(level))
        (WORK / "eat").touch()
        require(lambda: not ask("n2")["tasks"], "the end of the eater")
        elapse(LATER)
        killed = re.findall(r"Killed process \d+ \((.*?)\)", shell("n2", "dmesg")[1])
        (WORK / "eat").unlink()
        code, output = finish(step)
        return code, f"{output}killed: {' '.join(killed)}\n"

    return see(cluster, run)


def hung_head(cluster):
    """The node of a batch script hangs, with srun in it and the head beside srun; the script's step
    goes on there and on the second node. Home is each node's own: the profile is on the first."""

    def run(level):
        job = BatchJob(cluster, [*level, "-N2", "-o", "/dev/null"], f"srun bash -c '{UNTIL_GO}'")
        cluster.running(bool(level))
        elapse(2.0)
        outside("freeze", "n1")
        elapse(SILENT)
        acting = [words for words in ask("n2")["ours"].values() if "--head" in words]
        outside("thaw", "n1")
        elapse(LATER)
        code, output = finish(job)
        return code, output + ("n2 went on as head\n" if acting else "")

    return see(cluster, run, node="n1")


def clock_step(seconds):
    """The second node's clock is set while the step runs, and is right again when it is over."""

    def scenario(cluster):
        def run(level):
            step = started(cluster, level)
            set_clock("n2", seconds)
            try:
                elapse(SILENT)
                return finish(step)
            finally:
                set_clock("n2", 0)

        return see(cluster, run)

    return scenario


def set_clock(node, seconds):
    code, output = shell(node, f"date -s @{time.time() + seconds:.3f}")
    if code != 0:
        raise NothingToSee(f"the clock of {node} cannot be set: {output}")


SCENARIOS = {
    "plain": plain,
    "node_death": node_death,
    "node_death_no_kill": node_death_no_kill,
    "node_hangs": disturbed("freeze", "thaw"),
    "hung_head": hung_head,
    "cut_network": disturbed("unplug", "plug"),
    "full_memory": full_memory,
    "clock_back": clock_step(-CLOCK_STEP),
    "clock_ahead": clock_step(CLOCK_STEP),
}


def main():
    if socket.gethostname() != "main":
        node_agent.serve()
    cluster = NodeCluster()
    seen = see_all(cluster, SCENARIOS, sys.argv[1:] or list(SCENARIOS))
    seen["version"] = cluster.run(["srun", "--version"])[1]
    for node in NODES:
        log = shell(node, f"grep ' sonde: ' {cluster.dir}/log/slurmd.{node}.log")[1]
        seen[f"log.{node}"] = log.splitlines()
    json.dump(seen, sys.stdout, indent=1)
    subprocess.run([CLUSTER, "stop", cluster.dir], capture_output=True, check=False)


main()
