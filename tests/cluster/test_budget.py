"""What `sonde budget` says of programs that measure themselves what they do."""

import json
import pathlib
import shutil
import subprocess

import pytest
from conftest import ROOT, SLURM, SONDE, USER
from telemetry import Step, go_first

MPI = {"mpich": "pmi2", "openmpi": "pmix"}
COUNTED = ("--telemetry-level=2", "--telemetry-period=100ms", "--telemetry-mpi", "--telemetry-io")


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


@pytest.fixture(scope="module", params=MPI)
def mpi(request, cluster):
    if not shutil.which(f"mpicc.{request.param}"):
        pytest.skip(f"no {request.param} here")
    if SLURM:
        done = cluster.run(["srun", f"--mpi={MPI[request.param]}", "true"])
        if done.returncode != 0:
            pytest.skip(f"not with this Slurm: {done.stderr.splitlines()[0]}")
    return request.param


def source(name):
    return ROOT / "tests" / "cluster" / name


@pytest.fixture(scope="module")
def room(cluster):
    path = cluster.dir / "budget"
    path.mkdir(mode=0o777)
    path.chmod(0o777)
    return path


@pytest.fixture(scope="module")
def programs(cluster, mpi, room):
    """The program with MPI as it is, and with a receive that blocks."""
    compiler = f"mpicc.{mpi}"
    polls, blocks, library = (room / f"{name}.{mpi}" for name in ("polls", "blocks", "lib.so"))
    subprocess.run([compiler, "-O1", "-o", polls, source("budget_work.c")], check=True)
    flags = ["-O1", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, source("budget_blocking.c")], check=True)
    command = [compiler, "-O1", "-o", blocks, source("budget_work.c"), library]
    subprocess.run(command, check=True)
    return polls, blocks


def ran(cluster, mpi, *words):
    """The budget of a finished step, and what its ranks say of themselves."""
    env = {"OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_pml": "ob1"}
    step = Step(cluster, ["srun", "-N1", "-n2", f"--mpi={MPI[mpi]}", *words], env=env)
    go_first(step, next(word for word in words if isinstance(word, pathlib.Path)), 2)
    assert step.wait(60)[0] == 0, step.stderr
    own = sorted(map(json.loads, step.stdout.splitlines()), key=lambda rank: rank["rank"])
    done = cluster.run([SONDE, "budget", "--json", step.id], user=USER)
    assert done.returncode == 0, done.stderr
    text = cluster.run([SONDE, "budget", step.id], user=USER).stdout
    return json.loads(done.stdout), own, text


def seconds(rank, kind):
    return rank["shares"][kind] * rank["cpu_seconds"]


@pytest.mark.parametrize(("blocks", "words"), ((False, ()), (True, ()), (False, ("allreduce",)), (False, ("turned",))))
def test_each_part_is_what_the_program_measured(cluster, mpi, programs, room, blocks, words):
    found, own, text = ran(cluster, mpi, *COUNTED, programs[blocks], room, *words)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    for rank, told in zip(found["ranks"], own):
        shares = [share for share in rank["shares"].values() if share is not None]
        assert sum(shares) == pytest.approx(1, abs=1e-9)
        assert all(share >= 0 for share in shares), rank
        waited = told["mpi"] if rank["rank"] == 1 else 0
        assert seconds(rank, "computing") == pytest.approx(told["computing"], abs=0.4), (rank, told)
        # MPI_Init ends with a barrier of its own.
        assert seconds(rank, "mpi_waiting") == pytest.approx(waited, abs=0.5), (rank, told)
        assert seconds(rank, "io") == pytest.approx(told["io"], abs=0.3), (rank, told)
        # What others on this machine take of its processors is idle or stolen.
        assert seconds(rank, "idle") + (rank["shares"]["stolen"] or 0) >= told["idle"] - 0.3
    assert found["collectives_split"] is True  # there is a barrier in any case
    where, key = ("collectives", "awaited_seconds") if words == ("allreduce",) else (
        "receives", "awaited_in_receives_seconds")
    assert found["ranks"][0][key] == pytest.approx(own[1]["mpi"], abs=0.5)
    assert f"awaited by the others in {where}: rank 0 on n1" in " ".join(text.split()), text
    assert found["ranks"][1]["mpi_polls"] is not blocks, found["ranks"][1]
    assert found["whole"]["efficiency"]["load_balance"] == pytest.approx(4 / 6, abs=0.1)
    assert "most waiting in MPI: rank 1" in text, text


def test_what_was_not_counted_is_not_known(cluster, mpi, programs, room):
    options = ("--telemetry-level=2", "--telemetry-period=100ms")
    found, own, text = ran(cluster, mpi, *options, programs[0], room)
    assert "time in MPI is not known: run with --telemetry-mpi" in " ".join(text.split())
    for rank, told in zip(found["ranks"], own):
        assert rank["shares"]["mpi_waiting"] is None
        # The receive polls and looks like computing.
        assert seconds(rank, "computing") >= told["computing"] + told["mpi_cpu"] - 0.3
