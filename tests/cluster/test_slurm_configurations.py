"""Telemetry where Slurm is configured otherwise: tasks in cgroups, bound to processors, in private
mount namespaces, without MPI."""

import contextlib
import pathlib
import re
import tempfile

import pytest
from conftest import PLUGIN, SONDE, USER
from telemetry import (
    END_BOUND,
    LEVEL,
    Step,
    build_counting,
    complete,
    counter,
    coverage,
    job_of,
    notes_of,
    show,
    step_id,
)

FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


def ended(cluster):
    cluster.cancel_all()
    cluster.wait_clean()


# --- Tasks with a mount namespace of their own, bound to processors


@pytest.fixture(scope="module")
def contained(make_cluster):
    """A cluster whose jobs have private /tmp and /dev/shm; Slurm wants its base outside of them."""
    running = make_cluster(
        nodes=2,
        directory=tempfile.mkdtemp(prefix="sonde-cluster.", dir="/var/tmp"),
        slurm_conf=[
            "JobContainerType=job_container/tmpfs",
            "PrologFlags=Contain",
            "TaskPlugin=task/affinity",
            "HealthCheckProgram=@DIR@/health",
            "HealthCheckInterval=2",
        ],
        etc=["job_container.conf=AutoBasePath=true\nBasePath=@DIR@/containers"],
    )
    running.conf("")
    return running


@pytest.fixture(scope="module")
def counting(contained):
    return build_counting(contained.dir)


def test_application_in_a_container_reaches_its_daemon(contained, counting):
    script = f"touch /tmp/mine /dev/shm/mine; {counting} 21 300000; ls /tmp /dev/shm"
    done = contained.run(["srun", "-N2", *LEVEL, "bash", "-c", script])
    assert done.returncode == 0
    assert "sonde" not in done.stdout and "mine" in done.stdout, "a /tmp of the job's own"
    shown = show(contained, step_id(done.stderr))
    assert counter(shown, "work_done_total")["last"] == 42
    assert complete(shown) and not notes_of(shown)
    ended(contained)


def test_quick_doctor_knows_which_slurm_has_started_it(contained):
    """Slurm gives its health check no PATH."""
    told, script = contained.dir / "told", contained.dir / "health"
    script.write_text(
        f"#!/bin/sh\nPATH=/nonexistent SONDE_PLUGIN={PLUGIN} {SONDE} --config {contained.dir}/sonde.conf doctor --quick >{told}.$$\n"
        f"/bin/mv {told}.$$ {told}\n"
    )
    script.chmod(0o755)
    contained.wait_for(told.exists, "a health check", 30)
    script.unlink()
    assert told.read_text().startswith("sonde: healthy"), told.read_text()


def test_batch_script_in_a_container_is_watched(contained, counting):
    job = contained.sbatch(f"{counting} 5 300000", options=["-N1", *LEVEL])
    assert contained.wait_job(job) == "COMPLETED"
    shown = show(contained, f"{job}.batch")
    assert counter(shown, "work_done_total")["last"] == 5
    assert job_of(shown)["state"] == "completed"
    ended(contained)


@pytest.mark.parametrize("mpi", ["none", "pmi2"])
def test_tasks_are_bound_as_without_telemetry(contained, mpi):
    words = ["-N2", "-n2", "-c1", f"--mpi={mpi}", "--cpu-bind=cores", "--label"]
    command = ["grep", "Cpus_allowed_list", "/proc/self/status"]
    plain = contained.run(["srun", *words, *command])
    done = contained.run(["srun", *words, *LEVEL, *command])
    assert done.returncode == plain.returncode == 0
    assert sorted(done.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert len(done.stdout.splitlines()) == 2 and "-" not in done.stdout, "one processor each"
    shown = show(contained, step_id(done.stderr))
    assert job_of(shown)["state"] == "completed" and complete(shown)
    ended(contained)


# --- Tasks in cgroups


@pytest.fixture(scope="module")
def cgroups(make_cluster):
    if not FREEZER.is_dir():
        pytest.skip("no freezer of cgroup v1 on this machine")
    etc = "cgroup.conf=CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup"
    running = make_cluster(nodes=2, slurm_conf=["ProctrackType=proctrack/cgroup"], etc=[etc])
    running.conf("")
    yield running
    running.stop()
    for node in running.nodes:
        # Not if another cluster on this machine has jobs in it.
        with contextlib.suppress(OSError):
            (FREEZER / f"slurm_{node}").rmdir()


def of_job(job):
    return [str(path) for path in FREEZER.glob(f"slurm_*/uid_*/job_{job}")]


def test_cgroup_of_a_watched_job_goes_with_it(cgroups):
    done = cgroups.run(["srun", "-N2", *LEVEL, "bash", "-c", "cat /proc/self/cgroup; sleep 0.3"])
    step = step_id(done.stderr)
    job = step.split(".")[0]
    assert done.returncode == 0 and done.stdout.count(f"/job_{job}/step_0") == 2
    shown = show(cgroups, step)
    assert job_of(shown)["state"] == "completed" and complete(shown)
    cgroups.wait_for(lambda: not of_job(job), "the end of its cgroups")
    ended(cgroups)


def test_cancelled_step_in_cgroups_keeps_its_profile(cgroups):
    step = Step(cgroups, ["srun", "-N2", *LEVEL, "sleep", "60"])
    step.wait_nodes(2)
    assert len(of_job(step.job)) == 2
    cgroups.slurm("scancel", step.id)
    _, seconds = step.wait()
    assert seconds < END_BOUND
    shown = step.profile()
    assert job_of(shown)["state"] == "cancelled" and coverage(shown) > 0.9
    cgroups.wait_for(lambda: not of_job(step.job), "the end of its cgroups")
    ended(cgroups)


# --- Switches


@pytest.fixture(scope="module")
def switched(make_cluster):
    """Four nodes under two switches, alternately."""
    return make_cluster(
        nodes=4,
        slurm_conf=["TopologyPlugin=topology/tree"],
        etc=[
            "topology.conf=SwitchName=left Nodes=n1,n3\nSwitchName=right Nodes=n2,n4\n"
            "SwitchName=top Switches=left,right"
        ],
    )


def test_nodes_under_one_switch_hang_under_one_of_them(switched):
    log_dir = switched.dir / "tmp" / USER
    switched.conf(f"fanout = 2\nfabric_after = 50ms\nlog_dir = {log_dir}\nlog_level = debug\n")
    step = Step(switched, ["srun", "-N4", *LEVEL, "sleep", "60"])

    def parents():
        """Host -> the host of its parent, or "head", once all have one."""
        logs = {name: log_dir / f"sonded.{step.id}.{name}.log" for name in ("n1", "n2", "n3", "n4")}
        texts = {name: path.read_text() for name, path in logs.items() if path.exists()}
        hosts, found = {}, {}
        for name, text in texts.items():
            if mine := re.search(r"registered as node (\d+)", text):
                hosts[mine.group(1)] = name
        for name, text in texts.items():
            if parent := re.search(r"data goes to (?:the (head)|node (\d+))", text):
                found[name] = parent.group(1) or hosts.get(parent.group(2))
        return found if len(found) == 4 and all(found.values()) else None

    tree = switched.wait_for(parents, "the tree of four nodes", 20)
    switched.slurm("scancel", step.job)
    step.wait()
    for pair in (("n1", "n3"), ("n2", "n4")):
        places = {tree[pair[0]], tree[pair[1]]}
        assert "head" in places and places & set(pair), tree
    ended(switched)
