"""`sonde top` in a real terminal, tmux, against steps that run."""

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from alarm_steps import Working, room  # noqa: F401
from conftest import SONDE, USER, wait_for
from telemetry import LEVEL, daemon

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux here")
NUMBERS = itertools.count()
RULES = "hog: task_resident_memory_bytes any > 60M warning\n"


class Pane:
    """A shell of the user's in a terminal of that size."""

    def __init__(self, cluster, width, height=24, env=()):
        self.cluster = cluster
        shown = cluster.run(["env", "--null"]).stdout
        self.environment = dict(line.split("=", 1) for line in shown.split("\0") if line)
        self.socket = f"sonde-top-{os.getpid()}-{next(NUMBERS)}"
        shell = ["env", "PS1=ready> ", "LANG=C.UTF-8", *env, "bash", "--norc", "--noprofile"]
        size = ["-x", str(width), "-y", str(height)]
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, shlex.join(shell))
        self.until("ready>")

    def tmux(self, *words):
        """As the user, but not by `scripts/cluster run`: a screen is looked at often, and that takes longer."""
        done = subprocess.run(
            ["tmux", "-u", "-L", self.socket, *words], env=self.environment, cwd=self.environment["HOME"],
            user=USER, group=USER, extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def text(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.keys("-l", text)
        self.keys("Enter")

    def ask(self, variable):
        return self.tmux("display-message", "-p", "#{%s}" % variable).strip()

    def until(self, *wanted, timeout=30):
        """Waits until all of these are on the screen; gives it."""

        def there():
            text = self.text()
            return text if all(re.search(one, text, re.MULTILINE) for one in wanted) else None

        return wait_for(there, lambda: f"{wanted} in:\n{self.text()}", timeout)

    def close(self):
        self.cluster.run(["tmux", "-L", self.socket, "kill-server"])


@pytest.fixture
def pane(cluster):
    panes = []

    def make(*args, **kwargs):
        panes.append(Pane(cluster, *args, **kwargs))
        return panes[-1]

    yield make
    for one in panes:
        one.close()


@pytest.fixture
def working(cluster, room):
    step = Working(cluster, room, RULES)
    step.step.wait_nodes(4)
    yield step
    (room / "stop").touch()
    step.step.wait()


def fits(text, width):
    return all(len(line) <= width for line in text.splitlines())


def at_the_shell(pane):
    """The terminal is the shell's again, with what was there before."""
    pane.until("^before$", "^ready>$")
    assert pane.ask("alternate_on") == "0" and pane.ask("cursor_flag") == "1"
    pane.type("stty -a")
    modes = pane.until(r"-?\becho\b", r"-?\bicanon\b")
    assert not re.search(r"-(icanon|echo|isig|icrnl|opost)\b", modes), modes


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_nodes_ranks_and_cores_of_a_step(working, pane, width):
    screen = pane(width)
    screen.type("echo before")
    screen.until("^before$")
    screen.type(f"{SONDE} top")
    step = working.step.id
    # Rank 1 sleeps, and the alarm is of rank 2.
    rows = [rf"^{node} .*\d %" for node in ("n1", "n2", "n3", "n4")]
    # The first values may be of a moment in which another node waited for a core.
    idlest = r"^all nodes(?: .*)?\n(?:(?!n\d ).*\n)*n2 "
    text = screen.until(
        re.escape(step), "4 nodes, 4 tasks", "no node missing", "1 alarm", *rows, idlest
    )
    assert fits(text, width)
    assert "?" in text.splitlines()[-1] and "q quit" in text.splitlines()[-1]
    table = text[text.index("all nodes") :].splitlines()
    nodes = [line.split()[0] for line in table if re.match(r"n\d ", line)]
    assert sorted(nodes) == ["n1", "n2", "n3", "n4"]

    screen.keys("a")
    screen.until("Alarms that are raised", "hog", "rank 2")
    screen.keys("x")
    screen.keys("?")
    screen.until("^Keys", "resident memory")
    screen.keys("x")
    screen.until("^all nodes")

    screen.keys("0")
    screen.until(*rows)
    screen.type("/n3")
    only = screen.until("^n3 ", r"^n3 [^\n]*\n\n")
    assert "n1 " not in only
    screen.keys("Escape")
    screen.until(*rows)
    screen.keys("Home")
    screen.keys("Down")
    screen.keys("Enter")
    screen.until(rf"{re.escape(step)} > n1", r"^rank 0 .*\d %")
    screen.keys("Down")
    screen.keys("Enter")
    screen.until("> rank 0: cores", r"^core \d+ .*rank 0")
    screen.keys("Escape")
    screen.until(r"^rank 0 ")
    screen.keys("Escape")
    screen.until(*rows)

    screen.keys("Home")
    screen.keys("g")
    plot = screen.until(r"CPU of the whole step: min \d+ %  max \d+ %", "since the start")
    assert re.search("[\u2801-\u28ff]", plot)
    assert fits(plot, width)

    screen.keys("q")
    at_the_shell(screen)


def test_the_terminal_may_change_its_size(working, pane):
    screen = pane(120)
    screen.type(f"{SONDE} top {working.step.id}")
    screen.until("^n4 ")
    for width, height in ((60, 14), (200, 50), (80, 24)):
        screen.tmux("resize-window", "-x", str(width), "-y", str(height))

        def redrawn(width=width, height=height):
            lines = screen.text().splitlines()
            return len(lines) == height and "q quit" in lines[-1] and fits("\n".join(lines), width)

        wait_for(redrawn, lambda: f"a frame of {width} x {height} in:\n{screen.text()}")
        screen.until("^n1 ", "^n4 ")
    screen.tmux("resize-window", "-x", "20", "-y", "5")
    screen.until("too small")
    screen.tmux("resize-window", "-x", "80", "-y", "24")
    screen.until("^n4 ")


def test_when_the_step_ends_its_last_values_stay(working, pane):
    screen = pane(100)
    screen.type("echo before")
    screen.type(f"{SONDE} top")
    screen.until(r"^n4 .*\d %")
    working.stop()
    step = working.step.id
    screen.until(f"The step has ended: completed.*sonde show {re.escape(step)}", r"^n4 .*\d %")
    screen.keys("q")
    at_the_shell(screen)


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV])
def test_a_signal_leaves_the_terminal_as_it_was(working, pane, which):
    screen = pane(80)
    screen.type("echo before")
    screen.type(f"{SONDE} top; echo status $?")
    screen.until("^n4 ")
    # The shell's child.
    shell = int(screen.ask("pane_pid"))
    children = open(f"/proc/{shell}/task/{shell}/children", encoding="ascii").read().split()
    os.kill(int(children[0]), which)
    # A shell does not go on with the line of a command that was interrupted.
    if which != signal.SIGINT:
        screen.until(f"^status {128 + which}$")
    at_the_shell(screen)


