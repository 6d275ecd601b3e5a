"""An update of the package while steps run breaks none of them: programs and plugin are replaced, or
taken away, as rpm and dpkg do, by renaming."""

import contextlib
import os
import pathlib
import shutil
import signal
import tempfile
import time

import belongings
import pytest
from conftest import LIBRARIES, PLUGIN, SONDE, SONDED, USER
from telemetry import LEVEL, Step, complete, job_of

PROGRAMS = ("sonded", "sonded-head")


class Installed:
    """Programs and plugin of a package, in a directory of their own."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.dir.chmod(0o755)
        self.cluster = None
        self.install()

    def install(self, version=b""):
        """Of another version, whose files differ from those before."""
        for source in (SONDED, SONDED.with_name("sonded-head"), PLUGIN):
            new = self.dir / f"{source.name};5f3a"
            shutil.copy(source, new)
            with new.open("ab") as file:
                file.write(version)
            new.rename(self.dir / source.name)

    def remove(self):
        for path in self.dir.iterdir():
            path.unlink()

    def daemons(self, role, step):
        """Pid -> whether it runs the file that is installed now."""
        found = belongings.running([str(self.dir / name) for name in PROGRAMS], self.cluster.dir)
        runs = {}
        for pid in (pid for pid, command in found if command.endswith(f"--{role} {step.id}")):
            with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
                runs[pid] = not os.readlink(f"/proc/{pid}/exe").endswith("(deleted)")
        return runs


@pytest.fixture(scope="module")
def installed(make_cluster):
    with tempfile.TemporaryDirectory(prefix="sonde-installed.") as directory:
        made = Installed(directory)
        plugstack = (
            f"optional {directory}/{PLUGIN.name} sonded={directory}/sonded sonde={SONDE} "
            f"config=@DIR@/sonde.conf libraries={LIBRARIES}\n"
        )
        made.cluster = make_cluster(nodes=2, plugstack=plugstack)
        made.cluster.conf("")
        yield made


@pytest.fixture(autouse=True)
def nothing_runs_on(installed):
    yield
    installed.cluster.cancel_all()


def gated(gate):
    return ["srun", "-N2", *LEVEL, "bash", "-c", f"until [ -e {gate} ]; do sleep 0.05; done"]


def wait_standby(installed, step):
    """Waits until both nodes stand by to go on for the head, and know each other."""
    live = step.wait_nodes(2)
    cluster = installed.cluster

    def samples():
        return list(live.query("sonde_samples_total", aggregator="min")[0]["dps"].values())[-1]

    cluster.wait_for(
        lambda: all(belongings.listening(pid) for pid in installed.daemons("node", step)), "standby"
    )
    # Frames go up after the answer that the node listens; who stands by is told before a later tick.
    before = samples()
    cluster.wait_for(lambda: samples() >= before + 3, "three ticks")


def has_both_since(step, moment):
    """Whether the head that there is now has ticks of both nodes."""
    with contextlib.suppress(OSError):  # the endpoint is still that of the other one
        counted = step.live().query("sonde_samples_total", aggregator="count")
        return counted and any(n >= 2 and int(at[:10]) > moment for at, n in counted[0]["dps"].items())
    return False


@pytest.mark.parametrize("update", ["install", "remove"])
def test_a_step_goes_on_with_the_programs_that_it_began_with(installed, update):
    cluster = installed.cluster
    gate = cluster.dir / "tmp" / USER / f"{update}.gate"
    step = Step(cluster, gated(gate))
    wait_standby(installed, step)
    getattr(installed, update)(*([b"new"] if update == "install" else []))
    ((head, _),) = installed.daemons("head", step).items()
    os.kill(head, signal.SIGKILL)
    killed = time.time()
    acting = cluster.wait_for(
        lambda: {pid: new for pid, new in installed.daemons("head", step).items() if pid != head},
        "an acting head",
    )
    assert list(acting.values()) == [False], "it is of the version that the step began with"
    (pid,) = acting
    comm = pathlib.Path(f"/proc/{pid}/comm")
    cluster.wait_for(lambda: comm.read_text() == "sonded-head\n", "its name for ps")
    cluster.wait_for(lambda: has_both_since(step, killed), "ticks of the acting head's")
    gate.touch()
    assert step.wait()[0] == 0
    cluster.wait_for(lambda: not installed.daemons("head", step), "the acting head's end")
    shown = step.profile()
    assert "went on as acting head" in str(job_of(shown)["notes"])
    counts = job_of(shown)["coverage"]
    # A sample may fall into the moment of the change.
    assert counts["got"] + counts["skipped"] >= counts["expected"] - 2, counts
    assert not [node for node in job_of(shown)["nodes"] if node["lost"]]


def test_the_next_step_begins_with_the_new_programs(installed):
    installed.install(b"newer")
    gate = installed.cluster.dir / "tmp" / USER / "next.gate"
    step = Step(installed.cluster, gated(gate))
    step.wait_nodes(2)
    for role, count in (("head", 1), ("node", 2)):
        assert list(installed.daemons(role, step).values()) == [True] * count, role
    gate.touch()
    assert step.wait()[0] == 0
    assert complete(step.profile())
