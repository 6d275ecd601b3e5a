"""Whatever happens to the daemon or the step: the job is the same, and nothing waits long."""

import os
import signal
import time

import pytest
from plugin_alone import _daemon, cluster, daemon  # noqa: F401

LEVEL = "--telemetry-level=3"
JOB = ["bash", "-c", "echo out; echo err >&2; exit 7"]


def run_timed(cluster, words, **options):
    start = time.monotonic()
    done = cluster.run(words, **options)
    return done, time.monotonic() - start


def without_ours(stderr):
    return sorted(line for line in stderr.splitlines() if "sonde" not in line and "report" not in line)


@pytest.fixture
def plain(cluster, daemon):
    """What the job says and returns without telemetry."""
    done = cluster.run(["srun", "-N2", *JOB])
    return done.returncode, sorted(done.stdout.splitlines()), without_ours(done.stderr)


# Bounds: a busy machine's 2 or 3 s, and of a daemon that hangs 1 s for its list of events, 1.8 s for a node's stop
# and 2 s for the head's.
@pytest.mark.parametrize(
    "mode, bound", [("die", 3), ("crash", 3), ("hang", 8), ("slow", 4), ("flood", 3)]
)
def test_job_is_the_same_whatever_the_daemon_does(cluster, daemon, plain, mode, bound):
    done, seconds = run_timed(cluster, ["srun", "-N2", LEVEL, *JOB], env={"SONDE_STANDIN": mode})
    lines = done.stderr.splitlines()
    ours = [line for line in lines if set(line) == {"x"}]
    same = without_ours("\n".join(line for line in lines if line not in ours))
    assert (done.returncode, sorted(done.stdout.splitlines()), same) == plain
    assert seconds < bound
    end_heads(daemon)


def end_heads(daemon):
    """A hanging head is not the plugin's to kill: it may be writing its archive."""
    for record in daemon.records("head"):
        try:
            handle = os.pidfd_open(record.itself["pid"])
        except ProcessLookupError:
            continue
        if alive(daemon, record):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)


def alive(daemon, record):
    """Whether that stand-in runs: its number may be another process's by now."""
    try:
        with open(f"/proc/{record.itself['pid']}/cmdline", "rb") as file:
            return str(daemon.path).encode() in file.read()
    except OSError:
        return False


def test_hanging_daemon_of_a_node_is_killed(cluster, daemon):
    cluster.run(["srun", "-N1", LEVEL, "true"], env={"SONDE_STANDIN": "hang"})
    (node,) = daemon.records("node")
    cluster.wait_for(lambda: not alive(daemon, node), "the daemon's end")
    assert "sonded has not finished" in cluster.log("n1")
    end_heads(daemon)


def test_missing_daemon_on_the_launch_host_is_one_line(cluster, daemon, plain):
    daemon.path.unlink()
    done = cluster.run(["srun", "-N2", LEVEL, *JOB])
    ours = [line for line in done.stderr.splitlines() if "sonde" in line]
    assert len(ours) == 1 and f"execute {daemon.path}: No such file or directory" in ours[0]
    assert (done.returncode, sorted(done.stdout.splitlines()), without_ours(done.stderr)) == plain
    assert "sonde: no telemetry" not in cluster.log("n1").rsplit("launch task", 1)[-1]


def test_missing_daemon_of_a_batch_step_is_in_the_nodes_log(cluster, daemon):
    daemon.path.unlink()
    # Nobody listens where the script's programs look for their daemon.
    job = cluster.sbatch('grep -c "@$SONDE_SOCKET" /proc/net/unix', options=["-w", "n1", LEVEL])
    assert cluster.wait_job(job) == "FAILED"
    assert (cluster.home() / f"slurm-{job}.out").read_text() == "0\n"
    assert f"no telemetry for step {job}.batch: execute {daemon.path}: No such file" in cluster.log("n1")


def test_daemon_that_cannot_be_executed_is_told(cluster, daemon, plain):
    daemon.path.write_bytes(b"\x7fELF nonsense")
    done = cluster.run(["srun", "-N2", LEVEL, *JOB])
    assert f": execute {daemon.path}: Exec format error" in done.stderr
    assert (done.returncode, sorted(done.stdout.splitlines()), without_ours(done.stderr)) == plain
    # Without a head no node starts one.
    assert "Exec format error" not in cluster.log("n1")


def test_cancelled_job_finishes_its_daemons(cluster, daemon):
    child = cluster.popen(["srun", "-N2", LEVEL, "sleep", "60"])
    daemon.wait_records(2, "node", kind="task")
    cluster.slurm("scancel", daemon.records()[0].launch["job"])
    child.wait(timeout=20)
    daemon.wait_records(3, kind="end")


def test_cancelled_step_finishes_its_daemons(cluster, daemon):
    child = cluster.popen(["srun", "-N1", LEVEL, "sleep", "60"])
    daemon.wait_records(1, "node", kind="task")
    launch = daemon.records()[0].launch
    cluster.slurm("scancel", f"{launch['job']}.{launch['step']}")
    child.wait(timeout=20)
    daemon.wait_records(2, kind="end")


def test_killed_srun_ends_its_head(cluster, daemon):
    child = cluster.popen(["srun", "-N1", LEVEL, "sleep", "60"])
    (head,) = daemon.wait_records(1, "head", kind="self")
    daemon.wait_records(1, "node", kind="task")
    child.kill()
    child.wait(timeout=10)
    daemon.wait_records(1, "head", kind="finish")
    daemon.wait_records(1, "node", kind="end")
    cluster.wait_for(lambda: not alive(daemon, head), "the head's end")


def test_interrupted_srun_still_shows_the_report(cluster, daemon):
    child = cluster.popen(["srun", "-N1", LEVEL, "sleep", "60"])
    daemon.wait_records(1, "node", kind="task")
    child.send_signal(signal.SIGTERM)
    stderr = child.communicate(timeout=20)[1]
    assert "report of" in stderr
    daemon.wait_records(2, kind="end")


def test_signals_of_the_step_do_not_end_a_daemon(cluster, daemon):
    script = "trap 'exit 0' USR1; echo ready; while :; do sleep 0.05; done"
    child = cluster.popen(["srun", "-N1", "-n1", LEVEL, "bash", "-c", script])
    assert child.stdout.readline() == "ready\n"
    launch = daemon.records()[0].launch
    cluster.slurm("scancel", "--signal=USR1", f"{launch['job']}.{launch['step']}")
    assert child.wait(timeout=20) == 0
    daemon.wait_records(2, kind="end")


def test_nodes_stay_in_service(cluster, daemon):
    """Last: after all of the above no node was drained."""
    cluster.run(["srun", "-N4", "true"])
    states = cluster.slurm("sinfo", "--noheader", "--Node", "--format=%N %t").split("\n")
    assert not [state for state in states if "drain" in state or "down" in state]


def test_a_daemon_never_delays_the_next_step(cluster, daemon):
    done, seconds = run_timed(cluster, ["srun", "-N4", LEVEL, "true"])
    assert done.returncode == 0 and seconds < 3
