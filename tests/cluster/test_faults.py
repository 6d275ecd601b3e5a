"""When things go wrong: the job is as without Sonde, nothing waits long, one line says what is
missing, the profile says so too, and nothing stays."""

import os
import re
import shlex
import signal
import time

import belongings
import pytest
from conftest import PLUGIN, SONDE, SONDED, USER
from telemetry import (
    END_BOUND,
    LEVEL,
    Step,
    complete,
    coverage,
    counter,
    daemon,
    job_of,
    notes_of,
    ours,
    report_of,
    show,
    step_id,
    without_sonde,
)

JOB = ["bash", "-c", "echo out $SLURM_PROCID; echo err >&2; exit 7"]
PLUGSTACK = f"optional {PLUGIN} sonded=@DIR@/bin/sonded sonde={SONDE} config=@DIR@/sonde.conf state=@DIR@/counters\n"
NUMBERS = re.compile(r"\d{4,}(\.\d+)?|(?<=\[)\d+(?=\])")


@pytest.fixture(scope="module")
def cluster(make_cluster):
    """As everybody's, but the daemon's path is a link that tests can change."""
    running = make_cluster(plugstack=PLUGSTACK)
    (running.dir / "bin").mkdir()
    return running


@pytest.fixture(autouse=True)
def sonded(cluster):
    """The link to the daemon, as it should be, and nothing left of the test."""
    link = cluster.dir / "bin" / "sonded"
    link.unlink(missing_ok=True)
    link.symlink_to(SONDED)
    cluster.conf("")
    yield link
    cluster.cancel_all()
    cluster.wait_clean()


@pytest.fixture(scope="module")
def plain(cluster):
    """What JOB on two nodes says and returns without telemetry."""
    return outcome(cluster.run(["srun", "-N2", "-w", "n1,n2", *JOB]))


def outcome(done):
    # Some lines of srun's own come or do not, as it happens.
    by_chance = ("you told me node", "queued and waiting", "has been allocated resources")
    lines = [
        line for line in without_sonde(done.stderr) if not any(words in line for words in by_chance)
    ]
    stderr = sorted(NUMBERS.sub("N", line) for line in lines)
    return done.returncode, sorted(done.stdout.splitlines()), stderr


def run_job(cluster, *words, **options):
    start = time.monotonic()
    done = cluster.run(["srun", "-N2", "-w", "n1,n2", *LEVEL, *words, *JOB], **options)
    assert time.monotonic() - start < END_BOUND
    return done


def notes(shown):
    return "\n".join(job_of(shown)["notes"])


# --- Something is missing


class Masked:
    """A node whose slurmd sees another file in the place of one of the cluster's."""

    def __init__(self, cluster, node, path, replacement):
        self.cluster, self.node = cluster, node
        # A slurmd killed before it has said that a job is gone leaves its node completing until Slurm
        # asks again, up to two minutes later.
        cluster.settle()
        cluster.node(node, "kill")
        slurmd = shlex.join([*cluster.facts["slurmd"], "-N", node])
        script = f"mount --bind {replacement} {path} && exec {slurmd} >/dev/null 2>&1"
        self.slurmd = cluster.popen(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", script], user="root"
        )
        self.wait_for_service()

    def wait_for_service(self):
        def answers():
            done = self.cluster.run(["srun", "-w", self.node, "--immediate=2", "true"], timeout=20)
            return done.returncode == 0

        self.cluster.wait_for(answers, f"{self.node}'s service", 20)

    def restore(self):
        self.cluster.settle()
        self.slurmd.kill()
        self.slurmd.wait()
        self.cluster.node(self.node, "start")
        self.wait_for_service()


@pytest.fixture
def mask(cluster):
    masked = []

    def make(node, path, text, mode=0o755):
        replacement = cluster.dir / f"mask{len(masked)}"
        replacement.write_text(text)
        replacement.chmod(mode)
        masked.append(Masked(cluster, node, path, replacement))

    yield make
    for one in masked:
        one.restore()


