"""Eight programs with one thing wrong each: `sonde hints` names it with the change that helps, and the
program is better when that change is made."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest
from conftest import ROOT, SLURM, SONDE, USER
from telemetry import Step, go_first, report_of, tasks_of

OPTIONS = ["--telemetry-level=2", "--telemetry-period=100ms"]
SECONDS = 6


@pytest.fixture(scope="module")
def cluster(make_cluster):
    """Nodes with more CPUs than this machine has: half of a task's may be threads of its cores."""
    return make_cluster(nodes=4, cpus_per_node=4)


@pytest.fixture(scope="module")
def work(cluster):
    if not shutil.which("mpicc.mpich"):
        pytest.skip("no mpicc.mpich here")
    if SLURM and cluster.run(["srun", "--mpi=pmi2", "true"]).returncode != 0:
        pytest.skip("this Slurm has no PMI-2")
    program = cluster.dir / "hints_work"
    source = ROOT / "tests" / "cluster" / "hints_work.c"
    subprocess.run(["mpicc.mpich", "-O2", "-Wall", "-Werror", "-o", program, source], check=True)
    return program


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


def hints_of(cluster, step):
    done = cluster.run([SONDE, "hints", "--json", step.id], user=USER)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Ran:
    """A finished run: how long its work takes at least, and its hints by name."""

    def __init__(self, cluster, step):
        code = step.wait(90)[0]
        assert code == 0, step.stderr
        self.step = step
        self.seconds = max(map(float, step.stdout.split()))
        self.found = hints_of(cluster, step)
        self.hints = {hint["name"]: hint for hint in self.found["hints"]}
        self.facts = self.found["facts"]

    def mistakes(self):
        return [name for name, hint in self.hints.items() if hint["kind"] == "mistake"]

    def __repr__(self):
        return f"{self.seconds} s, {list(self.hints)}, {json.dumps(self.facts, indent=1)}"


def start(cluster, work, mode, *options, seconds=SECONDS, env=None):
    step = Step(cluster, ["srun", *OPTIONS, *options, work, mode, str(seconds)], env=env)
    go_first(step, work, 2 if "-n2" in options else 1)
    return step


def test_idle_cores_and_leaks(cluster, work):
    """Three steps at once: one of them keeps less than a processor busy, and two hardly any."""
    # In srun's short report.
    idle = start(cluster, work, "light", "-n1", "-c4", env={"SONDE_REPORT": None})
    leaks = start(cluster, work, "leak", "-n1", "-c1")
    frees = start(cluster, work, "frees", "-n1", "-c1")
    idle, leaks, frees = (Ran(cluster, step) for step in (idle, leaks, frees))
    assert idle.mistakes() == ["idle_cores"], idle
    assert "\nHint     Idle cores: no more than" in idle.step.stderr, idle.step.stderr
    option = re.match(r"#SBATCH --cpus-per-task=(\d+),", idle.hints["idle_cores"]["change"])
    assert leaks.mistakes() == ["leak"], leaks
    assert "Free what is not used any more" in leaks.hints["leak"]["change"]
    shown = cluster.run([SONDE, "show", leaks.step.id], user=USER)
    assert "What to change\n1. Memory grows to the end" in shown.stdout, shown.stdout + shown.stderr
    assert "1. Memory grows to the end" in report_of(leaks.step.stderr), leaks.step.stderr
    grown = leaks.facts["memory_grown"]
    assert grown == pytest.approx(SECONDS / 0.05 * 2**20, rel=0.2), leaks
    assert frees.mistakes() == [], frees
    assert frees.facts["memory_peak"] < grown / 4
    fewer = Ran(cluster, start(cluster, work, "light", "-n1", f"-c{option.group(1)}"))
    assert fewer.mistakes() == [], fewer
    assert fewer.facts["cpus"] < idle.facts["cpus"]


def test_one_cpu_for_one_thread(cluster, work):
    """What a program is limited by that has nothing wrong; and two tasks change it."""
    one = Ran(cluster, start(cluster, work, "compute", "-n1", "-c1"))
    assert "idle_cores" not in one.hints, one
    assert list(one.hints) == ["compute_bound"], one
    assert one.hints["compute_bound"]["kind"] == "limit"
    assert "#SBATCH --ntasks=2 " in one.hints["compute_bound"]["change"], one
    two = Ran(cluster, start(cluster, work, "compute", "-N1", "-n2", "-c1"))
    assert two.seconds < 0.6 * one.seconds, (one, two)


def test_large_memory_in_small_pages(cluster, work):
    small = Ran(cluster, start(cluster, work, "pages", "-n1", "-c1"))
    assert list(small.hints) == ["small_pages"], small
    change = small.hints["small_pages"]["change"]
    name, value = re.match(r"Try export (\w+)=(\S+) ", change).groups()
    huge = Ran(cluster, start(cluster, work, "pages", "-n1", "-c1", env={name: value}))
    assert "small_pages" not in huge.hints, huge
    assert huge.seconds < 0.95 * small.seconds, (huge, small)


