"""Programs of a step that ask about the step they are part of, on a real Slurm."""

import ast
import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import BUILD, OTHER_USER, ROOT, sonded_processes
from telemetry import Step

LEVEL_1 = ("--telemetry-level=1", "--telemetry-period=100ms")
PYTHON = "/usr/bin/python3"


@pytest.fixture(autouse=True)
def nothing_stays(cluster):
    cluster.conf("")
    yield
    cluster.cancel_all()
    cluster.wait_clean()


@pytest.fixture(scope="module")
def programs(cluster):
    """Where the cluster's users find the programs, with the library beside them."""
    directory = cluster.dir / "ask"
    directory.mkdir()
    directory.chmod(0o777)
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", directory)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN"]
    for compiler, source, name in (("cc", "ask.c", "ask"), ("c++", "ask.cc", "ask_cxx")):
        words = [compiler, "-Wall", "-Wextra", "-o", directory / name]
        subprocess.run([*words, ROOT / "tests" / "cluster" / source, *flags, "-lsonde"], check=True)
    shutil.copytree(BUILD / "libclient" / "python" / "sonde", directory / "sonde")
    shutil.copy(ROOT / "libclient" / "examples" / "straggler.py", directory)
    shutil.copy(ROOT / "tests" / "cluster" / "ask.py", directory)
    return directory


class Asking(Step):
    """A step of four nodes, of which the first asks."""

    def __init__(self, cluster, programs, *words):
        self.done = programs / f"done.{Step.count}"
        environment = {"PYTHONPATH": str(programs), "LD_LIBRARY_PATH": str(programs)}
        super().__init__(cluster, ["srun", "-N4", *LEVEL_1, *words, self.done], env=environment)

    def lines(self):
        code, _ = self.wait(60)
        assert code == 0, self.stdout + self.stderr
        return self.stdout.splitlines()


VALUES = [
    "metric ask_value bytes gauge 1 'What is asked for' 1 kind=test",
    "sum nodes 4/4: all=100",
    "max nodes 4/4: all=40",
    "by_host nodes 4/4: n1=10 n2=20 n3=30 n4=40",
    "by_task nodes 4/4: 0=10 1=20 2=30 3=40",
    "filtered nodes 4/4: all=50",
    "without_n1 nodes 4/4: all=90",
    "total nodes 4/4: all=1000",
    "true 0",
    "rate nodes 4/4: all=0",
]


def test_a_program_in_c_gets_exactly_what_was_set(cluster, programs):
    assert Asking(cluster, programs, programs / "ask", "values").lines() == VALUES


def goes_on(programs, program):
    """Rank 0 sets its values as the others do, and goes on as another program."""
    asks = f"[ $SLURM_PROCID = 0 ] && exec {program} $0"
    return ["bash", "-c", f"{programs}/ask set $0; {asks}; true"]


def python(programs, what):
    return goes_on(programs, f"{PYTHON} {programs}/ask.py {what}")


def test_a_program_in_python_gets_exactly_what_was_set(cluster, programs):
    lines = Asking(cluster, programs, *python(programs, "VALUES")).lines()
    assert lines == [
        "ask_value bytes What is asked for gauge 1 {'kind': 'test'}",
        "sum all=100",
        "by_host n1=10 n2=20 n3=30 n4=40",
        "by_task 0=10 1=20 2=30 3=40",
        "filtered all=50",
        "wildcard all=10",
        "total all=1000",
        "True the step has no metric 'no_such_metric' so far",
        lines[8],
    ]
    assert lines[8].startswith("True 'not a name' is no metric name")


def test_dragons_client_has_a_result_for_each_node(cluster, programs):
    assert Asking(cluster, programs, *python(programs, "DRAGON")).lines() == [
        "None n1=10 n2=20 n3=30 n4=40",
        "kind n1,test=10 n2,test=20 n3,test=30 n4,test=40",
        "['host', 'task'] n1,0=10 n2,1=20 n3,2=30 n4,3=40",
        "nothing",
        "ask_total 1000.0 True",
    ]


