"""What the plugin starts for which step, what it tells it, and what it leaves alone."""

import os
import pwd
import re
import stat

import pytest
from conftest import OTHER_USER, USER
from plugin_alone import _daemon, cluster, daemon  # noqa: F401

LEVEL = "--telemetry-level=2"


def srun(cluster, *words, **options):
    done = cluster.run(["srun", *words], **options)
    assert done.returncode == 0, done.stderr
    return done


def test_level_0_runs_nothing(cluster, daemon):
    for words in (["-N2", "env"], ["-N2", "--telemetry-level=0", "env"]):
        done = srun(cluster, *words, env={"SONDE_SOCKET": "outer", "SONDE_LEVEL": "4", "SONDE_CHILD_OF": "1.2"})
        assert daemon.records() == []
        assert done.stderr == ""
        assert "SONDE_SOCKET" not in done.stdout and "SONDE_LEVEL" not in done.stdout
        assert "SONDE_CHILD_OF" not in done.stdout, "an orphan of this step would end with another's daemon"


def test_head_and_nodes_are_told_the_step(cluster, daemon):
    done = srun(cluster, "-N2", "-n3", "-J", "wind", LEVEL, "bash", "-c", "echo a\necho b")
    (head,) = daemon.records("head")
    first, second = daemon.records("node")
    step = f"{head.launch['job']}.{head.launch['step']}"
    assert done.stderr.splitlines() == [
        f"sonde: telemetry level 2 for step {step}; watch it with: sonde url {step}",
        f"report of {step}",
    ]
    for record in (head, first, second):
        launch = record.launch
        assert launch["job_name"] == "wind"
        assert launch["user"] == USER and launch["uid"] == str(pwd.getpwnam(USER).pw_uid)
        assert (launch["nodes"], launch["tasks"], launch["job_nodes"]) == ("2", "3", "2")
        assert launch["command"] == "bash -c echo a echo b"
        assert launch["partition"] == "test" and launch["cluster"].startswith("sonde")
        assert launch["home"] == launch["workdir"] == str(cluster.home())
        assert launch["config"] == f"{cluster.dir}/sonde.conf"
        assert launch["key"] == head.launch["key"] and len(launch["key"]) == 64
        assert record.itself["argv"][1:] == [f"--{launch['role']}", step]
    assert [(r.launch["host"], r.launch["node_id"]) for r in (first, second)] == [
        ("n1", "0"),
        ("n2", "1"),
    ]
    assert first.launch["head_host"] == "127.0.0.1"
    assert int(first.launch["head_port"]) > 0


def test_every_step_has_a_key_of_its_own(cluster, daemon):
    srun(cluster, LEVEL, "true")
    srun(cluster, LEVEL, "true")
    assert len({record.launch["key"] for record in daemon.records("head")}) == 2


@pytest.mark.parametrize("export", ["--export=ALL", "--export=NONE", "--export=NIL"])
def test_tasks_find_their_daemon_whatever_the_export_mode(cluster, daemon, export):
    done = srun(cluster, "-N2", LEVEL, export, "/usr/bin/env")
    sockets = [line[13:] for line in done.stdout.splitlines() if line.startswith("SONDE_SOCKET=")]
    levels = [line for line in done.stdout.splitlines() if line.startswith("SONDE_LEVEL=")]
    assert levels == ["SONDE_LEVEL=2"] * 2
    assert sorted(sockets) == sorted(r.launch["socket"] for r in daemon.records("node"))


def test_socket_cannot_be_guessed(cluster, daemon):
    srun(cluster, "-N1", LEVEL, "true")
    srun(cluster, "-N1", LEVEL, "true")
    uid = pwd.getpwnam(USER).pw_uid
    names = [record.launch["socket"] for record in daemon.records("node")]
    for name, record in zip(names, daemon.records("node")):
        prefix = f"sonde/{uid}/{record.launch['job']}.0.0."
        assert name.startswith(prefix) and len(name) == len(prefix) + 16
    assert names[0][-16:] != names[1][-16:]


