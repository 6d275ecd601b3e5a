"""Steps that live in unusual ways: suspended, requeued, beside others, on a terminal, short of memory."""

import os
import pathlib
import re
import subprocess

from batch_job import BatchJob
from guest_cluster import (
    CLUSTER, MORE, SONDE, UNTIL_GO, finish, ours, own_time, read, require, see, tasks, wait_for,
)  # fmt: skip

# s that a step of many may take longer with telemetry.
MORE_EACH = 0.2
# Longer than a node waits for a head that does not answer (kPatience, 6 s, and kAnswer, 2 s). That the
# connection to it breaks takes full buffers, which is what tests/net/test_suspend.py sees to.
SILENT = 10.0


def batch(cluster, level, script, *words, name="batch", timeout=100):
    """Submits a script and waits for its end: code, and what it wrote."""
    output = pathlib.Path(f"/tmp/{name}.out")
    output.unlink(missing_ok=True)
    job = BatchJob(cluster, [*level, *words, "-o", str(output)], script)
    job.communicate(timeout)
    return job.returncode, read(output)


def profiles(cluster):
    """What is said of the newest steps of srun."""
    with own_time():
        listed = cluster.run([f"{SONDE}/cli/sonde", "ls"])[1]
        names = re.findall(r"\b\d+\.\d+\b", listed)
        return listed + "".join(cluster.run([f"{SONDE}/cli/sonde", "show", name])[1] for name in names[:1])


def heterogeneous(cluster):
    words = ["-N1", "sleep", "1", ":", "-N1", "sleep", "1"]
    return see(cluster, lambda level: cluster.run(["srun", *level, *words]))


def overlapping(cluster):
    """Two steps share the job's processors and are watched side by side with its script."""
    script = "srun -N2 --overlap sleep 1 & srun -N2 --overlap sleep 2; wait"
    return see(cluster, lambda level: batch(cluster, level, script, "-N2"))


def array(cluster):
    return see(cluster, lambda level: batch(cluster, level, "srun sleep 1; exit $((SLURM_ARRAY_TASK_ID == 2))",
                                            "-N1", "--array=1-3", name="array"))  # fmt: skip


def terminal(cluster):
    """srun --pty: the task's terminal is srun's."""
    return see(cluster, lambda level: cluster.on_terminal(["srun", *level, "--pty", "-N1", "bash"],
                                                  b"tty; exit 3\n"))  # fmt: skip


def interactive(cluster):
    """salloc with LaunchParameters=use_interactive_step, and a step started in it."""
    return see(cluster, lambda level: cluster.on_terminal(["salloc", *level, "-N2"],
                                                  b"srun -N2 sleep 1; exit 3\n"))  # fmt: skip


def suspended(cluster):
    """A suspended batch script: srun and the head beside it are frozen, the daemons of the nodes are not."""

    def run(level):
        job = BatchJob(cluster, [*level, "-N2", "-o", "/dev/null"], f"srun bash -c '{UNTIL_GO}'")
        require(lambda: sum(bool(re.match(r"\S*bash -c until", words)) for words in tasks().values()) == 2,
                "the step's tasks")
        if level:
            require(lambda: len([words for words in ours().values() if "--node" in words]) == 2, "two daemons")
        cluster.run(["scontrol", "suspend", job.number], user=None)
        require(lambda: frozen() >= 2, "tasks that are frozen")
        heads = [pid for pid, words in ours().items() if "--head" in words]
        # Nothing shall happen, so there is nothing to wait for but time.
        others = lambda: [pid for pid, words in ours().items() if "--head" in words and pid not in heads]
        wait_for(others, SILENT, 0.2)
        elected = others()
        cluster.run(["scontrol", "resume", job.number], user=None)
        require(lambda: frozen() == 0, "tasks that go on")
        code, output = finish(job)
        output += profiles(cluster) if level else ""
        return code, output + (f"elected {elected}\n" if elected else "")

    return see(cluster, run)


def frozen():
    """How many tasks a freezer or a signal has stopped."""
    count = 0
    for pid in tasks():
        group = read(f"/proc/{pid}/cgroup").rpartition("::")[2].strip()
        count += ("frozen 1" in read(f"/sys/fs/cgroup{group}/cgroup.events") or
                  read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] == ["T"])  # fmt: skip
    return count


def requeued(cluster):
    script = "srun sleep 1; [ ${SLURM_RESTART_COUNT:-0} = 1 ] || { scontrol requeue $SLURM_JOB_ID; sleep 100; }"
    return see(cluster, lambda level: batch(cluster, level, script, "-N2", "--requeue", name="requeued"))