def test_a_program_in_cxx_gets_exactly_what_was_set(cluster, programs):
    lines = Asking(cluster, programs, *goes_on(programs, f"{programs}/ask_cxx")).lines()
    assert lines[:3] == [
        "metric ask_value in bytes",
        "by_host nodes 4/4: n1=10 n2=20 n3=30 n4=40",
        "true on n4: 40",
    ]
    assert lines[3].startswith("4 condition: expected a comparison")
    assert lines[4] == "0 34 the step has no metric 'no_such_metric' so far"


def test_the_example_finds_the_straggler_and_it_works_less(cluster, programs):
    scratch = programs / "straggler"
    scratch.mkdir()
    scratch.chmod(0o777)
    words = ["srun", "-N4", *LEVEL_1, PYTHON, programs / "straggler.py", scratch, "2"]
    environment = {"PYTHONPATH": str(programs), "LD_LIBRARY_PATH": str(programs)}
    done = cluster.run(words, env=environment)
    assert done.returncode == 0, done.stderr
    found, reacted = sorted(done.stdout.splitlines(), reverse=True)
    assert re.match(r"straggler: rank 2 on n3 is [3-9]\.\d times as slow as the median; ", found), found
    assert reacted == "rank 2: works less from now on"


def test_python_calls_back_from_a_thread(cluster, programs):
    step = Asking(cluster, programs, *python(programs, "BACKGROUND"))
    lines = step.lines()
    assert lines == [
        "('n3', 30.0, 'sonde-query') ('n4', 40.0, 'sonde-query')",
        "said the callback",
    ]
    assert step.stderr.count("RuntimeError: said the callback") == 2


def test_a_watch_calls_once_each_time(cluster, programs):
    lines = Asking(cluster, programs, programs / "ask", "watch").lines()
    assert lines[:4] == ["true 7", "over 2", "true 7", "over 2"]
    assert "expected a comparison" in lines[4] and len(lines) == 5


def test_wrong_questions_are_told_what_was_expected(cluster, programs):
    lines = Asking(cluster, programs, programs / "ask", "wrong").lines()
    assert lines[0] == "34 the step has no metric 'no_such_metric' so far"
    expected = ["metric", "expected one of sum, avg", "1m-avg", "expected literal_or", "end must lie"]
    for line, words in zip(lines[1:6], expected, strict=True):
        assert line.startswith("4 ") and words in line
    assert lines[6] == "still nodes 4/4: all=10"


def test_a_question_ends_in_time_when_the_head_is_killed(cluster, programs):
    step = Asking(cluster, programs, programs / "ask", "lost")
    step.wait_output("ready")
    (head,) = [
        pid for pid, command in sonded_processes() if "--head" in command and command.endswith(step.id)
    ]
    os.kill(head, signal.SIGKILL)
    (line,) = [line for line in step.lines() if line != "ready"]
    assert re.fullmatch(r"code 33 in time 1: .*(head|daemon).*", line), line


STRANGER = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("\\0" + sys.argv[1])
s.settimeout(10)
try:
    s.send(b"\\0" * 8 + b"\\1" + b"\\0" * 7 + b"SNDEASK1" + b"\\1" + b"\\0" * 7)
    print(repr(s.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


def test_another_user_is_refused(cluster, programs):
    step = Asking(cluster, programs, programs / "ask", "lost")
    step.wait_output("ready")
    lines = open("/proc/net/unix", encoding="ascii").read()
    names = set(re.findall(rf"@(sonde/\S*/{re.escape(step.id)}\.\S+\.ask)", lines))
    assert len(names) == 4
    words = ["/usr/bin/python3", "-c", STRANGER, next(iter(names))]
    done = cluster.run(words, user=OTHER_USER)
    assert done.stdout.strip() in ("b''", "ConnectionResetError", "BrokenPipeError"), done
    # The step's own user is let in: it is refused for who it is, not for what it says.
    assert b"SNDEASK1" in ast.literal_eval(cluster.run(words).stdout)
