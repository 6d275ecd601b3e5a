"""The rules of alarms that every step has, on steps that give cause for them. Those that wait for a
minute and more are given less patience, and are else as they come."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest
from alarm_steps import Working, node_of, post, room  # noqa: F401
from conftest import BUILD, SONDE, USER, wait_for
from telemetry import LEVEL, Step, daemon, report_of

HEAT = BUILD / "examples" / "mpi_heat"
CGROUPS = pathlib.Path("/sys/fs/cgroup")

# Rank 1 does nothing, the others all they can.
ONE_IDLE = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    if os.environ["SLURM_PROCID"] == "1":
        time.sleep(0.2)
    else:
        sum(i * i for i in range(50_000))
"""


ENTER = """
import os, sys, time
inside = os.environ["SLURM_PROCID"] == "2"
if inside:
    with open(os.environ["GROUP"], "w") as group:
        group.write(str(os.getpid()))
"""

# Rank 2 grows: at once to two thirds of what its group may have, then by 1 % a second, so that it is long
# above the share from which on it matters.
GROWING = f"""{ENTER}
held, limit, share = [], 256 << 20, 0.68
while not os.path.exists(sys.argv[1]):
    while inside and len(held) << 20 < share * limit:
        held.append(bytearray(b"x") * (1 << 20))
    share = min(share + 0.001, 0.9)
    time.sleep(0.1)
"""

COMPUTING = f"""{ENTER}
while not os.path.exists(sys.argv[1]):
    sum(i * i for i in range(10_000)) if inside else time.sleep(0.1)
"""


def built_in(cluster, name):
    """The rule as `sonde alarms defaults` prints it."""
    printed = cluster.run([SONDE, "alarms", "defaults"], user=USER).stdout
    (line,) = [line for line in printed.splitlines() if line.startswith(f"{name}: ")]
    return line.removeprefix(f"{name}: ")


@contextlib.contextmanager
def sooner(cluster, name, patience, less):
    """The built-in rule with less patience."""
    rule = built_in(cluster, name)
    assert f"for {patience}" in rule
    cluster.conf(f"alarm.{name} = {rule.replace(f'for {patience}', f'for {less}')}\n")
    try:
        yield
    finally:
        cluster.conf("")


@contextlib.contextmanager
def limited(controller, **files):
    """A control group with these limits, which a task may go into: its cgroup.procs."""
    top = CGROUPS / controller
    if not (top / "cgroup.procs").exists():
        pytest.skip(f"no control groups of version 1 with {controller} on this machine")
    group = top / f"sonde-test-{os.getpid()}"
    group.mkdir()
    try:
        for name, value in files.items():
            (group / f"{controller}.{name}").write_text(str(value))
        (group / "cgroup.procs").chmod(0o666)
        yield group / "cgroup.procs"
    finally:

        def gone():
            with contextlib.suppress(OSError):
                group.rmdir()
            return not group.exists()

        wait_for(gone, "the end of the control group")


def raised_inside(cluster, room, work, group, name):
    """The alarm that a step raises of whose tasks one goes into the group, and its profile."""
    working = Working(cluster, room, work=work, env={"GROUP": str(group)})
    try:
        raised = working.raised(name, 60)
    finally:
        profile = working.stop()
    return raised, profile


def test_built_in_rules_are_tuned_and_switched_off(cluster, room):
    cluster.conf(
        'alarm.memory = node_memory_MemTotal_bytes any > 1 info message "tuned"\n'
        "alarm.hung = off\nalarm.wrong = x >\n"
    )
    try:
        working = Working(cluster, room, "gone: never_there absent for 1s\n")
        assert working.raised("memory")["text"] == "tuned"
        assert working.raised("gone")["rule"] == "never_there absent for 1s"
        names = [a["name"] for a in json.loads(working.step.live().get("/alarms/list"))["main"]]
        assert "hung" not in names and "missing" in names
        profile = working.stop()
    finally:
        cluster.conf("")
    wrong = "sonde.conf: alarm wrong: expected a number at the end; this alarm is left out"
    assert wrong in profile["job"]["notes"]


