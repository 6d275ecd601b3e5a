"""What `sonde stragglers` and `sonde phases` find in steps whose programs know what they did.

The programs measure their own processor time and keep to a share of it, so that a busy machine does
not change what they use."""

import json
import pathlib
import tempfile

import pytest
from conftest import SONDE, USER
from telemetry import LEVEL, Step, go_first

# Uses the shares of a processor for the seconds that its words say, one after the other, as in 0.5:4,
# once all tasks are there.
PACED = """
import os, sys, time
rank, tasks = os.environ["SLURM_PROCID"], int(os.environ["SLURM_NTASKS"])
there = sys.argv.pop(1)
open(os.path.join(there, rank), "w").close()
while len(os.listdir(there)) < tasks:
    time.sleep(0.01)
sink = os.open("/dev/null", os.O_WRONLY)
words = sys.argv[1].split(",")
if rank == "2" and len(sys.argv) > 2:
    words = sys.argv[2].split(",")
for word in words:
    share, seconds = map(float, word.split(":"))
    began, used = time.monotonic(), time.process_time()
    while (passed := time.monotonic() - began) < seconds:
        if time.process_time() - used < share * passed:
            sum(range(2000))
        else:
            time.sleep(0.005)
"""


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


def ran(cluster, *words):
    """The finished step of srun with these options and words of the program."""
    options = [word for word in words if word.startswith("-")]
    there = pathlib.Path(tempfile.mkdtemp(dir=cluster.dir))
    there.chmod(0o777)
    program = ["/usr/bin/python3", "-c", PACED, str(there), *words[len(options) :]]
    step = Step(cluster, ["srun", *options, *LEVEL, *program])
    go_first(step, "/usr/bin/python3\0-c", int(next(word for word in options if word.startswith("-n"))[2:]))
    assert step.wait()[0] == 0, step.stderr
    return step


def sonde(cluster, *words):
    done = cluster.run([SONDE, *words], user=USER)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_task_with_more_work_is_named(cluster):
    # Of eight the others' noise is known well enough, whatever else this machine does.
    step = ran(cluster, "-N4", "-n8", "0.1:8", "0.4:8")
    text = sonde(cluster, "stragglers", step.id)
    assert "rank 2 on n2: CPU time" in text, text
    found = json.loads(sonde(cluster, "stragglers", "--json", step.id))
    (cpu,) = [one for one in found["metrics"] if (one["metric"], one["by"]) == ("task_cpu_seconds_total", "rank")]
    assert [(one["rank"], one["node"]) for one in cpu["stragglers"]] == [(2, "n2")]
    (named,) = cpu["stragglers"]
    assert named["value"] == pytest.approx(0.4, abs=0.05)
    assert named["others"] == pytest.approx(0.1, abs=0.03)
    assert cpu["imbalance"]["most"] == {"rank": 2, "node": "n2"}
    assert cpu["imbalance"]["factor"] == pytest.approx(0.4 / 0.1375 - 1, abs=0.4)


def test_tasks_with_the_same_work_have_no_straggler(cluster):
    step = ran(cluster, "-N4", "-n4", "0.1:6")
    found = json.loads(sonde(cluster, "stragglers", "--json", step.id))
    assert found["metrics"] and not any(one["stragglers"] for one in found["metrics"])
    assert "No node or rank stands out." in sonde(cluster, "stragglers", step.id)


def test_two_phases_that_nobody_annotated_are_found(cluster):
    step = ran(cluster, "-N1", "-n1", "0.6:6,0.05:6")
    found = json.loads(sonde(cluster, "phases", "--json", step.id))
    assert not found["told"]
    begins = [(phase["begin"] - found["found"][0]["begin"]) / 1e9 for phase in found["found"]]
    # The interpreter starts before the first phase, and other programs use the node's network.
    assert any(5.5 < begin < 7.5 for begin in begins), begins
    assert 2 <= len(begins) <= 10, begins
    cpu = [column["name"] for column in found["columns"]].index("CPU")
    assert found["found"][0]["means"][cpu] == pytest.approx(0.6, abs=0.1)
    assert found["found"][-1]["means"][cpu] == pytest.approx(0.05, abs=0.05)
    assert "Phases that show" in sonde(cluster, "phases", step.id)
