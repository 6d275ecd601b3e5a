"""Steps that raise alarms: four tasks that end when they are told to."""

import json
import pathlib
import shutil
import tempfile

import pytest
from conftest import USER, wait_for
from telemetry import LEVEL, Step, go_first

PYTHON = shutil.which("python3", path="/usr/bin:/bin")

# Rank 2 takes memory, rank 1 sleeps, the others compute, until the file `stop` is there. They pause, so
# that all get the same time.
WORK = """
import os, sys, time
rank, stop = int(os.environ["SLURM_PROCID"]), sys.argv[1]
hog = bytearray(80 << 20) if rank == 2 else None
while not os.path.exists(stop):
    if rank == 1:
        time.sleep(0.02)
    else:
        until = time.process_time() + 0.01
        while time.process_time() < until:
            sum(i * i for i in range(500))
        time.sleep(0.05)
"""


@pytest.fixture
def room(cluster):
    """A directory of the user's."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="alarms", dir=cluster.home(USER)))
    directory.chmod(0o777)
    return directory


class Working:
    """A step of four tasks that ends when it is told to. `period`: of its samples, instead of LEVEL's. The kernel
    counts processor time in hundredths of a second, so in 100 ms tasks that do the same differ by up to half."""

    def __init__(self, cluster, room, rules="", env=None, work=WORK, period=None):
        self.room = room
        (room / "work.py").write_text(work)
        options = [f"--telemetry-period={period}"] if period else []
        if rules:
            (room / "rules").write_text(rules)
            options += [f"--telemetry-alarms={room / 'rules'}"]
        words = ["srun", "-N4", *LEVEL, *options, PYTHON, str(room / "work.py"), str(room / "stop")]
        self.step = Step(cluster, words, env=env)
        go_first(self.step, f"{PYTHON}\0{room / 'work.py'}", 4)

    def raised(self, name, timeout=20):
        """Waits until an alarm is raised; gives it as /alarms does."""
        live = self.step.live()

        def found():
            alarms = json.loads(live.get("/alarms"))["main"]
            return [alarm for alarm in alarms if alarm["name"] == name]

        return wait_for(found, f"alarm {name}", timeout)[0]

    def stop(self):
        (self.room / "stop").touch()
        code, _ = self.step.wait()
        assert code == 0, self.step.stderr
        return self.step.profile()["profile"]


def post(live, path, body):
    with live._open(path, live.token, json.dumps(body).encode()) as answer:
        return json.loads(answer.read())


def node_of(profile, rank):
    """Tasks are on the nodes in order, one on each."""
    return sorted(node["host"] for node in profile["job"]["nodes"])[rank]