def dead_node(cluster):
    """A node dies with everything on it; Slurm ends the step when the node does not answer."""

    def run(level):
        step = cluster.popen(["srun", *level, "-N2", "bash", "-c", UNTIL_GO])
        require(lambda: len(tasks()) >= 2, "the step's tasks")
        if level:
            require(lambda: len([words for words in ours().values() if "--node" in words]) == 2, "two daemons")
        subprocess.run([CLUSTER, "node", cluster.dir, "n2", "crash"], check=True, capture_output=True)
        try:
            output = step.communicate(timeout=90)[0]
        finally:
            subprocess.run([CLUSTER, "node", cluster.dir, "n2", "start"], check=True, capture_output=True)
        return step.returncode, output

    return see(cluster, run)


def time_limit(cluster):
    """What counts is the time behind the limit: slurmctld looks at limits now and then only."""

    def run(level):
        sleeping = lambda: sum(words.endswith("sleep 300") for words in tasks().values())
        step = cluster.popen(["srun", *level, "-N2", "--job-name=limited", "--time=1", "sleep", "300"])
        require(lambda: sleeping() == 2, "the step's tasks")
        number = cluster.run(["squeue", "--noheader", "--name=limited", "--format=%A"], user=None)[1].strip()
        cluster.run(["scontrol", "update", f"JobId={number}", "EndTime=now+1"], user=None)
        require(lambda: sleeping() == 0, "the limit")
        output = step.communicate(timeout=100)[0]
        return step.returncode, output

    return see(cluster, run)


EATER = """
import sys, time
held = bytearray(int(sys.argv[1]) << 20)
for place in range(0, len(held), 4096):
    held[place] = 1
time.sleep(2)
print("ate", sys.argv[1])
"""


def write_eater():
    program = pathlib.Path("/tmp/eat.py")
    program.write_text(EATER)
    return program


def eat(cluster, level, megabytes):
    words = ["python3", str(write_eater()), str(megabytes)]
    return cluster.run(["srun", *level, "-N1", "--mem=100", *words])


def memory_exceeded(cluster):
    return see(cluster, lambda level: eat(cluster, level, 150))


def eat_in_batch(cluster, level, megabytes):
    """With srun, and the head beside it, in the job's control group."""
    script = f"srun python3 {write_eater()} {megabytes}"
    return batch(cluster, level, script, "-N1", "--mem=100", name="eater")


def at_limit(meal):
    """The most that a task can have without telemetry, it can have with it."""

    def scenario(cluster):
        # Python itself has some 10 MiB.
        most, too_much = 50, 100
        while too_much - most > 1:
            middle = (most + too_much) // 2
            most, too_much = (middle, too_much) if meal(cluster, [], middle)[0] == 0 else (most, middle)
        seen = see(cluster, lambda level: meal(cluster, level, most - 1))
        seen["most"] = most
        return seen

    return scenario


def room_for_daemons(cluster):
    """The job's limit in a watched script, during a step of it that is not watched, and after that."""
    limit = "cat $JOB/memory.max"
    script = (
        "JOB=/sys/fs/cgroup$(sed s/^0::// /proc/self/cgroup); export JOB=${JOB%/step_*}; "
        f"{limit}; srun -n1 --telemetry-level=0 sh -c '{limit}'; {limit}"
    )
    return see(cluster, lambda level: batch(cluster, level, script, "-N1", "--mem=100", name="room"))


def restarted_slurmd(cluster):
    def run(level):
        step = cluster.popen(["srun", *level, "-N2", "bash", "-c", UNTIL_GO])
        require(lambda: len(tasks()) >= 2, "the step's tasks")
        # slurmd answers srun when the tasks run already; nothing tells when it has.
        wait_for(lambda: False, 2.0)
        for action in ("kill", "start"):
            subprocess.run([CLUSTER, "node", cluster.dir, "n1", action], check=True, capture_output=True)
        return finish(step)

    return see(cluster, run)


def reconfigured(cluster):
    def run(level):
        step = cluster.popen(["srun", *level, "-N2", "bash", "-c", UNTIL_GO])
        require(lambda: len(tasks()) >= 2, "the step's tasks")
        cluster.run(["scontrol", "reconfigure"], user=None)
        return finish(step)

    return see(cluster, run)


def short_steps(cluster):
    """As many as a script of a parameter study starts."""
    count = int(os.environ.get("SONDE_SHORT_STEPS", "200"))
    script = f"for i in $(seq {count}); do srun -N1 -n1 true || exit 1; done"
    return see(cluster, lambda level: batch(cluster, level, script, "-N1", name="short", timeout=5 * count),
               more=MORE + MORE_EACH * count)  # fmt: skip


SCENARIOS = {
    "heterogeneous": heterogeneous,
    "overlapping": overlapping,
    "array": array,
    "terminal": terminal,
    "interactive": interactive,
    "suspended": suspended,
    "requeued": requeued,
    "dead_node": dead_node,
    "time_limit": time_limit,
    "memory_exceeded": memory_exceeded,
    "memory_at_limit": at_limit(eat),
    "memory_at_limit_in_batch": at_limit(eat_in_batch),
    "room_for_daemons": room_for_daemons,
    "restarted_slurmd": restarted_slurmd,
    "reconfigured": reconfigured,
    "short_steps": short_steps,
}