@pytest.mark.parametrize(
    "text, mode, said",
    [
        ("no program", 0o644, "execute {}: Permission denied"),
        ("\x7fELF no program", 0o755, "execute {}: Exec format error"),
        ("#!/bin/sh\nkill -SEGV $$\n", 0o755, None),
    ],
    ids=["not executable", "no program", "crashes at start"],
)
def test_one_node_without_a_daemon(cluster, plain, mask, sonded, text, mode, said):
    mask("n2", SONDED, text, mode)
    done = run_job(cluster)
    assert outcome(done) == plain
    shown = show(cluster, step_id(done.stderr))
    assert [node["host"] for node in job_of(shown)["nodes"]] == ["n1"]
    assert "1 of 2 nodes never reported" in notes(shown)
    assert coverage(shown) < 1
    assert job_of(shown)["state"] == "failed"
    if said:
        assert said.format(sonded) in cluster.log("n2")


def test_one_node_without_the_plugin(cluster, plain, mask):
    mask("n2", cluster.dir / "etc" / "plugstack.conf", "")
    done = run_job(cluster)
    assert outcome(done) == plain
    assert "1 of 2 nodes never reported" in notes(show(cluster, step_id(done.stderr)))


def test_no_node_has_a_daemon(cluster, plain, mask):
    for node in ("n1", "n2"):
        mask(node, SONDED, "no program", 0o644)
    done = run_job(cluster)
    assert outcome(done) == plain
    shown = show(cluster, step_id(done.stderr))
    assert "2 of 2 nodes never reported" in notes(shown) and job_of(shown)["nodes"] == []


@pytest.mark.parametrize(
    "text, mode, said",
    [
        (None, 0, "execute {}: No such file or directory"),
        ("no program", 0o644, "execute {}: Permission denied"),
        ("\x7fELF no program", 0o755, "execute {}: Exec format error"),
        ("#!/bin/sh\nkill -SEGV $$\n", 0o755, "the head ended before the step"),
    ],
    ids=["missing", "not executable", "no program", "crashes at start"],
)
def test_daemon_broken_everywhere(cluster, plain, sonded, text, mode, said):
    sonded.unlink()
    if text is not None:
        sonded.write_text(text)
        sonded.chmod(mode)
    done = run_job(cluster)
    assert outcome(done) == plain
    lines = [line for line in ours(done.stderr) if "watch it with" not in line]
    assert [said.format(sonded) in line for line in lines] == [True], lines


# --- A daemon is lost


def gated_step(cluster, env=None):
    """On two nodes; ends with 7 when the file is there that comes first."""
    gate = cluster.dir / "tmp" / USER / "gate"
    gate.unlink(missing_ok=True)
    script = f"until [ -e {gate} ]; do sleep 0.05; done; exit 7"
    return gate, Step(cluster, ["srun", "-N2", *LEVEL, "bash", "-c", script], env=env)


def test_killed_node_daemon_is_named_and_its_values_stay(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "bash", "-c", "sleep 60; exit 7"])
    live = step.wait_nodes(2)
    (victim,) = daemon("node", step.id, 1)
    os.kill(victim, signal.SIGKILL)
    cluster.wait_for(lambda: "node n2 was lost" in live.get(f"/api/v1/profile?job={step.id}"), "the note")
    (total,) = live.query("sonde_samples_total", aggregator="sum")
    values = list(total["dps"].values())
    assert values == sorted(values), "a counter never falls"
    assert step.process.poll() is None
    cluster.slurm("scancel", step.job)
    code, seconds = step.wait()
    assert seconds < END_BOUND
    shown = step.profile()
    lost = [node["host"] for node in job_of(shown)["nodes"] if node["lost"]]
    assert lost == ["n2"]
    assert "node n2 was lost" in notes(shown) and "stay as it last sent them" in notes(shown)
    assert 0.4 < coverage(shown) < 1
    assert counter(shown, "sonde_samples_total")["last"] >= values[-1]


