"""What libsonde-mpi.so tells of a program's MPI calls, beside what the program counted itself: with
MPICH and Open MPI, in C and Fortran."""

import json
import shutil
import subprocess

import pytest
from conftest import LIBRARIES, ROOT, SLURM, SONDE
from telemetry import Step, counter, without_sonde

CLASSES = ("p2p", "wait", "collective", "one_sided", "io", "other")
# How Slurm starts the processes of each.
LIBRARIES_OF_MPI = {"mpich": "pmi2", "openmpi": "pmix"}
PERIOD = "--telemetry-period=100ms"


@pytest.fixture(scope="module", params=LIBRARIES_OF_MPI)
def mpi(request, cluster):
    if not shutil.which(f"mpicc.{request.param}"):
        pytest.skip(f"no {request.param} here")
    if SLURM:
        # Another release's Slurm may have been built for a PMIx that is not here, or for none.
        done = cluster.run(["srun", f"--mpi={LIBRARIES_OF_MPI[request.param]}", "true"])
        if done.returncode != 0:
            pytest.skip(f"not with this Slurm: {done.stderr.splitlines()[0]}")
    return request.param


@pytest.fixture(scope="module")
def room(cluster):
    path = cluster.dir / "room"
    path.mkdir(mode=0o777)
    path.chmod(0o777)
    return path


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


def build(cluster, compiler, source, name, *flags):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    program = cluster.dir / name
    source = ROOT / "tests" / "cluster" / source
    subprocess.run([compiler, "-O1", *flags, "-o", program, source], check=True)
    return program


@pytest.fixture(scope="module")
def work(cluster, mpi):
    # MPICH declares an array where MPI_STATUSES_IGNORE is allowed, which GCC takes literally.
    flags = ("-Wall", "-Werror", "-Wno-stringop-overflow", "-pthread")
    return build(cluster, f"mpicc.{mpi}", "mpi_work.c", f"work.{mpi}", *flags)


def srun(cluster, mpi, *words, tasks=2, env=None):
    options = ["-n", str(tasks), f"--mpi={LIBRARIES_OF_MPI[mpi]}", PERIOD]
    # Of Open MPI's ways to reach another process the one that is there on any machine.
    env = {"OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_pml": "ob1", **(env or {})}
    step = Step(cluster, ["srun", *options, *words], env=env)
    assert step.wait(60)[0] == 0, step.stderr
    return step


def results(step):
    return sorted((json.loads(line) for line in step.stdout.splitlines()), key=lambda r: r["rank"])


def value(shown, metric, **tags):
    """The step's sum over the series of a metric with these tags; 0 if there is none."""
    return sum(
        entry["last"]
        for entry in shown["profile"]["footprint"]
        if entry["metric"] == metric and tags.items() <= entry["tags"].items()
    )


def told(shown, kind):
    """Calls, bytes sent and bytes received of a class."""
    if kind == "io":
        names = ("mpi_calls_total", "mpi_io_written_bytes_total", "mpi_io_read_bytes_total")
    else:
        names = ("mpi_calls_total", "mpi_sent_bytes_total", "mpi_received_bytes_total")
    return [value(shown, name, **{"class": kind}) for name in names]


def summed(own, kind):
    return [sum(numbers) for numbers in zip(*(result[kind] for result in own))]


def check_counts(shown, own):
    for kind in CLASSES:
        assert told(shown, kind) == summed(own, kind), kind


def any_mpi(shown):
    return [e["metric"] for e in shown["profile"]["footprint"] if e["metric"].startswith("mpi_")]


