"""What a script tells by `sonde put` and its like."""

import pytest
from conftest import SONDE, run


def script(watch, text, **options):
    """Runs a shell script in which `sonde` is the built one."""
    done = watch("sh", "-euc", f'sonde() {{ "{SONDE}" "$@"; }}\n{text}', **options)
    return done


def test_gauges_and_counters_of_many_processes(watch):
    done = script(
        watch,
        """
        for i in 1 2 3 4 5 6 7 8 9 10; do
          sonde put --unit seconds --tag part=a --tag kind='two words' app_gauge=$i.5 app_other=-$i
          sonde put --add app_total=$i app_half_total=0.5
        done
        sonde put --level 2 app_detail=1
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    gauge = done.entry("app_gauge", part="a", kind="two words")
    assert (gauge["last"], gauge["unit"]) == (10.5, "seconds")
    assert (done.last("app_other"), done.last("app_total")) == (-10, 55)
    assert done.last("app_half_total") == 5
    assert done.entries("app_detail") == []


def test_processes_at_once_add_up(watch):
    done = script(
        watch,
        """
        for i in 1 2 3 4 5 6 7 8; do
          (for k in 1 2 3 4 5; do sonde put --add app_total=2; done) &
        done
        wait
        """,
    )
    assert done.last("app_total") == 80


def test_moments_of_many_processes(watch):
    done = script(
        watch,
        """
        for i in 1 2; do
          sonde phase begin "read input"
          sonde annotate --strict "input $i   is" "there"
          sonde phase end "read input"
        done
        sonde phase begin --strict solve
        sonde figure --unit seconds time=3
        sonde figure --strict --unit seconds time=2.5
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.phases() == {"read input": (2, 2), "solve": (1, 0)}
    assert done.remarks() == ["input 1   is there", "input 2   is there"]
    assert done.figures() == {"time": (2.5, "seconds")}
    assert done.entries("phase_seconds_total") == []


NOTHING = ["put x=1", "put --add x=1 y=2", "annotate what happens", "phase begin solve"]
NOTHING += ["phase end solve", "figure --unit 1 speed=2.5"]


@pytest.mark.parametrize("command", NOTHING)
def test_without_telemetry_nothing_happens_unless_it_is_asked_for(command):
    done = run(SONDE, *command.split())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    first, *rest = command.split()
    done = run(SONDE, first, "--strict", *rest)
    assert done.returncode == 3
    assert done.stderr.splitlines()[0].endswith(
        " is not recorded: no telemetry was asked for (SONDE_SOCKET is not set)"
    )


def test_strict_tells_of_a_level_and_of_a_conflict(watch):
    done = script(
        watch,
        """
        sonde put --strict x=1
        sonde put --strict --level 3 y=1 || echo "level $?"
        sonde put --strict x=1 x=2 && echo "same"
        """,
    )
    assert done.stdout == "level 3\nsame\n"
    assert "y is not recorded: the metric 'y' is of level 3" in done.stderr


def test_a_daemon_that_is_gone_is_no_failure_either():
    env = {"SONDE_SOCKET": "sonde-no-such-socket", "SONDE_LEVEL": "2"}
    assert run(SONDE, "put", "x=1", env=env).returncode == 0
    done = run(SONDE, "put", "--strict", "x=1", env=env)
    assert done.returncode == 1 and "could not be reached" in done.stderr


WRONG = {
    ("put",): "VALUES is required",
    ("put", "x"): "'x': expected NAME=VALUE",
    ("put", "1x=3"): "'1x' is no metric name; expected 1 to 128 letters, digits",
    ("put", "x="): "'x=': expected a number after the '='",
    ("put", "x=1 "): "expected a number",
    ("put", "x=nan"): "expected a number",
    ("put", "--add", "x=-1"): "'x=-1': a counter only grows; expected a number that is not negative",
    ("put", "--tag", "a", "x=1"): "--tag: 'a': expected KEY=VALUE",
    ("put", "--tag", "a=", "x=1"): "--tag: ",
    ("put", "--tag", "task=1", "x=1"): "expected another key: every series has the rank as 'task'",
    ("put", "--tag", "a=1", "--tag", "a=2", "x=1"): "--tag: 'a' is given twice",
    ("put", *(f"--tag=t{i}=1" for i in range(8)), "x=1"): "--tag: at most 7 tags",
    ("put", "--level", "5", "x=1"): "--level: Value 5 not in range 1 to 4",
    ("put", "--unit", "a\nb", "x=1"): "expected a unit such as seconds, bytes or 1",
    ("phase", "start", "x"): "start not in {begin,end}",
    ("phase", "begin", ""): "expected 1 to 128 bytes of text without control characters",
    ("figure", "x"): "'x': expected NAME=VALUE",
    ("figure", "x=1", "y=2"): "not expected: y=2",
    ("annotate",): "TEXT is required",
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage_says_what_was_expected(words):
    done = run(SONDE, *words)
    assert done.returncode == 2
    assert WRONG[words] in done.stderr