def test_exit_code_with_a_killed_node_daemon(cluster):
    gate, step = gated_step(cluster)
    step.wait_nodes(2)
    for pid in daemon("node", step.id):
        os.kill(pid, signal.SIGKILL)
    cluster.wait_for(lambda: not daemon("node", step.id), "their end")
    gate.touch()
    code, seconds = step.wait()
    assert code == 7 and seconds < END_BOUND
    shown = step.profile()
    assert job_of(shown)["state"] == "lost", "nobody has seen how the tasks ended"


def test_hanging_node_daemon_is_given_two_seconds(cluster):
    gate, step = gated_step(cluster)
    step.wait_nodes(2)
    (victim,) = daemon("node", step.id, 1)
    os.kill(victim, signal.SIGSTOP)
    gate.touch()
    code, seconds = step.wait()
    assert code == 7 and seconds < END_BOUND
    assert "sonded has not finished" in cluster.log("n2")
    shown = step.profile()
    assert [node["host"] for node in job_of(shown)["nodes"] if node["lost"]] == ["n2"]


def test_a_node_goes_on_for_a_killed_head(cluster):
    gate = cluster.dir / "tmp" / USER / "gate2"
    script = f"echo out; until [ -e {gate} ]; do sleep 0.05; done; exit 7"
    words = ["--telemetry-level=2", "--telemetry-period=10ms", "bash", "-c", script]
    step = Step(cluster, ["srun", "-N2", *words])
    live = step.wait_nodes(2)
    directory = step.live_directory()
    # At least one block of every node lies in the archive: 128 samples and more.
    cluster.wait_for(
        lambda: list(live.query("sonde_samples_total")[0]["dps"].values())[-1] > 2 * 520, "blocks", 30
    )
    (head,) = daemon("head", step.id)
    os.kill(head, signal.SIGKILL)
    (acting,) = cluster.wait_for(
        lambda: [pid for pid in daemon("head", step.id) if pid != head], "an acting head", 5
    )
    assert len(daemon("node", step.id)) == 2 and step.process.poll() is None
    gate.touch()
    code, seconds = step.wait()
    assert (code, step.stdout) == (7, "out\nout\n") and seconds < END_BOUND
    (line,) = [line for line in ours(step.stderr) if "watch it with" not in line]
    assert "the head ended before the step" in line
    cluster.wait_for(lambda: not daemon("head", step.id), "the acting head's end", 5)
    shown = step.profile()
    assert not directory.exists(), "its part is taken in"
    assert job_of(shown)["state"] == "failed" and job_of(shown)["exit_status"] == 7 << 8
    # By Slurm's name of the node: all nodes of this cluster are one machine.
    assert re.search(r"The daemon on n[12] went on as acting head", notes(shown)), notes(shown)
    coverage = job_of(shown)["coverage"]
    # Ticks of 10 ms are more than nodes keep for another head.
    assert coverage["got"] + coverage["skipped"] >= 0.9 * coverage["expected"], coverage
    assert {row["host"] for row in shown["nodes"]} == {"n1", "n2"}
    assert any(row["memory_total_bytes"] for row in shown["nodes"]), "what was sealed is there"


def test_hanging_head_does_not_hold_srun(cluster):
    gate, step = gated_step(cluster)
    step.wait_nodes(2)
    (head,) = daemon("head", step.id)
    os.kill(head, signal.SIGSTOP)
    gate.touch()
    try:
        code, seconds = step.wait()
    finally:
        os.kill(head, signal.SIGCONT)
    assert code == 7 and seconds < END_BOUND
    assert any("has not finished" in line for line in ours(step.stderr))
    cluster.wait_for(lambda: not daemon("head", step.id), "the head's end", 8)
    assert job_of(step.profile())["expected_nodes"] == 2


# --- Tasks of some nodes end early


