"""A job that is suspended: its tasks stand still, and so does a head whose srun runs in the job. The
daemons of the nodes go on."""

import os
import signal
import time

# Nodes would go past a silent head after kPatience, 6 s, when an answer is late, 2 s. That nobody
# does is seen by waiting longer.
LONGER = 9.0


def test_a_head_that_is_suspended_with_its_job_stays_the_head(make_step):
    step = make_step(nodes=4)
    step.start()
    step.wait_successors()
    tasks = [node.application.pid for node in step.nodes]
    for pid in tasks:
        os.kill(pid, signal.SIGSTOP)
    step.head.stop()
    try:
        # As the kernel does, when the head has taken nothing for so long that its buffers are full.
        for node in step.nodes:
            node.space.reset_connections(step.address)
        time.sleep(LONGER)
        assert step.heads() == [step.head.pid]
    finally:
        step.head.go_on()
        for pid in tasks:
            os.kill(pid, signal.SIGCONT)
    fault = step.now()
    for node in step.nodes:
        node.add(1)
    step.check_whole_since(fault)
    step.wait_total()
    step.finish()
    job = step.check_profile()
    step.check_stored_total()
    said = {remark["text"]: remark["count"] for remark in step.stored()["moments"]["remarks"]}
    assert set(said) == {"the tasks are suspended", "the tasks go on"}, said
    for unexpected in ("acting head", "lost", "thinned", "left out"):
        assert not any(unexpected in note for note in job["notes"]), job["notes"]
