"""What Slurm's plugin for Slingshot tells the tasks of a step reaches the fabric of the step's daemons.

The switch cannot be had here: a plugin sets the variables as switch/hpe_slingshot does, at the same
moment, and a provider of libfabric's tells what it finds when libfabric is loaded.
"""

import pathlib
import subprocess
import tempfile

import pytest
from conftest import PLUGSTACK, ROOT, SLURM_HEADERS
from telemetry import LEVEL, Step, complete, notes_of

HERE = ROOT / "tests" / "cluster"
OF_SLURM = [
    "SLINGSHOT_DEVICES=cxi0,cxi1",
    "SLINGSHOT_SVC_IDS=5,6",
    "SLINGSHOT_TCS=0xf",
    "SLINGSHOT_VNIS=1234,1235",
]


@pytest.fixture(scope="module")
def built():
    with tempfile.TemporaryDirectory(prefix="sonde-slingshot.") as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        (directory / "providers").mkdir()
        flags = ["cc", "-shared", "-fPIC", "-Wall"]
        for source, target, more in (
            ("slingshot_switch.c", "switch.so", SLURM_HEADERS),
            ("fabric_environment.c", "providers/libshow-fi.so", []),
        ):
            subprocess.run([*flags, *more, "-o", directory / target, HERE / source], check=True)
        yield directory


@pytest.fixture(scope="module")
def cluster(make_cluster, built):
    yield make_cluster(nodes=2, plugstack=f"optional {built}/switch.so\n{PLUGSTACK}")


@pytest.fixture(autouse=True)
def nothing_stays(cluster):
    yield
    cluster.cancel_all()
    cluster.wait_clean()


@pytest.fixture
def start(cluster, built):
    """Starts a step of two nodes with variables in its environment, and gives it with a function that
    tells what libfabric has found in the daemons of its nodes."""
    shown = cluster.dir / "shown"
    shown.write_text("")
    shown.chmod(0o666)

    def make(after, **variables):
        cluster.conf(f"provider = tcp\nfabric_after = {after}\n")
        more = {"FI_PROVIDER_PATH": str(built / "providers"), "FI_SHOW_ENVIRONMENT": str(shown)}
        step = Step(cluster, ["srun", "-N2", "-n4", *LEVEL, "sleep", "60"], env=more | variables)

        def found():
            lines = [line.split() for line in shown.read_text().splitlines()]
            return [sorted(line[3:]) for line in lines if line[1] == "--node"]

        return step, found

    return make


@pytest.mark.parametrize("after", ["100ms", "0s"])
def test_the_fabric_finds_what_the_tasks_have(cluster, start, after):
    """However early it would be opened; and nothing that merely begins like it."""
    step, found = start(after, SLINGSHOT="1234,1235")
    cluster.wait_for(lambda: len(found()) == 2, "libfabric in both daemons")
    assert found() == [OF_SLURM] * 2
    step.wait_nodes(2)
    cluster.run(["scancel", step.id])
    step.process.wait(20)
    assert not notes_of(step.profile())
    assert complete(step.profile())


def test_without_a_switch_nothing_is_found(cluster, start):
    step, found = start("0s")
    cluster.wait_for(lambda: len(found()) == 2, "libfabric in both daemons")
    assert found() == [[], []]
