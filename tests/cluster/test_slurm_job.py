"""What Slurm knows of a step's job: what it asked for, why it was ended, how its tasks ended."""

import pytest
from telemetry import LEVEL, Step, complete, job_of, report_of

NODES = ("-N2", "--exclusive")


@pytest.fixture(scope="module")
def queues(make_cluster):
    """A cluster where jobs of one partition give way to those of another."""
    running = make_cluster(
        nodes=2,
        slurm_conf=[
            "PreemptType=preempt/partition_prio",
            "PreemptMode=CANCEL",
            "PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=CANCEL",
            "PartitionName=high Nodes=ALL PriorityTier=10",
        ],
    )
    running.conf("")
    return running


def test_what_the_job_asked_for(queues):
    """A step that lasts for 10 s asks."""
    step = Step(queues, ["srun", *NODES, "-t", "10", *LEVEL, "sleep", "11"])
    assert step.wait()[0] == 0
    shown = step.profile()
    request = job_of(shown)["request"]
    assert request["time_limit"] == 600 * 10**9 and request["cpus"] == 4
    assert request["submitted"] <= request["begun"] <= job_of(shown)["start"] + 10**9
    time = next(one for one in shown["asked"] if one["what"] == "time")
    assert time["asked"] == 600 and 11 <= time["used"] < 60
    assert "\nAsked " in report_of(step.stderr) and "of 10 min" in report_of(step.stderr)


def test_nobody_asks_where_the_site_does_not_want_it(queues):
    queues.conf("ask_slurm = no\n")
    try:
        step = Step(queues, ["srun", *NODES, "-t", "10", *LEVEL, "sleep", "60"])
        step.wait_nodes(2)
        queues.slurm("scancel", step.job)
        step.wait()
    finally:
        queues.conf("")
    job = job_of(step.profile())
    assert job["state"] == "cancelled"
    assert "submitted" not in job.get("request", {})


def test_preempted(queues):
    step = Step(queues, ["srun", "-p", "low", *NODES, *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    done = queues.run(["srun", "-p", "high", *NODES, "true"])
    assert done.returncode == 0, done.stderr
    step.wait()
    shown = step.profile()
    assert job_of(shown)["state"] == "preempted" and complete(shown)
    assert ": preempted" in report_of(step.stderr)


def test_node_failure(queues):
    step = Step(queues, ["srun", "-p", "high", *NODES, *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    try:
        queues.slurm("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=test")
        step.wait()
    finally:
        # An error where its slurmd has come back by itself.
        queues.run(["scontrol", "update", "NodeName=n2", "State=RESUME"], user="root")
    assert job_of(step.profile())["state"] == "node_fail"


def test_tasks_that_did_not_end_well_are_named(queues):
    script = "case $SLURM_PROCID in 1) exit 3;; 2) kill -SEGV $$;; esac"
    step = Step(queues, ["srun", *NODES, "-n4", "--kill-on-bad-exit=0", *LEVEL, "bash", "-c", script])
    step.wait()
    job = job_of(step.profile())
    assert [one["task"] for one in job["exits"]] == [1, 2]
    assert job["exits"][0]["status"] == 3 << 8 and job["exits"][1]["status"] & 0x7F == 11
    assert "code 3: task 1" in report_of(step.stderr) and "SIGSEGV: task 2" in report_of(step.stderr)
