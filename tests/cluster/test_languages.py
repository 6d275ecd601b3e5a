"""The example of each language in a step: every value of its profile is what the program did.

All examples sum pi by Leibniz's series in blocks of 100,000 terms and tell the same. Four tasks on
two nodes run as many blocks as it says here; what they come to is computed again, in the same order.
"""

import math
import os
import pathlib
import shutil

import pytest
from conftest import BUILD, ROOT, SONDE, USER
from telemetry import complete, counter, job_of, show, step_id

EXAMPLES = ROOT / "libclient" / "examples"
BUILT = BUILD / "libclient" / "examples"
PYTHON = "/usr/bin/python3"
BLOCK = 100_000
BLOCKS = 7
TASKS = 4
LEVEL = ("--telemetry-level=1", "--telemetry-period=100ms")


@pytest.fixture(scope="module")
def place(cluster):
    """A copy of what the cluster's users run."""
    directory = cluster.dir / "examples"
    shutil.copytree(EXAMPLES, directory)
    return directory


def command(language, place):
    if language == "Python":
        return [f"PYTHONPATH={BUILD / 'libclient' / 'python'}", PYTHON, place / "example.py"]
    if language == "shell":
        # The distribution's path, and the built command first.
        return [f"PATH={pathlib.Path(SONDE).parent}:/usr/bin:/bin", place / "example.sh"]
    return [{"C": "example", "C++": "example_cxx", "Fortran": "example_fortran"}[language]]


def run(cluster, language, place, blocks=BLOCKS, options=("-N2", f"-n{TASKS}", *LEVEL)):
    words = command(language, place)
    if len(words) == 1:
        words = [BUILT / words[0]]
        if not words[0].exists():
            pytest.skip(f"{words[0].name} is not built")
    done = cluster.run(["srun", *options, "env", *words, blocks], user=USER)
    assert done.returncode == 0, done.stderr
    return done


def sums():
    """The sum after each block, in the order of additions of the examples."""
    total, found = 0.0, []
    for block in range(BLOCKS):
        for n in range(block * BLOCK, (block + 1) * BLOCK):
            total += (-4.0 if n % 2 else 4.0) / (2 * n + 1)
        found.append(total)
    return found


LANGUAGES = ["C", "C++", "Fortran", "Python", "shell"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_s_values_are_exact(cluster, place, language):
    done = run(cluster, language, place)
    totals = sums()
    assert done.stdout == f"pi is about {totals[-1]:.9f}\n" * TASKS
    shown = show(cluster, step_id(done.stderr))
    job, moments = job_of(shown), shown["profile"]["moments"]
    assert complete(shown) and job["state"] == "completed"

    for kind in ("positive", "negative"):
        terms = counter(shown, "example_terms_total", kind=kind)
        assert terms["last"] == TASKS * BLOCKS * BLOCK / 2
        assert terms["min"] == terms["max"] == BLOCKS * BLOCK / 2
        assert (terms["type"], terms["unit"]) == ("counter", "1")
    error = counter(shown, "example_error")
    # The mean over the tasks, which all come to the same; it only falls.
    assert error["last"] == error["min"] == abs(totals[-1] - math.acos(-1))

    (figure,) = job["figures"]
    assert (figure["name"], figure["value"], figure["unit"]) == ("example_pi", totals[-1], "1")
    # Once if the tasks say it at the same time.
    assert {remark["text"] for remark in moments["remarks"]} == {"the sum is there"}
    assert sum(remark["count"] for remark in moments["remarks"]) == TASKS
    phases = moments["phases"]
    assert {phase["name"] for phase in phases} == {"sum"}
    assert sum(p["began"] for p in phases) == sum(p["ended"] for p in phases) == TASKS
    assert (moments["lost"], moments["left_out"]) == (0, 0)
    check_distributions(language, shown, totals)


def check_distributions(language, shown, totals):
    found = {d["metric"]: d for d in shown["profile"]["moments"]["distributions"]}
    if language == "shell":  # which has no histograms, and whose phases nobody times
        assert found == {}
        return
    corrections = [abs(b - a) for a, b in zip([0.0, *totals], totals)]
    correction = found["example_correction"]
    assert correction["count"] == TASKS * BLOCKS
    assert (correction["min"], correction["max"]) == (min(corrections), max(corrections))
    assert correction["sum"] == pytest.approx(TASKS * math.fsum(corrections), rel=1e-12)
    seconds = counter(shown, "phase_seconds_total", phase="sum")
    assert seconds["last"] > 0
    if language in ("C++", "Python"):
        times = found["example_block_seconds"]
        assert (times["count"], times["unit"]) == (TASKS * BLOCKS, "seconds")
        assert 0 < times["sum"] <= seconds["last"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_is_the_same_without_telemetry(cluster, place, language):
    done = run(cluster, language, place, blocks=1, options=("-N1", "-n1"))
    shown = done.stdout.splitlines()
    assert shown[-1].startswith("pi is about 3.14158")
    # The one in C is curious and says why.
    assert len(shown) == (2 if language == "C" else 1)
    assert done.stderr == ""


def test_the_tasks_of_a_step_share_a_series_in_every_language(cluster, place):
    """One task that runs all of them, one after the other, as a workflow does."""
    words = {language: command(language, place) for language in LANGUAGES}
    lines = []
    for language in LANGUAGES:
        first, *rest = words[language]
        if not rest:
            first = BUILT / first
            if not first.exists():
                continue
        lines.append(" ".join(map(str, ["env", first, *rest, 1])))
    done = cluster.run(
        ["srun", "-N1", "-n1", *LEVEL, "sh", "-ec", "\n".join(lines)],
        user=USER,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    shown = show(cluster, step_id(done.stderr))
    terms = counter(shown, "example_terms_total", kind="positive")
    assert terms["last"] == len(lines) * BLOCK / 2


def test_the_example_with_mpi_counts_its_iterations(cluster):
    program = BUILD / "examples" / "mpi_heat"
    if not program.exists():
        pytest.skip("mpi_heat is not built: there is no MPI")
    words = ["srun", "--mpi=pmi2", "-N4", *LEVEL, program, "-n", 64, "-i", 60]
    done = cluster.run(words, user=USER)
    assert done.returncode == 0, done.stderr
    shown = show(cluster, step_id(done.stderr))
    iterations = counter(shown, "heat_iterations_total")
    assert (iterations["last"], iterations["min"], iterations["max"]) == (240, 60, 60)
    residual = f"residual    {counter(shown, 'heat_residual')['last']:.6e}\n"
    assert residual in done.stdout