def test_node_whose_tasks_end_early_leaves_the_rest_complete(cluster):
    gate = cluster.dir / "tmp" / USER / "gate5"
    script = f"until [ -e {gate}.$SLURM_PROCID ]; do sleep 0.05; done"
    step = Step(cluster, ["srun", "-N3", *LEVEL, "bash", "-c", script])
    step.wait_nodes(3)
    gate.with_suffix(".0").touch()
    cluster.wait_for(lambda: len(daemon("node", step.id)) == 2, "the early one's leaving", 5)
    before = counter(step.profile(), "sonde_samples_total")["ticks"]
    cluster.wait_for(
        lambda: counter(step.profile(), "sonde_samples_total")["ticks"] > before + 4, "more ticks"
    )
    gate.with_suffix(".1").touch()
    gate.with_suffix(".2").touch()
    code, _ = step.wait()
    shown = step.profile()
    assert code == 0 and job_of(shown)["state"] == "completed"
    assert not notes_of(shown) and complete(shown)


def test_inner_node_that_ends_early_hands_its_children_over(cluster):
    log_dir = cluster.dir / "tmp" / USER
    cluster.conf(f"fanout = 2\nfabric_after = 50ms\nlog_dir = {log_dir}\n")
    gate = log_dir / "gate3"
    # Whoever registered first is the inner node: each task waits for its own host's gate.
    script = f"until [ -e {gate}.$SLURMD_NODENAME ]; do sleep 0.05; done"
    words = ["--telemetry-level=2", "--telemetry-period=200ms", "bash", "-c", script]
    step = Step(cluster, ["srun", "-N4", *words])

    def links():
        logs = "".join(path.read_text() for path in log_dir.glob(f"sonded.{step.id}.*.log"))
        return re.findall(r"data goes to (the head|node \d+)", logs)

    cluster.wait_for(lambda: links().count("node 0") == 2, "the children's links")
    live = step.wait_nodes(4)
    hosts = [node["host"] for node in job_of(step.profile())["nodes"]]
    (log_dir / f"gate3.{hosts[0]}").touch()
    cluster.wait_for(lambda: len(daemon("node", step.id)) == 3, "the inner node's leaving", 5)

    def ticks_after():
        got = counter(step.profile(), "sonde_samples_total")["ticks"]
        return got

    before = ticks_after()
    cluster.wait_for(lambda: ticks_after() > before + 4, "more ticks of the rest")
    by_host = live.query(
        "sonde_samples_total",
        filters=[{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}],
    )
    # The head answers for the one that has left, from what it stored.
    assert sorted(result["tags"]["host"] for result in by_host) == sorted(hosts)
    for host in hosts[1:]:
        (log_dir / f"gate3.{host}").touch()
    code, _ = step.wait()
    shown = step.profile()
    assert code == 0 and job_of(shown)["state"] == "completed"
    assert not any(node["lost"] for node in job_of(shown)["nodes"])
    assert coverage(shown) >= 0.97
    assert {row["host"] for row in shown["nodes"] if row["memory_total_bytes"]} == set(hosts)


def test_killed_inner_node_does_not_take_its_children_along(cluster):
    log_dir = cluster.dir / "tmp" / USER
    cluster.conf(f"fanout = 2\nfabric_after = 50ms\nlog_dir = {log_dir}\n")
    words = ["--telemetry-level=2", "--telemetry-period=200ms", "sleep", "60"]
    step = Step(cluster, ["srun", "-N4", *words])

    def links():
        logs = "".join(path.read_text() for path in log_dir.glob(f"sonded.{step.id}.*.log"))
        return re.findall(r"data goes to (the head|node \d+)", logs)

    cluster.wait_for(lambda: links().count("node 0") == 2, "the children's links")
    live = step.wait_nodes(4)
    nodes = job_of(step.profile())["nodes"]
    (victim,) = daemon("node", step.id, nodes[0]["node_id"])
    os.kill(victim, signal.SIGKILL)
    cluster.wait_for(lambda: "was lost" in notes(step.profile()), "the note")

    def hosts_now():
        return sorted(
            result["tags"]["host"]
            for result in live.query(
                "sonde_samples_total",
                filters=[{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}],
            )
        )

    rest = sorted(node["host"] for node in nodes[1:])
    cluster.wait_for(lambda: hosts_now() == rest, "answers of the others")
    cluster.slurm("scancel", step.job)
    step.wait()
    shown = step.profile()
    assert [node["host"] for node in job_of(shown)["nodes"] if node["lost"]] == [nodes[0]["host"]]
    total = counter(shown, "sonde_samples_total")
    assert total["last"] <= 4 * (total["max"] + 2), "nothing is counted twice"
    assert coverage(shown) < 1