def test_whatever_else_ends_it_leaves_the_terminal_as_it_was(working, pane):
    screen = pane(80)
    # tests/unit/cli_top_terminal_test.cc has all of them.
    for name in ("USR1", "USR2", "ALRM", "XCPU", "RTMIN"):
        which = getattr(signal, "SIG" + name)
        screen.type(f"clear; echo before; {SONDE} top; echo {name} $?")
        screen.until("^n4 ", "q quit")
        (child,) = Path(f"/proc/{screen.ask('pane_pid')}/task/{screen.ask('pane_pid')}/children").read_text().split()
        os.kill(int(child), which)
        screen.until(f"^{name} {128 + which}$")
        at_the_shell(screen)


def test_it_stops_and_goes_on_as_other_programs_do(working, pane):
    screen = pane(80)
    screen.type(f"{SONDE} top")
    screen.until("^n4 ")
    screen.keys("C-z")
    screen.until("Stopped", "^ready>$")
    screen.type("fg")
    screen.until("^n4 ", "q quit")
    screen.keys("q")
    screen.until("^ready>$")


def test_terminals_without_colours_and_without_utf8(working, pane):
    plain = pane(80, env=["NO_COLOR=1", "LANG=C", "LC_ALL=C"])
    plain.type(f"{SONDE} top")
    text = plain.until(r"^n4 .*\d %")
    assert text.isascii(), text
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain.tmux("capture-pane", "-p", "-e"))
    plain.keys("q")
    plain.until("^ready>$")
    unknown = pane(80, env=["TERM=nonsense"])
    unknown.type(f"{SONDE} top")
    unknown.until("TERM=nonsense, is not known here")


def test_a_node_that_is_lost_is_marked(working, pane):
    screen = pane(120)
    screen.type(f"{SONDE} top")
    screen.until(r"^n3 .*\d %")
    (pid,) = daemon("node", working.step.id, 2)
    os.kill(pid, signal.SIGKILL)
    screen.until(r"^n3 +-  (no values|lost, no values) since \d\d:\d\d:\d\d", timeout=60)
    screen.until(r"^n1 .*\d %")


def test_one_frame_for_scripts(cluster, working):
    step = working.step.id

    def frame():
        done = cluster.run([SONDE, "top", "--once", step])
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout if re.search(r"^n4 .*\d %", done.stdout, re.M) else None

    text = wait_for(frame, "a frame with values")
    assert fits(text, 80) and "\x1b" not in text
    assert all(re.search(rf"^{node} ", text, re.M) for node in ("n1", "n2", "n3", "n4"))
    assert "q quit" not in text
    wide = cluster.run([SONDE, "top", "--once", step], env={"COLUMNS": "120"}).stdout
    assert fits(wide, 120) and any(len(line) > 80 for line in wide.splitlines())
    refused = cluster.run([SONDE, "top", step])
    assert refused.returncode == 2 and "needs a terminal" in refused.stderr


def test_which_step_it_is(cluster, room, pane):
    none = cluster.run([SONDE, "top", "--once"])
    assert none.returncode == 3
    assert "srun --telemetry-level=2" in none.stderr
    work = f"until [ -e {room}/stop ]; do read -t 0.05 < <(:); done; true"
    jobs = [
        cluster.popen(["srun", "-N1", "-w", node, "-J", f"run{node}", *LEVEL, "bash", "-c", work], user=USER)
        for node in ("n1", "n2")
    ]

    def both():
        text = cluster.run([SONDE, "top", "--once"]).stdout
        return text if "runn1" in text and "runn2" in text and text.count(" %") == 2 else None

    text = wait_for(both, "a list of two steps")
    assert "2 steps are running" in text and fits(text, 80)
    screen = pane(80)
    screen.type(f"{SONDE} top")
    screen.until("2 steps are running", "runn1", "runn2")
    screen.keys("Down")
    screen.keys("Enter")
    chosen = screen.until("1 node, 1 task", r"^n\d .*\d %")
    assert ("runn1" in chosen) != ("runn2" in chosen)
    (room / "stop").touch()
    for job in jobs:
        assert job.wait(30) == 0