@pytest.mark.parametrize("user", [USER, OTHER_USER])
def test_daemons_are_the_user_and_hold_nothing_else(cluster, daemon, user):
    srun(cluster, LEVEL, "true", user=user)
    account = pwd.getpwnam(user)
    groups = sorted(os.getgrouplist(user, account.pw_gid))
    for record in daemon.wait_records(2):
        itself = record.itself
        assert itself["uids"] == [str(account.pw_uid)] * 4
        assert itself["gids"] == [str(account.pw_gid)] * 4
        assert sorted(map(int, itself["groups"])) == groups
        assert int(itself["caps"], 16) == 0
        assert int(itself["blocked"], 16) == 0
        assert itself["sid"] == itself["pid"] and itself["cwd"] == "/"
        assert itself["oom"] == 1000 and itself["umask"] == "0077"
        fds = itself["fds"]
        assert [fds.pop(fd) for fd in "01"] == ["/dev/null"] * 2
        assert fds.pop("2").startswith("socket:")
        assert sorted(fds) == (["3", "4"] if record.launch["role"] == "head" else ["3", "5", "6"])
        assert all(target.startswith("socket:") for target in fds.values())
        secrets = str(itself["env"]) + str(itself["argv"])
        assert record.launch["key"] not in secrets


def test_daemons_get_their_own_variables_and_not_the_programs(cluster, daemon):
    env = {"LD_PRELOAD": "", "SONDE_ARCHIVE": "/some/where", "FI_PROVIDER": "tcp", "OMP_X": "1"}
    srun(cluster, LEVEL, "true", env=env)
    commands = os.path.dirname(os.path.realpath(cluster.program("srun")))
    for record in daemon.wait_records(2):
        assert record.itself["env"]["PATH"] == f"{commands}:/usr/sbin:/usr/bin:/sbin:/bin"
        assert record.itself["env"]["FI_PROVIDER"] == "tcp"
        assert record.launch["archive"] == "/some/where"
        assert not {"LD_PRELOAD", "OMP_X", "SONDE_SOCKET"} & record.itself["env"].keys()


def test_daemon_is_told_of_every_task(cluster, daemon):
    done = srun(cluster, "-N2", "-n4", LEVEL, "bash", "-c", 'echo $SLURM_PROCID $$')
    pids = dict(line.split() for line in done.stdout.splitlines())
    assert len(pids) == 4
    seen = {}
    for record in daemon.records("node"):
        assert [task["local"] for task in record.all("task")] == ["0", "1"]
        assert [task["rank"] for task in record.all("exit")] != []
        seen.update({task["rank"]: task["pid"] for task in record.all("task")})
        assert not any("perf" in task for task in record.all("task"))
    assert seen == pids


def test_end_of_a_task_carries_its_wait_status(cluster, daemon):
    cluster.run(["srun", "-n2", LEVEL, "bash", "-c", "(( SLURM_PROCID == 0 )) && exit 3; kill -9 $$"])
    ends = {end["rank"]: int(end["status"]) for r in daemon.records("node") for end in r.all("exit")}
    assert ends["0"] == 3 << 8
    assert ends["1"] & 0x7F == 9


def test_head_outlives_the_nodes_and_reports_after_all_output(cluster, daemon):
    done = srun(cluster, "-N2", LEVEL, "bash", "-c", "echo out >&2", env={"SONDE_STANDIN": "slow"})
    assert done.stderr.splitlines()[-1].startswith("report of")
    (head,) = daemon.records("head")
    for node in daemon.records("node"):
        assert node.has("end"), "the node's daemon was given the time to finish"
        assert node.all("end")[0]["at"] < head.all("finish")[0]["at"]


def test_node_is_not_left_before_its_daemon_is_gone(cluster, daemon):
    # Slurm could not remove the job's cgroup then.
    srun(cluster, "-N2", LEVEL, "true", env={"SONDE_STANDIN": "linger"})
    assert [record.has("end") for record in daemon.records("node")] == [True, True]


def test_counters_are_opened_for_the_daemon(cluster, daemon):
    code = "import mmap; m = mmap.mmap(-1, 5000 * 4096)\nfor i in range(5000): m[i * 4096] = 1"
    program = f"import os\nif os.fork() == 0:\n exec({code!r})\nelse:\n os.wait()"
    srun(cluster, "--telemetry-level=3", "/usr/bin/python3", "-c", program)
    (node,) = daemon.records("node")
    (task,) = node.all("task")
    results = task["perf"].split(",")
    # A group of two software events opens; a tracepoint is not a task's own affair.
    assert results[:2] == ["0", "0"] and results[2] == "13"
    assert task["fds"] == results.count("0")
    (end,) = node.all("exit")
    in_group, enabled, running, faults, switches = end["counters"][0]
    assert in_group == 2 and 0 < running <= enabled
    assert faults >= 5000 and switches >= 1, "the child and the kernel's side count too"