# --- The archive


@pytest.fixture
def no_archive(cluster):
    """Gives a way to a directory that makes trouble, unmounted in the end."""
    mounted = []

    def mount(options):
        path = cluster.dir / f"trouble{len(mounted)}"
        path.mkdir(exist_ok=True)
        cluster.slurm("mount", "-t", "tmpfs", "-o", options, "none", path)
        mounted.append(path)
        return path

    yield mount
    for path in mounted:
        cluster.slurm("umount", path)
        path.rmdir()


def not_stored(done):
    (line,) = [line for line in done.stderr.splitlines() if "profile is not stored" in line]
    return line


def test_full_archive(cluster, plain, no_archive):
    full = no_archive("size=64k,mode=1777")
    (full / "fill").write_bytes(b"x" * 60_000)
    done = run_job(cluster, env={"SONDE_ARCHIVE": str(full / "archive")})
    assert outcome(done) == plain
    assert "No space left" in not_stored(done)
    assert report_of(done.stderr).startswith("Sonde: ")


def test_archive_that_fills_up_while_the_step_runs(cluster, no_archive):
    full = no_archive("size=400k,mode=1777")
    env = {"SONDE_ARCHIVE": str(full / "archive")}
    gate, step = gated_step(cluster, env)
    cluster.wait_for(lambda: list(full.glob("archive/live/*")), "the live archive")
    with open(full / "fill", "wb", buffering=0) as fill:
        try:
            while True:
                fill.write(b"x" * 4096)
        except OSError:
            pass
    gate.touch()
    code, seconds = step.wait()
    assert code == 7 and seconds < END_BOUND
    assert "Sonde: " in step.stderr and "No space left" in step.stderr


def test_read_only_archive(cluster, plain, no_archive):
    path = no_archive("ro")
    done = run_job(cluster, env={"SONDE_ARCHIVE": str(path / "archive")})
    assert outcome(done) == plain
    assert "Read-only file system" in not_stored(done)


def test_archive_that_is_a_file(cluster, plain):
    path = cluster.dir / "tmp" / USER / "file"
    path.write_text("mine")
    done = run_job(cluster, env={"SONDE_ARCHIVE": str(path)})
    assert outcome(done) == plain
    assert str(path) in not_stored(done) and path.read_text() == "mine"


def test_archive_that_may_not_be_made(cluster, plain):
    done = run_job(cluster, env={"SONDE_ARCHIVE": "/proc/nothing/sonde"})
    assert outcome(done) == plain
    assert "/proc/nothing" in not_stored(done)


# --- The step is ended