@pytest.fixture
def full(room):
    """A filesystem without room."""
    point = room / "full"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "none", point], check=True)
    try:
        with open(point / "file", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(65536))
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def test_a_built_in_rule_is_raised_as_it_is(cluster, room, full):
    working = Working(cluster, room)
    # Filesystems are looked at every 10 s, and it has to be full for as long.
    raised = working.raised("filesystem", 60)
    assert raised["text"].startswith(f"{full} is full: 0 ")
    assert raised["severity"] == "warning"
    profile = working.stop()
    assert raised["node"] in {node["host"] for node in profile["job"]["nodes"]}
    (alarm,) = [a for a in profile["moments"]["alarms"] if a["tags"].get("mountpoint") == str(full)]
    assert alarm["rule"] == "filesystem"
    # Its lines are broken at blanks, also within the path's sentence.
    assert "alarm filesystem (warning)" in " ".join(report_of(working.step.stderr).split())


def test_the_built_in_rule_of_a_hung_step_but_for_its_patience(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])
    live = step.wait_nodes(2)
    rules = json.loads(live.get("/alarms/list"))["main"]
    (rule,) = [alarm["rule"] for alarm in rules if alarm["name"] == "hung"]
    assert "for 2m" in rule
    post(live, "/alarms/add", {"name": "hung_soon", "rule": rule.replace("for 2m", "for 1s")})
    wait_for(
        lambda: "hung_soon" in {a["name"] for a in json.loads(live.get("/alarms"))["main"]},
        "the alarm of a step that does nothing",
        20,
    )
    step.process.terminate()
    step.wait()


def test_the_built_in_rule_of_an_idle_node_but_for_its_patience(cluster, room):
    with sooner(cluster, "idle_node", "2m", "2s"):
        working = Working(cluster, room, work=ONE_IDLE, period="1s")
        idle = working.raised("idle_node", 60)
        profile = working.stop()
    assert idle["text"] == "the node's tasks do nothing while others compute"
    assert idle["node"] == node_of(profile, 1)
    assert "rank" not in idle, "it is all of the node's tasks"
    (alarm,) = [a for a in profile["moments"]["alarms"] if a["rule"] == "idle_node"]
    assert alarm["severity"] == "warning"


def test_the_built_in_rule_of_a_straggler_but_for_its_patience(cluster, room):
    with sooner(cluster, "straggler", "1m", "2s"):
        working = Working(cluster, room, period="1s")
        raised = working.raised("straggler", 60)
        profile = working.stop()
    assert raised["text"].startswith("it computes far less than the others: ")
    assert (raised["rank"], raised["node"]) == (1, node_of(profile, 1))
    assert raised["severity"] == "info"


def test_missing_samples_are_told_of(cluster, room):
    working = Working(cluster, room)
    working.step.wait_nodes(4)
    victim = daemon("node", working.step.id, 2)[0]
    os.kill(victim, signal.SIGSTOP)
    try:
        raised = working.raised("missing", 60)
    finally:
        os.kill(victim, signal.SIGCONT)
    assert raised["text"] == "samples are missing or late"
    profile = working.stop()
    assert raised["node"] == node_of(profile, 2)
    assert [a["severity"] for a in profile["moments"]["alarms"] if a["rule"] == "missing"] == ["warning"]


def test_memory_that_runs_out_is_told_of_with_the_time_that_is_left(cluster, room):
    with limited("memory", limit_in_bytes=256 << 20) as group:
        raised, profile = raised_inside(cluster, room, GROWING, group, "memory_limit_soon")
    assert raised["severity"] == "critical" and raised["node"] == node_of(profile, 2)
    told = re.fullmatch(
        r"the memory limit is reached in (\S+) s if this goes on: (\S+) % of it is used", raised["text"]
    )
    assert told, raised["text"]
    assert 0 < float(told[1]) <= 60 and float(told[2]) > 75
    assert profile["job"]["state"] == "completed"


def test_the_built_in_rule_of_a_used_up_quota_but_for_its_patience(cluster, room):
    with (
        # To use up its quota it has to get it: beside processes outside, a group counts as one of them.
        limited("cpu", cfs_period_us=100_000, cfs_quota_us=20_000, shares=262_144) as group,
        sooner(cluster, "throttled_quota", "30s", "2s"),
    ):
        raised, profile = raised_inside(cluster, room, COMPUTING, group, "throttled_quota")
    assert raised["node"] == node_of(profile, 2)
    assert raised["text"].startswith("the step has used up its processor time and has to wait: ")


def test_a_healthy_step_raises_none(cluster):
    if not HEAT.exists():
        pytest.skip("there is no MPI to build mpi_heat with")
    step = Step(cluster, ["srun", "--mpi=pmi2", "-N4", *LEVEL, str(HEAT), "-t", "4"])
    assert step.wait(60)[0] == 0, step.stderr
    assert step.profile()["profile"]["moments"]["alarms"] == []
