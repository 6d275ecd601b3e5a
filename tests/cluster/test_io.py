"""What libsonde-io.so tells of a program's calls for files, beside what the program counted itself;
and that programs are what they are without it."""

import json
import pathlib
import subprocess
import tempfile

import pytest
from conftest import LIBRARIES, PLUGIN, ROOT, SONDE, SONDED
from telemetry import Step, counter, without_sonde

ASKED = ("--telemetry-level=1", "--telemetry-io", "--telemetry-period=100ms")


def build(cluster, source, name, *flags):
    program = cluster.dir / name
    command = ["cc", "-O1", "-Wall", "-Werror", "-Wno-unused-result", "-pthread", *flags]
    subprocess.run([*command, "-o", program, ROOT / "tests" / "cluster" / source], check=True)
    return program


@pytest.fixture(scope="module")
def work(cluster):
    return build(cluster, "io_work.c", "io_work")


@pytest.fixture
def memory():
    """A directory on a filesystem that nothing else of the step uses."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="io_work.") as path:
        pathlib.Path(path).chmod(0o777)
        yield pathlib.Path(path)


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


def srun(cluster, *words, env=None):
    step = Step(cluster, ["srun", *words], env=env)
    assert step.wait()[0] == 0, step.stderr
    return step


def value(shown, metric, **tags):
    return sum(
        entry["last"]
        for entry in shown["profile"]["footprint"]
        if entry["metric"] == metric and tags.items() <= entry["tags"].items()
    )


def check(shown, own, **tags):
    for key in own[0]:
        api, operation = key.split()
        calls, moved = (sum(numbers) for numbers in zip(*(result[key] for result in own)))
        tags.update(api=api, operation=operation)
        assert value(shown, "io_calls_total", **tags) == calls, key
        assert (value(shown, "io_seconds_total", **tags) > 0) == (calls > 0), key
        where = {k: v for k, v in tags.items() if k != "operation"}
        if operation == "read":
            assert value(shown, "io_read_bytes_total", **where) == moved
        if operation == "write":
            assert value(shown, "io_written_bytes_total", **where) == moved


def any_io(shown):
    return [e["metric"] for e in shown["profile"]["footprint"] if e["metric"].startswith("io_")]


@pytest.mark.parametrize("fortified", ["", "-D_FORTIFY_SOURCE=2"])
def test_calls_and_bytes_are_those_of_the_program(cluster, memory, fortified):
    flags = [fortified, "-D_FILE_OFFSET_BITS=64"] if fortified else []
    program = build(cluster, "io_work.c", f"io_work{len(fortified)}", *flags)
    step = srun(cluster, "-N2", "-n4", *ASKED, program, memory)
    own = [json.loads(line) for line in step.stdout.splitlines()]
    assert len(own) == 4
    check(step.profile(), own, mountpoint="/dev/shm", fstype="tmpfs")
    assert list(memory.iterdir()) == []


def test_sonde_run_counts(cluster, work, memory):
    sonde = LIBRARIES.parent / "cli" / "sonde"
    done = cluster.run([sonde, "run", "--level=1", "--io", "-q", "--", work, memory])
    assert done.returncode == 0, done.stderr
    shown = json.loads(cluster.run([sonde, "show", "--json"]).stdout)
    check(shown, [json.loads(done.stdout)], mountpoint="/dev/shm")


def test_children_of_a_shell_are_counted_for_their_task(cluster, work, memory):
    script = f"{work} {memory} > /dev/null; {work} {memory}"
    step = srun(cluster, "-N1", "-n2", *ASKED, "bash", "-c", f"mkdir -p {memory}/$SLURM_PROCID; "
                + script.replace(str(memory), f"{memory}/$SLURM_PROCID"))  # fmt: skip
    own = [json.loads(line) for line in step.stdout.splitlines()]
    shown = step.profile()
    written = counter(shown, "io_written_bytes_total", api="stdio", mountpoint="/dev/shm")
    assert written["last"] == 2 * sum(result["stdio write"][1] for result in own)
    assert written["min"] == written["max"] == 2 * own[0]["stdio write"][1]


def test_it_is_off_unless_asked_for_and_at_level_4_on_unless_declined(cluster, work, memory):
    for options in (["--telemetry-level=3"], ["--telemetry-level=4", "--telemetry-io=no"]):
        assert any_io(srun(cluster, "-N1", *options, work, memory).profile()) == []
    step = srun(cluster, "-N1", "--telemetry-level=4", work, memory)
    check(step.profile(), [json.loads(step.stdout)], mountpoint="/dev/shm")


def test_the_report_tells_them_by_filesystem_without_the_kernels_own(cluster, work, memory):
    script = f"cat /proc/self/status /sys/kernel/mm/transparent_hugepage/enabled; {work} {memory}"
    step = srun(cluster, "-N1", "--telemetry-level=4", "bash", "-c", script)
    kinds = {e["tags"].get("fstype") for e in step.profile()["profile"]["footprint"]}
    assert {"proc", "sysfs", "tmpfs"} <= kinds, "the profile has all of it"
    shown = cluster.run([SONDE, "show", step.id], env={"COLUMNS": "80"}).stdout
    for report in (step.stderr, shown):
        lines = report.splitlines()
        begin = next(i for i, line in enumerate(lines) if line.startswith("files on "))
        end = next(i for i, line in enumerate(lines) if line.startswith("  share: of 1 task x "))
        table = lines[begin:end]
        assert max(map(len, table)) <= 80, table
        row = next(line for line in table if line.startswith("tmpfs /dev/shm "))
        assert "read" in row or "write" in row, row
        assert not [line for line in table if line.startswith(("proc ", "sysfs "))]
        assert "io_" not in report and "{" not in report, "series of calls are not rows as well"


def preloaded(cluster, *words, env=None):
    step = srun(cluster, "-N1", *words, "printenv", "LD_PRELOAD", env=env)
    return step.stdout.strip().split(":")


def test_the_users_own_libraries_stay(cluster):
    own = f"{LIBRARIES}/libsonde.so:libm.so.6"
    ours = [f"{LIBRARIES}/libsonde.so.1", f"{LIBRARIES}/sonde/libsonde-io.so"]
    assert preloaded(cluster, *ASKED, env={"LD_PRELOAD": own}) == [*ours, *own.split(":")]
    both = preloaded(cluster, *ASKED, "--telemetry-mpi=yes", env={"LD_PRELOAD": ":".join(ours)})
    assert both == [ours[0], f"{LIBRARIES}/sonde/libsonde-mpi.so", ours[1]]


def test_a_step_inside_that_is_not_watched_has_none_of_it(cluster):
    script = "srun --telemetry-level=0 bash -c 'echo inner:$LD_PRELOAD'; echo outer:$LD_PRELOAD"
    job = cluster.sbatch(script, options=["-N1", *ASKED])
    assert cluster.wait_job(job) == "COMPLETED"
    lines = (cluster.home() / f"slurm-{job}.out").read_text().splitlines()
    assert [line for line in lines if line.startswith("inner:")] == ["inner:"], lines
    outer = [line for line in lines if line.startswith("outer:")]
    assert outer == [f"outer:{LIBRARIES}/libsonde.so.1:{LIBRARIES}/sonde/libsonde-io.so"]


def test_a_static_program_runs_as_ever(cluster, memory):
    program = build(cluster, "io_work.c", "io_work_static", "-static")
    step = srun(cluster, "-N1", *ASKED, program, memory)
    assert json.loads(step.stdout)["posix open"] == [4, 0]
    assert without_sonde(step.stderr) == []


def test_a_program_under_the_address_sanitizer_runs_and_is_counted(cluster, memory):
    program = build(cluster, "io_work.c", "io_work_asan", "-fsanitize=address")
    step = srun(cluster, "-N1", *ASKED, program, memory, env={"ASAN_OPTIONS": "detect_leaks=0"})
    written = value(step.profile(), "io_written_bytes_total", mountpoint="/dev/shm", api="posix")
    assert written == json.loads(step.stdout)["posix write"][1]


def test_a_privileged_program_runs_as_ever(cluster):
    step = srun(cluster, "-N1", *ASKED, "passwd", "--help")
    assert without_sonde(step.stderr) == [] and "Usage" in step.stdout


def test_without_the_libraries_the_step_runs_and_the_node_says_so(make_cluster, work, memory):
    plugstack = f"optional {PLUGIN} sonded={SONDED} config=@DIR@/sonde.conf libraries=/nowhere state=@DIR@/counters\n"
    other = make_cluster(plugstack=plugstack, nodes=1)
    other.conf("")
    step = srun(other, "-N1", *ASKED, "--telemetry-mpi", "bash", "-c", "echo $LD_PRELOAD")
    assert step.stdout.strip() == "" and without_sonde(step.stderr) == []
    assert "not all of the libraries are in /nowhere" in other.log("n1")