def test_cancelled_job(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    cluster.slurm("scancel", step.job)
    _, seconds = step.wait()
    shown = step.profile()
    assert seconds < END_BOUND and job_of(shown)["state"] == "cancelled"
    assert complete(shown) and not notes_of(shown)


def test_cancelled_step(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    cluster.slurm("scancel", step.id)
    _, seconds = step.wait()
    assert seconds < END_BOUND
    shown = step.profile()
    assert job_of(shown)["state"] == "cancelled" and complete(shown)


@pytest.mark.parametrize("name, status", [("KILL", 9), ("SEGV", 11)])
def test_task_killed_by_a_signal(cluster, name, status):
    words = ["srun", "-N1", "bash", "-c", f"ulimit -c 0; kill -{name} $$"]
    plain = outcome(cluster.run(words))
    done = cluster.run([*words[:1], *LEVEL, *words[1:]])
    assert outcome(done) == plain and plain[0] == 128 + status
    job = job_of(show(cluster, step_id(done.stderr)))
    assert job["exit_status"] & 0x7F == status
    assert job["state"] == ("cancelled" if name == "KILL" else "failed")


@pytest.mark.parametrize("signals", [["TERM"], ["INT", "INT"]], ids=["TERM", "INT twice"])
def test_srun_ended_by_a_signal(cluster, signals):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    for name in signals:
        step.process.send_signal(getattr(signal, f"SIG{name}"))
        if len(signals) > 1 and name == signals[0]:
            cluster.wait_for(lambda: "interrupt" in step.stderr, "srun's notice")
            signals = [name]
    _, seconds = step.wait()
    assert seconds < END_BOUND
    assert report_of(step.stderr)
    shown = step.profile()
    assert job_of(shown)["state"] == "cancelled" and complete(shown)


def test_srun_killed(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    step.process.kill()
    step.wait()
    cluster.wait_for(lambda: not daemon("head", step.id), "the head's end", END_BOUND)
    shown = step.profile()
    assert job_of(shown)["state"] == "cancelled" and complete(shown)
    assert len(job_of(shown)["nodes"]) == 2


def test_killed_slurmstepd(cluster):
    step = Step(cluster, ["srun", "-N2", "-w", "n1,n2", *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    for pid in stepds(cluster, "n2"):
        os.kill(pid, signal.SIGKILL)
    cluster.wait_for(lambda: len(daemon("node", step.id)) == 1, "that node's daemon's end", 5)
    cluster.slurm("scancel", step.job)
    _, seconds = step.wait()
    assert seconds < 20
    shown = step.profile()
    assert len(job_of(shown)["nodes"]) == 2
    assert job_of(shown)["state"] in ("cancelled", "lost")


def stepds(cluster, node):
    log = f"{cluster.dir}/log/slurmd.{node}.log"
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/comm", encoding="ascii") as comm:
                if not comm.read().startswith("slurmstepd"):
                    continue
        except OSError:
            continue
        if log in belongings.open_files(entry):
            found.append(int(entry))
    return found


def test_slurmd_killed_and_restarted(cluster):
    gate = cluster.dir / "tmp" / USER / "gate4"
    script = f"until [ -e {gate} ]; do sleep 0.05; done; exit 7"
    step = Step(cluster, ["srun", "-N2", "-w", "n1,n2", *LEVEL, "bash", "-c", script])
    step.wait_nodes(2)
    cluster.node("n2", "kill")
    cluster.node("n2", "start")
    gate.touch()
    code, seconds = step.wait()
    assert code == 7 and seconds < END_BOUND
    shown = step.profile()
    assert job_of(shown)["state"] == "failed" and complete(shown)


def test_time_limit(cluster):
    job = cluster.sbatch("srun -N2 sleep 300", options=["-N2", "-t", "1", *LEVEL])
    cluster.wait_for(lambda: len(daemon("node", f"{job}.0")) == 2, "the step")
    cluster.expire(job)
    assert cluster.wait_job(job, 60) == "TIMEOUT"
    cluster.wait_clean(END_BOUND)
    shown = show(cluster, f"{job}.0")
    assert job_of(shown)["state"] == "timeout" and complete(shown)
    # The script is killed too, unless it has seen its srun fail before.
    assert job_of(show(cluster, f"{job}.batch"))["state"] in ("cancelled", "failed", "timeout")


def test_nodes_stay_in_service(cluster):
    """After all of the above no node is drained."""
    states = cluster.slurm("sinfo", "--noheader", "--Node", "--format=%N %t").splitlines()
    assert not [state for state in states if "drain" in state or "down" in state]
