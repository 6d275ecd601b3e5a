"""What an application tells beside values, on its way from its processes to the user: phases, remarks,
figures of merit and histograms, with exact values in the profile."""

import contextlib
import json
import os
import shutil
import signal
import subprocess

import pytest
from conftest import BUILD, ROOT, SONDE, USER, sonded_processes, wait_for
from telemetry import LEVEL, Live, Step, counter, report_of

NODES = 4
TASKS = 8
STEPS = 5


@pytest.fixture(scope="module")
def moments(cluster):
    program = cluster.dir / "moments"
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", cluster.dir)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN", "-Wall", "-Werror"]
    source = ROOT / "tests" / "cluster" / "moments.c"
    subprocess.run(["cc", "-o", program, source, *flags, "-lsonde"], check=True)
    return program


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()
    cluster.conf("")


@pytest.fixture
def gate(cluster, request):
    """What opens the way for the tasks of a node, `open_gate`: a file of this test alone."""
    return cluster.dir / "tmp" / USER / f"gate-{request.node.name}"


def open_gate(gate, host):
    gate.with_name(f"{gate.name}.{host}").touch()


def told(shown):
    return shown["profile"]["moments"]


def phases(shown, name):
    return [phase for phase in told(shown)["phases"] if phase["name"] == name]


def distribution(shown, metric):
    found = [one for one in told(shown)["distributions"] if one["metric"] == metric]
    assert len(found) == 1, [one["metric"] for one in told(shown)["distributions"]]
    return found[0]


def run(cluster, moments, mode="whole"):
    step = Step(cluster, ["srun", *LEVEL, f"-N{NODES}", f"-n{TASKS}", moments, mode, str(STEPS)])
    assert step.wait()[0] == 0, step.stderr
    return step, step.profile()


def check_phases(shown):
    job = shown["profile"]["job"]
    # Where ranks begin far apart, an interval may end before the next one begins.
    for name, times in (("setup", TASKS), ("step", TASKS * STEPS)):
        intervals = phases(shown, name)
        assert sum(interval["began"] for interval in intervals) == times
        assert sum(interval["ended"] for interval in intervals) == times
        assert job["start"] <= intervals[0]["begin"] < intervals[-1]["end"] <= job["end"]
        assert all(interval["end"] - interval["begin"] >= 0.2e9 for interval in intervals)
        for before, after in zip(intervals, intervals[1:]):
            assert before["end"] < after["begin"]


def check_histograms(shown):
    size = distribution(shown, "step_size")
    assert size["count"] == TASKS * STEPS
    assert size["sum"] == TASKS * sum(range(1, STEPS + 1))
    assert (size["min"], size["max"]) == (1, STEPS)
    # One bucket for each value: those up to 32 are apart.
    assert [count for _, count in size["buckets"]] == [TASKS] * STEPS
    assert size["p50"] == pytest.approx(3, rel=1 / 64)
    wait = distribution(shown, "wait_seconds")
    assert wait["tags"] == {"call": "recv"}
    assert wait["count"] == 10 * TASKS * STEPS
    assert wait["sum"] == 0.125 * 10 * STEPS * sum(range(1, TASKS + 1))
    assert (wait["min"], wait["max"]) == (0.125, 0.125 * TASKS)


def test_what_four_nodes_tell_is_exactly_in_the_profile(cluster, moments):
    step, shown = run(cluster, moments)
    check_phases(shown)
    check_histograms(shown)
    remarks = {remark["text"]: remark for remark in told(shown)["remarks"]}
    special = remarks["rank two is special"]
    assert special["count"] == 1
    assert (special["by"]["rank"], special["by"]["host"]) == (2, "n2")
    assert sum(r["count"] for r in told(shown)["remarks"] if r["text"] == "mesh read") == TASKS
    speed, residual = sorted(shown["profile"]["job"]["figures"], key=lambda f: f["unit"],
                             reverse=True)
    assert (speed["name"], speed["unit"], speed["count"]) == ("speed", "steps/s", TASKS)
    assert speed["value"] == 100 + speed["by"]["rank"]
    assert (residual["name"], residual["value"]) == ("residual", 1.25e-7)
    assert told(shown)["lost"] == 0 and told(shown)["left_out"] == 0
    # The counter of libsonde: of all ranks, each of which slept that long.
    setup = counter(shown, "phase_seconds_total", phase="setup")
    assert 0.3 * TASKS <= setup["last"] < 0.3 * TASKS + 8
    check_what_people_see(cluster, step, shown)


def check_what_people_see(cluster, step, shown):
    report = report_of(step.stderr)
    assert "residual 1.25e-07" in report
    for line in ("phase ", "setup ", "step ", "histogram ", "step_size "):
        assert any(text.startswith(line) for text in report.splitlines()), (line, report)
    assert "step_size_count" not in report and "phase_seconds_total" not in report
    assert [phase["began"] for phase in shown["phases"] if phase["name"] == "step"] == [
        TASKS * STEPS
    ]
    listed = json.loads(cluster.run([SONDE, "ls", "--json"], user=USER).stdout)
    [entry] = [e for e in listed if f"{e['job']['job']}.{e['job']['step']}" == step.id]
    assert {figure["name"] for figure in entry["job"]["figures"]} == {"speed", "residual"}


