"""Values that a program tells of times that have passed, on a real Slurm: they are at their times, in answers about
the whole step and about each task, while the step runs and from its profile."""

import contextlib
import time
import urllib.error

import pytest
from conftest import BUILD
from telemetry import Step, served

LEVEL = ("--telemetry-level=1", "--telemetry-period=100ms")
PYTHON = "/usr/bin/python3"
PAST = 10  # values, a second apart, that ended a minute before the program began

PROGRAM = f"""
import os, sys, time, sonde
rank, base, gate = int(os.environ["SLURM_PROCID"]), int(sys.argv[1]), sys.argv[2]
loss = sonde.gauge("loss")
if rank % 2:
    loss.set(-1)  # which is true from now on, and was not then
for second in range({PAST}):
    loss.set_past(100 * rank + second, (base + second) * 10**9)
while not os.path.exists(gate):
    time.sleep(0.02)
"""


@pytest.fixture(autouse=True)
def nothing_stays(cluster):
    yield
    cluster.cancel_all()
    cluster.wait_clean()


def points(results):
    """By tags, without the step's."""
    return {
        one["tags"].get("task", "all"): {int(t): v for t, v in one["dps"].items()} for one in results
    }


def questions(live, base):
    """At the seconds of which was told."""
    end = base + PAST - 1
    sums = live.queries([{"metric": "loss", "aggregator": "sum"}], start=base, end=end)
    tasks = live.queries([{"metric": "loss", "aggregator": "sum", "tags": {"task": "*"}}], start=base, end=end)
    return points(sums), points(tasks)


def wanted(base):
    tasks = {str(rank): {base + s: 100 * rank + s for s in range(PAST)} for rank in range(4)}
    sums = {base + s: sum(tasks[rank][base + s] for rank in tasks) for s in range(PAST)}
    return {"all": sums}, tasks


def test_they_are_at_their_times_in_the_step_and_in_its_profile(cluster):
    base = int(time.time()) - 60
    gate = cluster.dir / "past.gate"
    gate.unlink(missing_ok=True)
    words = ["srun", "-N4", "-n4", *LEVEL, PYTHON, "-c", PROGRAM, base, gate]
    step = Step(cluster, words, env={"PYTHONPATH": str(BUILD / "libclient" / "python")})
    live = step.wait_nodes(4)

    def all_are_there():
        with contextlib.suppress(urllib.error.HTTPError):  # 400: the metric is not there yet
            return questions(live, base)[0] == wanted(base)[0]
        return False

    cluster.wait_for(all_are_there, "all values", 20)
    assert questions(live, base) == wanted(base)
    # What was set is there from its time on, as ever, and is not a part of the past.
    now = live.query("loss", aggregator="count", start="2s-ago")
    assert now and set(now[0]["dps"].values()) == {2}, now
    gate.touch()
    code, _ = step.wait()
    assert code == 0, step.stderr
    with served(cluster) as server:
        assert questions(server, base) == wanted(base), server.get("/job/list?limit=5")
