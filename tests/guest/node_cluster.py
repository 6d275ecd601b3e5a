"""A cluster whose nodes n1 and n2 are guests of their own: slurmctld and srun are on main, the first guest.

/share/work is a directory of the host that all guests see, each with locks of its own on the files there
(scripts/guest). Only the standard library is here.
"""

import csv
import itertools
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import guest_cluster
from guest_cluster import (
    CLUSTER, MORE, SONDE, USER, Cluster, NothingToSee, compare, idle, none_left, read, require, timed, wait_for,
)  # fmt: skip
from node_agent import DIRECTORY, PORT

WORK = pathlib.Path("/share/work")
ADDRESSES = {"main": "10.77.0.1", "n1": "10.77.0.2", "n2": "10.77.0.3"}
NODES = ("n1", "n2")
GO = WORK / "go"
UNTIL_GO = f"until [ -e {GO} ]; do sleep 0.1; done"
# Longer than all scenarios but node_death want to be waited for.
SLURMD_TIMEOUT = 30
NODE_LOST = 100.0

# The cluster's own directories, which are not shared: sockets, logs, homes.
START_NODE = f"""
set -e
mkdir -p {DIRECTORY}/run {DIRECTORY}/log {DIRECTORY}/spool {DIRECTORY}/home {DIRECTORY}/tmp
cp -a {WORK}/cluster/etc {WORK}/cluster/munge {DIRECTORY}
for user in root {USER}; do
  for place in home tmp; do install -d -m 700 -o $user -g $user {DIRECTORY}/$place/$user; done
done
mkdir -p /sys/fs/cgroup/system.slice
munged --force --socket={DIRECTORY}/run/munge.sock --key-file={DIRECTORY}/munge/key \\
  --pid-file={DIRECTORY}/munge/pid --log-file={DIRECTORY}/log/munged.log --seed-file={DIRECTORY}/munge/seed
slurmd -f {DIRECTORY}/etc/slurm.conf -N $(hostname) </dev/null >{DIRECTORY}/log/slurmd.out 2>&1
"""

_numbers = itertools.count()


def outside(verb, node):
    """Has the host do something to a node: see scripts/guest."""
    name = f"{os.getpid()}.{next(_numbers)}"
    pathlib.Path(f"/guest/ask/.{name}").write_text(f"{verb} {node}\n")
    os.rename(f"/guest/ask/.{name}", f"/guest/ask/{name}")
    answer = wait_for(lambda: read(f"/guest/told/{name}"), 30)
    if answer != "ok":
        raise NothingToSee(f"{verb} {node}: {answer or 'no answer'}")


def ask(node, timeout=60, **question):
    """What a node's agent answers; None if it does not."""
    question["timeout"] = timeout
    try:
        with socket.create_connection((ADDRESSES[node], PORT), 5) as connection:
            connection.settimeout(timeout + 5)
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile() as lines:
                return json.loads(lines.readline() or "null")
    except OSError:
        return None


def shell(node, script, timeout=60):
    """Code and output of a script that root runs on a node."""
    return ask(node, timeout, shell=script) or (None, "no answer")


def on(node, words, user=None, timeout=60):
    """Code and output of a command of the cluster on a node."""
    return ask(node, timeout, run=words, user=user) or (None, "no answer")


def conf(text):
    path = WORK / "sonde.conf"
    path.write_text(text)
    path.chmod(0o644)


