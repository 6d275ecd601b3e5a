"""What libsonde_functions tells of a program that was compiled with -finstrument-functions; and what
the profile says if calls were asked for and nothing came."""

import json
import shutil
import subprocess

import pytest
from conftest import LIBRARIES, ROOT, SONDE
from telemetry import Step, counter, without_sonde
from test_io import nothing_runs_on, srun  # noqa: F401

PERIOD = "--telemetry-period=100ms"
ASKED = ("--telemetry-level=1", "--telemetry-functions=yes", PERIOD)
CALLS = "function_calls_total"
SECONDS = "function_seconds_total"


def build(cluster, name, *flags, compiler="gcc"):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    program = cluster.dir / name
    source = ROOT / "tests" / "cluster" / "functions_work.c"
    command = [compiler, "-O1", "-Wall", "-Werror", "-finstrument-functions", "-o", program]
    # The linker takes libraries in the order in which they are needed.
    before = [flag for flag in flags if not flag.startswith("-l")]
    after = [flag for flag in flags if flag.startswith("-l")]
    subprocess.run([*command, *before, source, *after], check=True)
    return program


@pytest.fixture(scope="module")
def work(cluster):
    return build(cluster, "functions_work")


def entries(shown, metric=CALLS):
    return [e for e in shown["profile"]["footprint"] if e["metric"] == metric]


def notes(step):
    return [note for note in step.profile()["profile"]["job"]["notes"] if "to be counted" in note]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_calls_are_those_of_the_program(cluster, compiler):
    program = build(cluster, f"functions_{compiler}", compiler=compiler)
    step = srun(cluster, "-N2", "-n4", *ASKED, program, "1000")
    shown = step.profile()
    assert {e["tags"]["function"] for e in entries(shown)} == {"main", "solve", "step"}
    assert counter(shown, CALLS, function="main")["last"] == 4
    assert counter(shown, CALLS, function="solve")["last"] == 8
    steps = counter(shown, CALLS, function="step")
    assert steps["last"] == 2 * 1000 * (1 + 2 + 3 + 4)
    # Ranks are told apart.
    assert (steps["min"], steps["max"]) == (2000, 8000)
    assert (steps["min_owner"]["rank"], steps["max_owner"]["rank"]) == (0, 3)
    assert entries(shown, SECONDS) == [] and notes(step) == []
    assert without_sonde(step.stderr) == []


def test_cxx_names_are_as_people_write_them(cluster):
    program = build(cluster, "functions_cxx", "-x", "c++", compiler="g++")
    names = {"main", "solve(long)", "step()"}
    step = srun(cluster, "-N2", *ASKED, program, "10")
    assert {e["tags"]["function"] for e in entries(step.profile())} == names
    # By the daemon that is head and node in one.
    done = cluster.run([SONDE, "run", "--level=1", "--functions", "-q", "--", program, "10"])
    assert done.returncode == 0, done.stderr
    shown = json.loads(cluster.run([SONDE, "show", "--json"]).stdout)
    assert {e["tags"]["function"] for e in entries(shown)} == names


def test_times_are_there_if_the_user_asks_for_them(cluster, work):
    step = srun(cluster, "-N1", *ASKED, work, "1000", env={"SONDE_FUNCTION_SECONDS": "1"})
    shown = step.profile()
    seconds = {e["tags"]["function"]: e["last"] for e in entries(shown, SECONDS)}
    assert 0 < seconds["step"] < seconds["solve"] < seconds["main"]
    assert "function  calls" in step.stderr and "main" in step.stderr


def test_it_is_off_unless_asked_for_and_at_level_4_on_unless_declined(cluster, work):
    for options in (["--telemetry-level=3"], ["--telemetry-level=4", "--telemetry-functions=no"]):
        step = srun(cluster, "-N1", PERIOD, *options, work, "10")
        assert entries(step.profile()) == [] and notes(step) == []
    step = srun(cluster, "-N1", PERIOD, "--telemetry-level=4", work, "10")
    assert counter(step.profile(), CALLS, function="step")["last"] == 20


def test_sonde_run_counts(cluster, work):
    done = cluster.run([SONDE, "run", "--level=1", "--functions", "-q", "--", work, "50"])
    assert done.returncode == 0, done.stderr
    shown = json.loads(cluster.run([SONDE, "show", "--json"]).stdout)
    assert counter(shown, CALLS, function="step")["last"] == 100


def test_a_program_linked_with_the_library_is_counted_without_the_option(cluster):
    link = [f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lsonde_functions"]
    program = build(cluster, "functions_linked", *link)
    step = srun(cluster, "-N1", "--telemetry-level=1", PERIOD, program, "10")
    assert counter(step.profile(), CALLS, function="step")["last"] == 20
    assert cluster.run([program, "10"]).returncode == 0, "without telemetry"


ALL_THREE = ("--telemetry-level=1", PERIOD, "--telemetry-mpi", "--telemetry-io", "--telemetry-functions")


@pytest.fixture(scope="module")
def launcher(cluster):
    """Gives its program another library that counts calls, as proxy_run does."""
    tool = cluster.dir / "functions_tool.so"
    source = ROOT / "tests" / "unit" / "functions_tool.c"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", tool, source], check=True)
    script = cluster.dir / "launcher"
    script.write_text(f'#!/bin/sh\nLD_PRELOAD={tool} TOOL_TELLS=1 exec "$@"\n')
    script.chmod(0o755)
    return script


def test_a_launcher_that_replaces_the_preload_is_told_once(cluster, work, launcher):
    step = srun(cluster, "-N2", "-n4", *ASKED, "--telemetry-mpi", launcher, work, "10")
    # main, solve twice, and step 20 times for each rank.
    counts = [3 + 20 * rank for rank in (1, 2, 3, 4)]
    assert sorted(step.stdout.splitlines()) == sorted(f"tool {count} {count}" for count in counts)
    assert entries(step.profile()) == []
    (note,) = notes(step)
    assert note.startswith("calls of MPI and of functions were to be counted, and no process recorded any")
    assert "LD_PRELOAD" in note and note in " ".join(step.stderr.split())


def test_what_was_recorded_is_not_in_the_note(cluster, work):
    script = f"unset LD_PRELOAD; {work} 10; echo $SLURM_PROCID > /dev/shm/uncounted.$SLURM_JOB_ID; rm /dev/shm/uncounted.$SLURM_JOB_ID"
    step = srun(cluster, "-N1", *ALL_THREE, "bash", "-c", script)
    (note,) = notes(step)
    assert note.startswith("calls of MPI and of functions were"), "the shell wrote to a file"


def test_a_static_program_is_told_of(cluster):
    program = build(cluster, "functions_static", "-static")
    step = srun(cluster, "-N1", *ALL_THREE, program, "10")
    (note,) = notes(step)
    assert note.startswith("calls of MPI, for files and of functions were")
    assert "static" in note


def test_nobody_is_told_who_did_not_ask_or_whose_batch_script_makes_no_calls_itself(cluster, work):
    for options in (["--telemetry-level=1"], ["--telemetry-level=4"]):
        step = srun(cluster, "-N1", PERIOD, *options, "env", "-u", "LD_PRELOAD", work, "10")
        assert notes(step) == []
    job = cluster.sbatch(f"srun {work} 10", options=["-N1", *ASKED])
    assert cluster.wait_job(job) == "COMPLETED"
    for step, calls in (("batch", 0), ("0", 3)):
        shown = json.loads(cluster.run([SONDE, "show", "--json", f"{job}.{step}"]).stdout)
        assert len(entries(shown)) == calls
        assert not [n for n in shown["profile"]["job"]["notes"] if "to be counted" in n]