def test_every_function_has_the_arguments_that_mpi_h_says(mpi):
    source = ROOT / "tests" / "cluster" / "mpi_arity.cc"
    command = [f"mpicxx.{mpi}", "-std=c++17", "-fsyntax-only", "-I", ROOT, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("where", [("-N1",), ("-N2",)])
def test_calls_and_bytes_are_those_of_the_program(cluster, mpi, work, room, where):
    if mpi == "openmpi" and where == ("-N2",):
        # With or without telemetry; MPICH shows two nodes.
        pytest.skip("two nodes of the private cluster, one host, take each other's PMIx server")
    step = srun(cluster, mpi, *where, "--telemetry-level=1", "--telemetry-mpi", work, room, tasks=2)
    own, shown = results(step), step.profile()
    assert len(own) == 2
    check_counts(shown, own)
    for kind in ("p2p", "collective", "one_sided"):
        assert value(shown, "mpi_message_bytes_sum", **{"class": kind}) == summed(own, kind)[1]
    # Ranks are told apart: the extremes are those of one rank.
    sent = counter(shown, "mpi_sent_bytes_total", **{"class": "collective"})
    assert (sent["min"], sent["max"]) == (own[0]["collective"][1], own[1]["collective"][1])
    assert (sent["min_owner"]["rank"], sent["max_owner"]["rank"]) == (0, 1)
    # Below level 4 by class alone.
    assert all("function" not in e["tags"] for e in shown["profile"]["footprint"])


def test_threads_are_counted_in_full_and_functions_apart_at_level_4(cluster, mpi, work, room):
    step = srun(cluster, mpi, "-N1", "--telemetry-level=4", work, room, "threads")
    own, shown = results(step), step.profile()
    if not all(result["threads"] for result in own):
        pytest.skip("this MPI gives no MPI_THREAD_MULTIPLE")
    check_counts(shown, own)
    assert value(shown, "mpi_calls_total", function="MPI_Init_thread") == 2
    assert value(shown, "mpi_calls_total", function="MPI_Sendrecv") == 2 * (1 + 4 * 500)


def called(step):
    """The MPI functions that the step called."""
    return {
        entry["tags"]["function"]
        for entry in step.profile()["profile"]["footprint"]
        if entry["metric"] == "mpi_calls_total" and entry["last"] > 0
    }


def test_the_report_tells_them_by_class(cluster, mpi, work, room):
    step = srun(cluster, mpi, "-N1", "--telemetry-level=4", work, room)
    own = results(step)
    names = {"p2p": "point-to-point", "collective": "collective", "one_sided": "one-sided", "io": "MPI-IO"}
    shown = cluster.run([SONDE, "show", step.id], env={"COLUMNS": "80"}).stdout
    for report in (step.stderr, shown):
        lines = report.splitlines()
        begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["MPI", "calls"])
        table = lines[begin : lines.index("", begin)]
        assert table[0].split() == ["MPI", "calls", "time", "share", "waiting", "sent", "received"]
        assert len(table) <= 8 and max(map(len, table)) <= 80, table
        for kind, name in names.items():
            (row,) = [line for line in table if line.startswith(name + " ")]
            assert row.removeprefix(name).split()[0] == str(summed(own, kind)[0]), row
        assert "_total" not in report and "function=" not in report, "series are not rows as well"
        begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["MPI", "function"])
        functions = lines[begin + 1 : lines.index("", begin)]
        named = [line for line in functions if line.startswith("MPI_")]
        assert len(named) == 5 and functions[5:] == [f"  and {len(called(step)) - 5} functions more; all with --json"]


def test_time_in_mpi_is_part_of_the_run(cluster, mpi, work, room):
    step = srun(cluster, mpi, "-N1", "--telemetry-level=1", "--telemetry-mpi", work, room)
    shown = step.profile()
    elapsed = shown["profile"]["job"]["duration"] if "duration" in shown["profile"]["job"] else 60
    inside, waited = value(shown, "mpi_seconds_total"), value(shown, "mpi_wait_seconds_total")
    assert 0 < waited < inside < 2 * elapsed
    share = counter(shown, "mpi_time_ratio")
    assert 0 < share["min"] <= share["max"] <= 1


# What mpi_work.F90 does on two ranks.
FORTRAN = {
    "p2p": [2 * (20 + 20 + 2 + 1), 2 * (20 * 80 + 24) + 800, 2 * (20 * 8000 + 24) + 800],
    "wait": [2 * 20, 0, 0],
    "collective": [
        2 * 6,
        800 + 2 * (16 + 16 + 32 + 16),
        800 + 2 * (16 + 16 + 16) + 64,
    ],
    "other": [2 * 2, 0, 0],
}


@pytest.mark.parametrize("binding", ["mpif", "mpi", "f08"])
def test_fortran_is_counted_once(cluster, mpi, binding):
    program = build(
        cluster, f"mpif90.{mpi}", "mpi_work.F90", f"fortran.{binding}.{mpi}",
        f"-DWITH_{binding.upper()}", "-fallow-argument-mismatch", "-w",
    )  # fmt: skip
    step = srun(cluster, mpi, "-N1", "--telemetry-level=1", "--telemetry-mpi", program)
    shown = step.profile()
    expected = {kind: list(numbers) for kind, numbers in FORTRAN.items()}
    if binding == "f08":
        expected["collective"][0] += 2
    for kind, numbers in expected.items():
        assert told(shown, kind) == numbers, kind


def test_it_is_off_unless_asked_for_and_at_level_4_on_unless_declined(cluster, mpi, work, room):
    for options in (["--telemetry-level=3"], ["--telemetry-level=4", "--telemetry-mpi=no"]):
        step = srun(cluster, mpi, "-N1", *options, work, room)
        assert any_mpi(step.profile()) == []
        assert without_sonde(step.stderr) == []


def test_sonde_run_counts_what_mpirun_starts(cluster, mpi, work, room):
    sonde = LIBRARIES.parent / "cli" / "sonde"
    command = [sonde, "run", "--level=1", "--mpi", "-q", "--", f"mpirun.{mpi}", "-n", "2"]
    env = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_pml": "ob1"}
    done = cluster.run([*command, work, room], env=env)
    assert done.returncode == 0, done.stderr
    own = [json.loads(line) for line in done.stdout.splitlines()]
    shown = json.loads(cluster.run([sonde, "show", "--json"]).stdout)
    assert len(own) == 2
    check_counts(shown, own)