class NodeCluster(Cluster):
    def __init__(self):
        super().__init__(DIRECTORY)
        self.off = set()
        conf("")
        self._start()

    def _start(self):
        plugstack = (
            f"optional {SONDE}/spank/spank_sonde.so sonded={SONDE}/daemon/sonded sonde={SONDE}/cli/sonde"
            f" config={WORK}/sonde.conf libraries={SONDE}/libclient state=/tmp/counters\n"
        )
        pathlib.Path("/tmp/plugstack.conf").write_text(plugstack)
        command = [CLUSTER, "start", "--dir", DIRECTORY, "--owner", str(os.getpid())]
        command += ["--address", ADDRESSES["main"], "--plugstack", "/tmp/plugstack.conf"]
        for node in NODES:
            command += ["--host", f"{node}={ADDRESSES[node]}"]
        # A node whose clock is wrong by an hour is still to be believed.
        lines = [f"SlurmdTimeout={SLURMD_TIMEOUT}", "AuthInfo=socket=@DIR@/run/munge.sock,ttl=3600"]
        command += guest_cluster.slurm_options(lines)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"the cluster did not start: {done.stderr}")
        (WORK / "cluster").mkdir()
        for folder in ("etc", "munge"):
            shutil.copytree(f"{DIRECTORY}/{folder}", WORK / "cluster" / folder)
        (WORK / "cluster" / "munge").chmod(0o700)
        for node in NODES:
            self.start_node(node)
        self.all_idle()

    def start_node(self, node):
        require(lambda: ask(node), f"the agent of {node}")
        code, output = shell(node, START_NODE)
        if code != 0:
            raise NothingToSee(f"{node} did not start: {output}")

    def all_idle(self):
        # Of a node that was down Slurm 24.11 shows the reason for a while.
        wait_for(lambda: all(state.split()[0] == "IDLE" for state in self.node_states().values()), 60, 0.5)

    def power_off(self, node):
        outside("off", node)
        self.off.add(node)

    def living(self):
        return [node for node in NODES if node not in self.off]

    def look(self, what):
        """node -> processes there, on the nodes that live."""
        return {node: (ask(node) or {}).get(what, {"?": "no answer"}) for node in self.living()}

    def left_in_steps(self):
        """node -> processes, of the nodes that have some."""
        return {node: left for node, left in self.look("left_in_steps").items() if left}

    def settle(self):
        """The nodes' states when no job is there any more, and Slurm has noticed the nodes that are off."""

        def settled(states):
            return (all("IDLE" == states[node] for node in self.living())
                    and all(states[node].startswith("DOWN") for node in self.off))  # fmt: skip

        return self.last_states(settled, NODE_LOST if self.off else guest_cluster.SETTLED)

    def restore(self):
        GO.unlink(missing_ok=True)
        for job in self.run(["squeue", "--noheader", "--format=%A"], user=None)[1].split():
            self.run(["scancel", job], user=None)
        for node in sorted(self.off):
            outside("on", node)
            self.start_node(node)
        self.off.clear()
        for node in NODES:
            self.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], user=None)
        self.all_idle()

    def running(self, watched, nodes=NODES):
        """Waits until a step's tasks run, and the daemons if it is watched."""
        def there():
            tasks, daemons = self.look("tasks"), self.look("ours")
            return all(any(" until " in words for words in tasks[node].values()) for node in nodes) and (
                not watched or all(any("--node" in words for words in daemons[node].values()) for node in nodes))

        require(there, "the step's tasks and daemons")


def finish(job):
    """Lets a step or script of UNTIL_GO end; its code and output."""
    GO.touch()
    try:
        output = job.communicate(timeout=NODE_LOST)[0]
    except subprocess.TimeoutExpired:
        job.kill()
        output = job.communicate()[0] + "\n(timed out)"
    GO.unlink()
    return job.returncode, output


def profile(cluster, node=None):
    """What is said of the newest step of srun, and host -> times of samples; of the archive on a node."""
    run = (lambda words: on(node, words, USER)) if node else cluster.run
    listed = run([f"{SONDE}/cli/sonde", "ls"])[1]
    names = re.findall(r"^\d+\.\d+\b", listed, re.MULTILINE)
    if not names:
        return {"report": listed, "samples": {}}
    report = run(["env", "TZ=UTC", f"{SONDE}/cli/sonde", "show", names[0]])[1]
    words = ["--to", "csv:-", "--quiet", "--scope", "node", "--metrics", "node_memory_MemFree_bytes"]
    table = run([f"{SONDE}/cli/sonde", "export", names[0], *words])[1]
    return {"report": listed + report, "samples": samples(table)}


def samples(table):
    """Seconds since 1970; the table has a column for each host."""
    found = {}
    for row in csv.DictReader(table.splitlines()):
        for column, value in row.items():
            if value and "/host=" in column:
                found.setdefault(column.partition("/host=")[2], []).append(int(row["time"]) / 1e9)
    return found


def see(cluster, run, node=None):
    """What a scenario shows, without telemetry and with it; the profile is on main or on a node."""

    def left_at_all():
        seen = cluster.look("ours") | {"main": guest_cluster.ours()}
        return {where: left for where, left in seen.items() if left}

    def look(level):
        (code, output), waited = timed(run, level)
        done = idle()
        left = none_left(cluster.left_in_steps)
        nodes = cluster.settle()
        seen = {
            "code": code, "output": output, "waited": waited, "settled": idle() - done, "left": left,
            "nodes": nodes, "left_at_all": none_left(left_at_all),
        }  # fmt: skip
        if level:
            seen |= profile(cluster, node)
        cluster.restore()
        return seen

    return compare(look, MORE)