def test_io_in_small_pieces(cluster, work):
    small = Ran(cluster, start(cluster, work, "pieces", "-n1", "-c1", "--telemetry-io"))
    assert small.mistakes() == ["small_writes"], small
    assert "setvbuf(file, buffer, _IOFBF, sizeof(buffer))" in small.hints["small_writes"]["change"]
    assert small.facts["write_size"] == pytest.approx(48, abs=4)
    large = Ran(cluster, start(cluster, work, "buffered", "-n1", "-c1", "--telemetry-io"))
    assert large.mistakes() == [], large
    assert large.seconds < small.seconds / 2, (small, large)


# On a machine that has other things to do ranks also wait for each other's processors: there may be a
# second hint about that.
MPI = ("-N2", "-n2", "--mpi=pmi2", "--telemetry-mpi")


def test_uneven_work(cluster, work):
    uneven = Ran(cluster, start(cluster, work, "uneven", *MPI, seconds=5))
    assert uneven.mistakes()[:1] == ["imbalance"], uneven
    hint = uneven.hints["imbalance"]
    assert "task 1 on n2" in hint["says"] and "task 1 on n2 should have" in hint["change"]
    even = Ran(cluster, start(cluster, work, "even", *MPI, seconds=5))
    assert "imbalance" not in even.hints, even
    assert even.seconds < 0.85 * uneven.seconds, (uneven, even)


def test_serial_part(cluster, work):
    serial = Ran(cluster, start(cluster, work, "serial", *MPI))
    assert serial.mistakes()[:1] == ["serial_part"], serial
    assert "Divide that part" in serial.hints["serial_part"]["change"]
    divided = Ran(cluster, start(cluster, work, "divided", *MPI))
    # On a machine that has other things to do a rank may have to wait for another one's processor.
    # Where hardly any time was in MPI nobody asks for whom.
    assert divided.facts.get("serial_share", 0) < serial.facts["serial_share"] / 2, divided
    assert divided.seconds < 0.9 * serial.seconds, (serial, divided)


class SlowNode:
    """Holds up the tasks on a node for half of the time, as a host would that has other machines to run."""

    def __init__(self, cluster, host, program):
        self._host, self._program = host, program
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _signal(self, which):
        for pid, environ in tasks_of(self._program):
            if f"SLURMD_NODENAME={self._host}".encode() in environ:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, which)

    def _run(self):
        went_on = time.monotonic()
        while not self._end.wait(0.04):
            self._signal(signal.SIGSTOP)
            stopped = time.monotonic()
            # As long as they ran, however late this thread comes on a busy machine.
            time.sleep(1.25 * (stopped - went_on))
            self._signal(signal.SIGCONT)
            went_on = time.monotonic()

    def end(self):
        self._end.set()
        self._thread.join()


def test_slow_node(cluster, work):
    slow = SlowNode(cluster, "n2", work)
    try:
        waiting = Ran(cluster, start(cluster, work, "even", *MPI, "-wn1,n2", seconds=4))
        assert waiting.mistakes()[:1] == ["slow_node"], str(waiting)
        hint = waiting.hints["slow_node"]
        assert "task 1 on n2" in hint["says"], hint
        option = re.match(r"For the next job #SBATCH (--exclude=\w+),", hint["change"]).group(1)
        without = Ran(cluster, start(cluster, work, "even", *MPI, option, seconds=4))
        assert "slow_node" not in without.hints, str(without)
        assert without.facts["mpi_share"] < waiting.facts["mpi_share"], (waiting, without)
        assert without.facts.get("awaited_held", 0) < waiting.facts["awaited_held"] / 2, (waiting, without)
    finally:
        slow.end()


def test_a_site_has_hints_of_its_own(cluster, work):
    rules = cluster.dir / "hints.d"
    rules.mkdir()
    try:
        (rules / "leak.toml").write_text(
            """[hint.leak]
off = true
[hint.here]
when = "memory_growth > 0"
worth = "0.3"
says = "Here memory costs money."
why = "It grew by {memory_grown}."
change = "#SBATCH --mem={memory_peak|mem}"
"""
        )
        step = start(cluster, work, "leak", "-n1", "-c1")
        assert step.wait(30)[0] == 0, step.stderr
        conf = cluster.conf("")
        done = cluster.run([SONDE, "--config", conf, "hints", "--json", step.id], user=USER)
        assert [one["name"] for one in json.loads(done.stdout)["hints"]] == ["here"], done.stdout
        assert "Here memory costs money." in report_of(step.stderr), step.stderr
        (rules / "leak.toml").write_text("[hint.leak]\nwhen = 7\n")
        done = cluster.run([SONDE, "--config", conf, "hints", step.id], user=USER)
        assert done.returncode == 1
        assert f"{rules}/leak.toml:2: hint leak: 'when' has to be a text" in done.stderr
        shown = cluster.run([SONDE, "--config", conf, "show", step.id], user=USER)
        assert shown.returncode == 0 and "there are no hints" in shown.stderr
    finally:
        shutil.rmtree(rules)