def test_batch_step_is_solo_and_its_steps_are_not(cluster, daemon):
    job = cluster.sbatch("env\nsrun -N1 env\nsrun --telemetry-level=0 env", options=["-N2", LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    (solo,) = daemon.wait_records(1, "solo", kind="end")
    assert solo.launch["step"] == "batch" and solo.launch["host"] == "n1"
    assert (solo.launch["nodes"], solo.launch["job_nodes"]) == ("1", "2")
    assert len(solo.launch["key"]) == 64 and "head_port" not in solo.launch
    assert len(solo.all("task")) == 1 and len(solo.all("exit")) == 1
    (node,) = daemon.records("node")
    lines = (cluster.home() / f"slurm-{job}.out").read_text().splitlines()
    sockets = [line[13:] for line in lines if line.startswith("SONDE_SOCKET=")]
    # The batch script, the watched step, and nothing in the step at level 0.
    assert sockets == [solo.launch["socket"], node.launch["socket"]]
    assert node.launch["key"] != solo.launch["key"]


def test_batch_step_is_left_alone_where_configured(cluster, daemon):
    cluster.conf("monitor_batch = no\nfanout = 4\n")
    job = cluster.sbatch("srun -N1 true", options=[LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    assert [record.launch["role"] for record in daemon.records()] == ["head", "node"]


def test_steps_are_left_alone_where_configured(cluster, daemon):
    cluster.conf("monitor_steps = no\n")
    done = srun(cluster, LEVEL, "hostname")
    assert daemon.records() == []
    assert "monitor_steps" in done.stderr


def test_wrong_value_in_sonde_conf_is_told_and_harmless(cluster, daemon):
    cluster.conf("monitor_steps = perhaps\n")
    done = srun(cluster, LEVEL, "hostname")
    assert f"{cluster.dir}/sonde.conf:1: monitor_steps=perhaps: expected yes or no" in done.stderr
    assert len(daemon.records()) == 2
    assert srun(cluster, "hostname").stderr == "", "a step without telemetry need not know"


def test_report_can_be_switched_off(cluster, daemon):
    cluster.conf("report = off\n")
    done = srun(cluster, LEVEL, "true", env={"SONDE_REPORT": None})
    assert "watch it" not in done.stderr


def test_port_range_is_honoured(cluster, daemon):
    cluster.conf("port_range = 31000-31040\n")
    srun(cluster, LEVEL, "true")
    (node,) = daemon.records("node")
    assert 31000 <= int(node.launch["head_port"]) <= 31040


def test_srun_port_range_of_slurm_conf_is_honoured(make_cluster):
    from plugin_alone import PLUGSTACK, Daemon

    other = make_cluster(plugstack=PLUGSTACK, nodes=1, slurm_conf=["SrunPortRange=31100-31140"])
    standin = Daemon(other)
    srun(other, LEVEL, "true")
    (node,) = standin.records("node")
    assert 31100 <= int(node.launch["head_port"]) <= 31140


def test_export_none_batch_script_still_has_watched_steps(cluster, daemon):
    script = f"export SLURM_CONF={cluster.dir}/etc/slurm.conf\n{cluster.program('srun')} -N1 /bin/true"
    job = cluster.sbatch(script, options=[LEVEL, "--export=NONE"], user=OTHER_USER)
    assert cluster.wait_job(job) == "COMPLETED"
    assert {"head", "node"} <= {record.launch["role"] for record in daemon.records()}


def test_heterogeneous_step_has_one_head(cluster, daemon):
    srun(cluster, "-N1", LEVEL, "true", ":", "-N2", "true")
    (head,) = daemon.records("head")
    nodes = daemon.records("node")
    assert len(nodes) == 3
    assert (head.launch["nodes"], head.launch["tasks"]) == ("3", "3")
    assert {node.launch["key"] for node in nodes} == {head.launch["key"]}
    jobs = {node.launch["job"] for node in nodes}
    assert len(jobs) == 2
    leader = min(jobs, key=int)
    assert {node.launch["het_job"] for node in nodes} == {leader}
    assert head.launch["job"] == leader


def test_steps_of_some_components_are_named_by_the_leader(cluster, daemon):
    steps = "; ".join(f"srun --het-group={g} {LEVEL} true" for g in ("1", "1,2", "0"))
    done = cluster.run(["salloc", "-N1", ":", "-N1", ":", "-N1", "bash", "-c", steps])
    assert done.returncode == 0, done.stderr
    leader = re.search(r"Granted job allocation (\d+)", done.stderr)[1]
    heads = [(h.launch["job"], h.launch["step"]) for h in daemon.records("head")]
    assert sorted(heads) == [(leader, step) for step in "012"]


def test_what_another_job_left_in_the_environment_names_nothing(cluster, daemon):
    srun(cluster, "-N1", LEVEL, "true", env={"SLURM_JOB_ID_HET_GROUP_0": "77"})
    (head,) = daemon.records("head")
    (node,) = daemon.records("node")
    assert head.launch["job"] == node.launch["job"] != "77"


def test_array_tasks_are_named(cluster, daemon):
    job = cluster.sbatch("srun -N1 true", options=[LEVEL, "--array=3-4"])
    records = daemon.wait_records(6, kind="end")
    found = {(r.launch["array_job"], r.launch["array_task"]) for r in records}
    assert found == {(str(job), "3"), (str(job), "4")}


def test_overlapping_steps_have_their_own_daemons(cluster, daemon):
    script = "srun --overlap -N1 --telemetry-level=1 sleep 0.3 &\nsrun --overlap -N1 true &\nwait"
    job = cluster.sbatch(script, options=["-N1", LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    nodes = daemon.records("node", step=f"{job}.")
    levels = sorted(node.launch["level"] for node in nodes)
    assert levels == ["1", "2"]


def test_multi_prog(cluster, daemon):
    path = cluster.home() / "multi.conf"
    path.write_text("0 /bin/true\n1 /bin/echo one\n")
    path.chmod(0o644)
    done = srun(cluster, "-n2", LEVEL, "--multi-prog", str(path))
    assert done.stdout == "one\n"
    assert sum(len(record.all("exit")) for record in daemon.records("node")) == 2


def test_srun_inside_a_step_has_a_head_of_its_own(cluster, daemon):
    srun(cluster, "-N1", "-n1", "-c2", LEVEL, "srun", "--overlap", "-N1", LEVEL, "true")
    outer, inner = sorted(daemon.records("head"), key=lambda r: int(r.launch["step"]))
    assert outer.launch["key"] != inner.launch["key"]
    for node in daemon.records("node"):
        head = inner if node.launch["step"] == inner.launch["step"] else outer
        assert node.launch["key"] == head.launch["key"]


def test_extern_step_has_no_daemon(make_cluster):
    from plugin_alone import PLUGSTACK, Daemon

    other = make_cluster(plugstack=PLUGSTACK, nodes=1, slurm_conf=["PrologFlags=Contain"])
    standin = Daemon(other)
    job = other.sbatch("srun -N1 true", options=[LEVEL])
    assert other.wait_job(job) == "COMPLETED"
    assert f"[{job}.extern]" in other.log("n1")
    assert [r.launch["role"] for r in standin.records()] == ["head", "node", "solo"]
    standin.forget()
    srun(other, LEVEL, "true")
    assert [r.launch["role"] for r in standin.records()] == ["head", "node"]


@pytest.mark.parametrize("watched", [False, True])
def test_interactive_step_is_solo_where_configured(make_cluster, watched):
    from plugin_alone import PLUGSTACK, Daemon

    other = make_cluster(
        plugstack=PLUGSTACK, nodes=1, slurm_conf=["LaunchParameters=use_interactive_step"]
    )
    standin = Daemon(other)
    other.conf(f"monitor_interactive = {'yes' if watched else 'no'}\n")
    done = other.run(["salloc", LEVEL], input="exit 0\n")
    assert done.returncode == 0, done.stderr
    found = [(r.launch["role"], r.launch["step"]) for r in standin.records()]
    assert found == ([("solo", "interactive")] if watched else [])


def test_key_is_not_shown_to_others(cluster, daemon):
    # srun's own environment holds it, which only its user can read.
    child = cluster.popen(["srun", "-N1", LEVEL, "sleep", "60"])
    (head,) = daemon.wait_records(1, "head")
    mode = os.stat(f"/proc/{head.itself['pid']}/environ").st_mode
    assert not mode & (stat.S_IRGRP | stat.S_IROTH)
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                assert head.launch["key"].encode() not in file.read()
        except (OSError, ValueError):
            continue
    cluster.slurm("scancel", head.launch["job"])
    child.wait(timeout=15)