def test_what_children_tell_is_counted_once_when_their_parent_leaves(cluster, moments, gate):
    """Two nodes send by way of another, which ends before them."""
    log_dir = cluster.dir / "tmp" / USER
    cluster.conf(f"fanout = 2\nfabric_after = 50ms\nlog_dir = {log_dir}\n")
    step = Step(cluster, ["srun", *LEVEL, f"-N{NODES}", f"-n{TASKS}", moments, "gate", "2", gate])

    def links():
        logs = "".join(path.read_text() for path in log_dir.glob(f"sonded.{step.id}.*.log"))
        return logs.count("data goes to node 0")

    wait_for(lambda: links() == 2, "the children's links to node 0")
    live = step.live()

    def counted():
        profile = json.loads(live.get(f"/api/v1/profile?job={step.id}"))
        return sum(d["count"] for d in profile["moments"]["distributions"])

    wait_for(lambda: counted() > 11 * 3 * TASKS, "what the nodes tell over these links")
    first, *others = [node["host"] for node in step.profile()["profile"]["job"]["nodes"]]
    open_gate(gate, first)

    def daemons():
        return [command for _, command in sonded_processes() if command.endswith(f"--node {step.id}")]

    wait_for(lambda: len(daemons()) == NODES - 1, "the inner node's leaving", 10)
    before = counted()
    wait_for(lambda: counted() > before + 11 * TASKS, "what the others tell without it")
    for host in others:
        open_gate(gate, host)
    assert step.wait()[0] == 0, step.stderr
    check_all_is_told(step.profile(), step.stdout)


def check_all_is_told(shown, stdout):
    """Each rank has printed how many steps it made."""
    made = [int(line) for line in stdout.split()]
    assert len(made) == TASKS
    size = distribution(shown, "step_size")
    assert (size["count"], size["sum"]) == (sum(made), sum(n * (n + 1) // 2 for n in made))
    assert distribution(shown, "wait_seconds")["count"] == 10 * sum(made)
    assert sum(one["began"] for one in phases(shown, "step")) == sum(made)
    assert sum(one["ended"] for one in phases(shown, "step")) == sum(made)
    [speed] = [f for f in shown["profile"]["job"]["figures"] if f["name"] == "speed"]
    assert speed["count"] == TASKS
    assert told(shown)["lost"] == 0


def start_waiting(cluster, moments):
    step = Step(cluster, ["srun", *LEVEL, f"-N{NODES}", f"-n{TASKS}", moments, "wait", "1"])
    step.wait_output("waiting\n" * TASKS)
    return step


def live_profile(step):
    return {"profile": json.loads(step.live().get(f"/api/v1/profile?job={step.id}"))}


def steps_told(step, head):
    """How many phases "step" a running head knows; 0 while it does not answer."""
    try:
        profile = {"profile": json.loads(head.get(f"/api/v1/profile?job={step.id}"))}
    except OSError:
        return 0
    return sum(phase["ended"] for phase in phases(profile, "step"))


def acting_head(step, killed):
    for path in (step.cluster.archive(step.user) / "live").glob(f"[!.]*.{step.id}.*/endpoint.json"):
        with contextlib.suppress(FileNotFoundError):
            found = json.loads(path.read_text())
            if found["pid"] != killed:
                return Live(found["host"], found["port"], found["token"])
    return None


def everybody_waits(step):
    waiting = phases(live_profile(step), "wait")
    return sum(phase["began"] for phase in waiting) == TASKS


def test_a_running_step_shows_what_it_has_told_so_far(cluster, moments):
    step = start_waiting(cluster, moments)
    wait_for(lambda: everybody_waits(step), "all ranks in the phase")
    shown = live_profile(step)
    [wait] = phases(shown, "wait")
    assert wait["end"] == 0 and wait["ended"] == 0
    assert distribution(shown, "step_size")["count"] == TASKS
    [job] = [job for job in json.loads(step.live().get("/job/list")) if job["figures"]]
    assert {figure["name"] for figure in job["figures"]} == {"speed", "residual"}


def test_what_is_told_before_and_after_the_heads_death_is_all_there(cluster, moments, gate):
    """Some of it the head had stored, some only merged, some goes to the acting head."""
    log_dir = cluster.dir / "tmp" / USER
    cluster.conf(f"fabric_after = 50ms\nlog_dir = {log_dir}\n")
    step = Step(cluster, ["srun", *LEVEL, f"-N{NODES}", f"-n{TASKS}", moments, "gate", "2", gate])
    head = step.live()
    pid = json.loads((step.live_directory() / "endpoint.json").read_text())["pid"]
    blocks = step.live_directory() / "blocks"

    def logs():
        return "".join(path.read_text() for path in log_dir.glob(f"sonded.{step.id}.*.log"))

    def stored():  # LevelDB does not compress there
        return any(b'"metric":"step_size"' in path.read_bytes() for path in blocks.glob("*.l*"))

    wait_for(lambda: logs().count("stand by to be head") >= NODES, "the successors")
    wait_for(stored, "the first moments to be stored", 30)
    kept = steps_told(step, head)
    wait_for(lambda: steps_told(step, head) >= kept + 3 * TASKS, "what is merged and not stored")
    os.kill(pid, signal.SIGKILL)
    acting = wait_for(lambda: acting_head(step, pid), "the acting head")
    wait_for(lambda: steps_told(step, acting) >= TASKS, "what the acting head is told")
    for node in step.profile()["profile"]["job"]["nodes"]:
        open_gate(gate, node["host"])
    step.wait()
    shown = wait_for(
        lambda: (found := step.profile())["profile"]["job"]["state"] == "completed" and found,
        "the acting head's end",
    )
    assert any("The head was killed" in note for note in shown["profile"]["job"]["notes"])
    check_all_is_told(shown, step.stdout)
