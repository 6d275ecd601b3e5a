"""A job that is suspended: its tasks stand still, and so does a head whose srun runs in the job. The
daemons of the nodes go on."""

import collections
import contextlib
import os
import signal
import time

from step import wait_for

# Nodes would go past a silent head after kPatience, 6 s, when an answer is late, 2 s. That nobody
# does is seen by waiting longer.
LONGER = 9.0


@contextlib.contextmanager
def suspended(step):
    """As Slurm does it without control groups."""
    tasks = [node.application.pid for node in step.nodes]
    for pid in tasks:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in tasks:
            os.kill(pid, signal.SIGCONT)


def check_said(step):
    """Each node has said it once."""
    said = collections.Counter()
    for remark in step.stored()["moments"]["remarks"]:
        said[remark["text"]] += remark["count"]
    assert said == {"the tasks are suspended": step.size, "the tasks go on": step.size}, said


def test_a_head_that_is_suspended_with_its_job_stays_the_head(make_step):
    step = make_step(nodes=4)
    step.start()
    step.wait_successors()
    with suspended(step):
        step.head.stop()
        try:
            # As the kernel does, when the head has taken nothing for so long that its buffers are full.
            for node in step.nodes:
                node.space.reset_connections(step.address)
            time.sleep(LONGER)
            assert step.heads() == [step.head.pid]
        finally:
            step.head.go_on()
    fault = step.now()
    for node in step.nodes:
        node.add(1)
    step.check_whole_since(fault)
    step.wait_total()
    step.finish()
    job = step.check_profile()
    step.check_stored_total()
    check_said(step)
    for unexpected in ("acting head", "lost", "thinned", "left out"):
        assert not any(unexpected in note for note in job["notes"]), job["notes"]


def test_a_task_that_ends_right_after_its_suspension_has_gone_on(make_step):
    """Nodes look once a second."""
    step = make_step(nodes=2)
    step.start()
    with suspended(step):
        wait_for(
            lambda: all("the tasks are suspended" in "\n".join(node.log()) for node in step.nodes),
            "nodes that have noticed",
        )
    step.finish()
    check_said(step)
