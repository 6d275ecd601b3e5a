"""What a site decides in sonde.conf: who is watched unasked, what a step may get at most, and that no
user changes that."""

import json

import pytest
from conftest import OTHER_USER, SONDE, SONDED, USER
from plugin_alone import PLUGSTACK, Daemon, daemon  # noqa: F401

OPTION = "_SLURM_SPANK_OPTION_sonde_telemetry_"


@pytest.fixture(scope="module")
def cluster(make_cluster):
    bench = "PartitionName=bench Nodes=ALL MaxTime=INFINITE State=UP"
    return make_cluster(plugstack=PLUGSTACK, slurm_conf=[bench])


@pytest.fixture(scope="module")
def _daemon(cluster):
    return Daemon(cluster)


def srun(cluster, *words, **options):
    done = cluster.run(["srun", *words], **options)
    assert done.returncode == 0, done.stderr
    return done


def ours(stderr):
    return [line for line in stderr.splitlines() if "sonde:" in line and "watch it with" not in line]


def got(records):
    """Level and period in seconds that daemons were told."""
    return [(int(r.launch["level"]), int(r.launch["period"]) / 1e9) for r in records]


# --- Limits


def everything(level, period):
    """All that a user can set by hand, as words before a command."""
    values = {"level": level, "period": period, "events": "cycles"}
    sonde = {"MAX_LEVEL": "4", "MIN_PERIOD": "10ms", "ALLOW_EVENTS": "all", "DEFAULT_LEVEL": "4"}
    sonde |= {"CONFIG": "/dev/null", "CONF": "/dev/null"}
    variables = {f"SONDE_{key}": value for key, value in sonde.items()}
    for key, value in values.items():
        for name in (f"SLURM_TELEMETRY_{key.upper()}", f"SLURM_SPANK_{OPTION}{key}", OPTION + key):
            variables[name] = value
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def test_limits_of_a_user_hold_whatever_the_user_sets(cluster, daemon):
    conf = cluster.conf(f"max_level = 4\n[user = {USER}]\nmax_level = 1\nmin_period = 2s\n")
    env = everything("4", "10ms")
    script = "srun -N1 true\nsrun -N1 --telemetry-level=3 --telemetry-period=20ms true\n"
    job = cluster.run([*env, "sbatch", "--parsable"], input=f"#!/bin/bash\n{script}")
    assert cluster.wait_job(int(job.stdout)) == "COMPLETED"
    assert got(daemon.records()) == [(1, 2)] * 5
    daemon.forget()
    done = cluster.run([*env, "srun", "-N2", "--telemetry-level=4", "true"])
    assert done.returncode == 0 and got(daemon.records()) == [(1, 2)] * 3
    assert ours(done.stderr) == [
        f"sonde: --telemetry-level=4: at most 1 here (max_level, {conf}:3); watched at 1",
        f"sonde: --telemetry-period=10ms: at least 2s here (min_period, {conf}:4); sampled every 2s",
    ]
    daemon.forget()
    cluster.run([*env, "srun", "-N1", "--telemetry-level=4", "true"], user=OTHER_USER)
    assert got(daemon.records()) == [(4, 0.01)] * 2


@pytest.mark.parametrize("program", ["sbatch", "salloc"])
def test_a_limit_is_told_at_submission_unless_the_allocation_decides(cluster, daemon, program):
    last = {"sbatch": ["--parsable", "--wrap=true"], "salloc": ["true"]}[program]

    def submit():
        done = cluster.run([program, "-N1", "--telemetry-level=4", *last])
        assert done.returncode == 0
        if program == "sbatch":
            assert cluster.wait_job(int(done.stdout)) == "COMPLETED"
        return ours(done.stderr)

    conf = cluster.conf(f"max_level = 3\n[user = {USER}]\nmax_level = 2\n")
    reason = f"at most 2 here (max_level, {conf}:3); watched at 2"
    assert submit() == [f"sonde: --telemetry-level=4: {reason}"]
    cluster.conf("max_level = 3\n[partition = bench]\nmax_level = 2\n")
    assert submit() == []


def own_files(cluster):
    """SLURM_CONF for a user's srun with a plugin and files of the user's own."""
    home = cluster.home()
    etc = cluster.dir / "etc"
    (home / "sonde.conf").write_text("")
    plugstack = (etc / "plugstack.conf").read_text()
    (home / "plugstack.conf").write_text(
        plugstack.replace(f"config={cluster.dir}/sonde.conf", f"config={home}/sonde.conf")
    )
    slurm_conf = (etc / "slurm.conf").read_text().replace(f"{etc}/plugstack", f"{home}/plugstack")
    (home / "slurm.conf").write_text(slurm_conf)
    return f"SLURM_CONF={home}/slurm.conf"


def test_a_node_decides_by_its_own_file(cluster, daemon):
    cluster.conf("max_level = 2\n")
    done = cluster.run(["env", own_files(cluster), "srun", "-N2", "--telemetry-level=4", "true"])
    assert done.returncode == 0, done.stderr
    assert ours(done.stderr) == []
    assert [r.launch["level"] for r in daemon.records("head")] == ["4"]
    nodes = daemon.records("node")
    assert [r.launch["level"] for r in nodes] == ["2", "2"]
    assert nodes[0].launch["note"] == (
        f"--telemetry-level=4: at most 2 here (max_level, {cluster.dir}/sonde.conf:1); watched at 2"
    )


def test_where_the_sites_file_is_missing_nothing_is_watched(cluster, daemon):
    """Not even by a srun that has a file of the user's own."""
    words = ["srun", "-N2", "--telemetry-level=4", "true"]
    file = cluster.dir / "sonde.conf"
    own = own_files(cluster)
    file.unlink()
    missing = f"open {file}: No such file or directory (config= in plugstack.conf)"
    done = cluster.run(words)
    assert done.returncode == 0 and daemon.records() == []
    assert len(ours(done.stderr)) == 1 and missing in done.stderr
    assert cluster.run(["env", own, *words]).returncode == 0
    assert daemon.records("node") == []
    assert all(missing in cluster.log(node) for node in ("n1", "n2"))


@pytest.mark.parametrize("export", ["ALL", "NONE", "NIL"])
def test_a_limit_by_partition(cluster, daemon, export):
    cluster.conf("max_level = 1\n[partition = ben*]\nmax_level = 3\n")
    words = ["-N1", f"--export={export}", "--telemetry-level=4", "/bin/true"]
    done = srun(cluster, "-ptest", *words)
    assert got(daemon.records()) == [(1, 1)] * 2
    assert "at most 1 here" in ours(done.stderr)[0]
    daemon.forget()
    done = srun(cluster, "-pbench", *words)
    assert got(daemon.records()) == [(3, 1)] * 2
    assert "at most 3 here" in ours(done.stderr)[0] and "sonde.conf:3" in ours(done.stderr)[0]


def test_a_batch_script_cannot_name_another_partition(cluster, daemon):
    cluster.conf("max_level = 1\n[partition = bench]\nmax_level = 3\n")
    job = cluster.sbatch(
        "true", options=["-ptest", "--telemetry-level=4", "--export=ALL,SLURM_JOB_PARTITION=bench"]
    )
    assert cluster.wait_job(job) == "COMPLETED"
    assert got(daemon.records("solo")) == [(1, 1)]


def test_a_group_of_the_user(cluster, daemon):
    # Each user has a group of the same name.
    cluster.conf(f"max_level = 1\n[group = {OTHER_USER}]\nmax_level = 2\n")
    for user, level in ((USER, 1), (OTHER_USER, 2)):
        srun(cluster, "-N1", "--telemetry-level=2", "true", user=user)
        assert got(daemon.records()) == [(level, 1)] * 2
        daemon.forget()


def test_events_that_are_not_allowed_are_left_out(cluster, daemon):
    conf = cluster.conf("allow_events = instructions, cache-*\n")
    events = "--telemetry-events=cycles,cache-misses,instructions:u"
    done = srun(cluster, "-N1", "--telemetry-level=3", events, "true")
    assert [r.launch["events"] for r in daemon.records()] == ["cache-misses,instructions:u"] * 2
    (line,) = ours(done.stderr)
    reason = f"not allowed here (allow_events, {conf}:1); left out"
    assert line == f"sonde: --telemetry-events: cycles: {reason}"


def test_level_0_is_a_limit_too(cluster, daemon):
    conf = cluster.conf("max_level = 0\n")
    done = srun(cluster, "-N2", "--telemetry-level=2", "true")
    reason = f"at most 0 here (max_level, {conf}:1); not watched"
    assert done.stderr == f"sonde: --telemetry-level=2: {reason}\n"
    assert daemon.records() == []


def test_what_is_within_the_limits_is_not_told(cluster, daemon):
    cluster.conf("max_level = 2\nmin_period = 100ms\nallow_events = none\n")
    done = srun(cluster, "-N1", "--telemetry-level=2", "--telemetry-period=100ms", "true")
    assert got(daemon.records()) == [(2, 0.1)] * 2
    assert ours(done.stderr) == []


def test_a_wrong_line_is_told_and_takes_nothing_that_the_site_forbids(cluster, daemon):
    """For whom the lines below it are meant is not known: a limit there holds for all."""
    conf = cluster.conf("max_level = 2\n[users = alice]\nmax_level = 1\n[users = bob]\nmax_level = 4\n")
    done = srun(cluster, "-N1", "--telemetry-level=3", "true")
    assert got(daemon.records()) == [(1, 1)] * 2
    expected = f"{conf}:2: unknown condition 'users', expected user, group, account"
    assert len([line for line in ours(done.stderr) if expected in line]) == 1
    for command in ("ls", "doctor"):
        asked = cluster.run([SONDE, "--config", conf, command])
        assert expected in asked.stderr + asked.stdout


def test_what_the_site_does_not_watch_no_variable_watches(cluster, daemon):
    cluster.conf("monitor_steps = no\nmonitor_batch = no\n")
    env = {f"SONDE_MONITOR_{kind}": "yes" for kind in ("STEPS", "BATCH", "INTERACTIVE")}
    script = "#!/bin/bash\n#SBATCH --telemetry-level=1\nsrun -N1 true\n"
    job = cluster.run(["sbatch", "--parsable"], input=script, env=env)
    assert cluster.wait_job(int(job.stdout)) == "COMPLETED"
    assert daemon.records() == []
    cluster.conf("monitor_batch = yes\n")
    env["SONDE_MONITOR_STEPS"] = "no"
    job = cluster.run(["sbatch", "--parsable"], input=script, env=env)
    assert cluster.wait_job(int(job.stdout)) == "COMPLETED"
    assert [record.launch["role"] for record in daemon.records()] == ["solo"]


# --- Telemetry for all

PROGRAM = "echo out; echo err >&2; exit 3"


def test_the_default_level_watches_what_did_not_ask_and_shows_nothing(cluster, daemon):
    words = ["srun", "-N2", "-l", "bash", "-c", PROGRAM]
    plain = cluster.run(words)
    assert plain.returncode == 3 and daemon.records() == []
    cluster.conf("default_level = 2\nmin_period = 5s\n")
    watched = cluster.run(words, env={"SONDE_REPORT": "full"})
    assert got(daemon.records()) == [(2, 5)] * 3
    assert watched.returncode == 3
    # Nor does the head make a report that nobody sees.
    (head,) = daemon.records("head")
    assert head.itself["env"]["SONDE_REPORT"] == "off"
    for now, then in ((watched.stdout, plain.stdout), (watched.stderr, plain.stderr)):
        job = [int(r.launch["job"]) for r in daemon.records()][0]
        assert sorted(now.replace(str(job), "J").splitlines()) == sorted(
            then.replace(str(job - 1), "J").splitlines()
        )


@pytest.mark.parametrize("trouble", ["die", "crash", "flood", "no daemon", "wrong line"])
def test_the_default_level_shows_no_trouble_either(cluster, daemon, trouble):
    cluster.conf("default_level = 1\n" + ("report = loud\n" if trouble == "wrong line" else ""))
    if trouble == "no daemon":
        daemon.path.chmod(0o644)
    done = srun(cluster, "-N2", "echo", "out", env={"SONDE_STANDIN": trouble})
    assert (done.stdout, done.stderr) == ("out\nout\n", "")


def test_the_default_level_watches_batch_scripts_and_their_steps(cluster, daemon):
    cluster.conf("default_level = 1\n")
    # Slurm 22.05 tells srun that the tasks have ended before it tells slurmctld that the step has, watched or
    # not. A step that shares nothing with the one before may find the node busy, and srun prints that.
    job = cluster.sbatch("srun -N1 --overlap echo step\nsrun -N1 --overlap --telemetry-level=2 true\necho done")
    assert cluster.wait_job(job) == "COMPLETED"
    levels = {r.launch["step"]: r.launch["level"] for r in daemon.records()}
    assert levels == {"batch": "1", "0": "1", "1": "2"}
    output = (cluster.home() / f"slurm-{job}.out").read_text()
    assert output.startswith("step\nsonde: telemetry level 2 for step")
    assert output.endswith("\ndone\n") and output.count("sonde:") == 1


@pytest.mark.parametrize("watched", [True, False])
def test_the_default_level_of_an_interactive_step(make_cluster, watched):
    other = make_cluster(
        plugstack=PLUGSTACK, nodes=1, slurm_conf=["LaunchParameters=use_interactive_step"]
    )
    records = Daemon(other)
    other.conf(f"default_level = 1\nmonitor_interactive = {'yes' if watched else 'no'}\n")
    done = other.run(["salloc", "-N1"], input="echo it runs\nexit\n")
    assert "it runs" in done.stdout and ours(done.stderr) == []
    assert [r.launch["role"] for r in records.records()] == (["solo"] if watched else [])
    other.stop()


@pytest.mark.parametrize("how", ["option", "variable", "directive", "export", "script"])
def test_level_0_opts_out(cluster, daemon, how):
    cluster.conf("default_level = 1\n")
    env = {"SLURM_TELEMETRY_LEVEL": "0"} if how == "variable" else {}
    options = ["--telemetry-level=0"] if how in ("option", "export") else []
    if how == "export":
        options.append("--export=NONE")
    if how != "script":
        srun(cluster, "-N2", *(options or ["--telemetry-level=0"]), "/bin/true", env=env)
    directives = "#SBATCH --telemetry-level=0\n" if how in ("directive", "script") else ""
    directives += "#SBATCH --export=NONE\n" if how == "script" else ""
    # Without the environment the script finds no srun.
    command = ":" if how in ("export", "script") else "srun -N1 true"
    script = f"#!/bin/bash\n{directives}{command}\n"
    job = cluster.run(["sbatch", "--parsable", *options], input=script, env=env)
    assert cluster.wait_job(int(job.stdout)) == "COMPLETED"
    assert daemon.records() == []


def test_the_default_level_of_some(cluster, daemon):
    cluster.conf(f"[user = {OTHER_USER}; partition = bench]\ndefault_level = 1\n")
    for user, partition, count in (
        (USER, "bench", 0),
        (OTHER_USER, "test", 0),
        (OTHER_USER, "bench", 2),
    ):
        done = srun(cluster, "-N1", f"-p{partition}", "true", user=user)
        assert done.stderr == "" and len(daemon.records()) == count


# --- enable=accept


@pytest.mark.parametrize("program", ["srun", "sbatch", "salloc"])
def test_a_site_that_accepts_options_breaks_no_script(cluster, daemon, program):
    wrong = ["--telemetry-level=7", "--telemetry-period=never", "--telemetry-tag==="]
    last = {"srun": ["true"], "sbatch": ["--wrap=srun true"], "salloc": ["srun", "true"]}[program]
    cluster.conf("default_level = 1\n")
    env = ["env", "SLURM_TELEMETRY_EVENTS=,,", "SLURM_TELEMETRY_LEVEL=high"]
    with cluster.plugstack_argument("enable=accept"):
        done = cluster.run([*env, program, *wrong, *last])
        assert done.returncode == 0, done.stderr
        (line,) = ours(done.stderr)
        assert line == (
            "sonde: telemetry is switched off here (enable=accept in plugstack.conf); "
            "--telemetry-level is ignored"
        )
        if program == "sbatch":
            job = int(done.stdout.split()[-1])
            assert cluster.wait_job(job) == "COMPLETED"
            assert (cluster.home() / f"slurm-{job}.out").read_text() == ""
        quiet = cluster.run([*env, program, "--telemetry-level=0", *last])
        assert quiet.returncode == 0 and ours(quiet.stderr) == []
        if program == "sbatch":
            cluster.wait_job(int(quiet.stdout.split()[-1]))
    assert daemon.records() == []


# --- Values that a node does not know


def test_values_of_a_newer_login_host_pass_a_node(cluster, daemon):
    """Nothing checks the variables in which Slurm carries options to a batch script."""
    newer = {"level": "5", "period": "1us", "events": "cycles@all", "mpi": "trace", "tag": "=="}
    options = [f"--export=ALL,{','.join(f'{OPTION}{key}={newer[key]}' for key in newer)}", "-wn1"]
    job = cluster.sbatch("true", options=options)
    assert cluster.wait_job(job) == "COMPLETED"
    (solo,) = daemon.records()
    assert (solo.launch["level"], solo.launch["period"]) == ("4", "1000000000")
    assert not {"events", "tags"} & solo.launch.keys()
    told = [line for line in cluster.log("n1").splitlines() if "sonde: --telemetry-" in line]
    told = [line for line in told if f"[{job}.batch]" in line]
    assert [line.split("--telemetry-")[1].split("=")[0] for line in told] == list(newer)
    assert told[0].endswith("; level 4, the highest known here, is taken")
    assert not [line for line in told if "error:" in line]
    assert all(line.endswith("; ignored") for line in told[1:])


# --- Tags


def test_tags_are_what_was_given(cluster, daemon):
    """Up to 23.11 Slurm tells a node every option twice."""
    options = ["--telemetry-level=1", "--telemetry-tag=a=1", "--telemetry-tag=b=2"]
    for given, tags in ((options[:2], "a=1"), (options, "a=1,b=2")):
        srun(cluster, "-N1", *given, "true")
        assert [r.launch["tags"] for r in daemon.records("head")] == [tags]
        daemon.forget()
        job = cluster.sbatch("srun -N1 true; srun -N1 --telemetry-tag=c=3 true", options=given)
        assert cluster.wait_job(job) == "COMPLETED"
        assert [r.launch["tags"] for r in daemon.records("solo")] == [tags]
        for record in daemon.records("node"):
            told = record.launch["tags"].split(",")
            assert len(told) == len(set(told)), told
        assert [r.launch["tags"] for r in daemon.records("head")] == [tags, f"{tags},c=3"]
        daemon.forget()


# --- The daemon's part


@pytest.fixture(scope="module")
def whole(make_cluster):
    """A cluster with the daemon itself."""
    plugstack = PLUGSTACK.replace("@DIR@/standin/sonded", str(SONDED))
    return make_cluster(plugstack=plugstack, nodes=2)


def shown(cluster, step):
    done = cluster.run([SONDE, "show", "--json", step])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["profile"]["job"]


def test_the_profile_says_what_was_lowered_and_by_which_line(whole):
    conf = whole.conf("max_level = 2\n")
    done = srun(whole, "-N2", "--telemetry-level=4", "sleep", "0.5")
    step = done.stderr.split("for step ")[1].split(";")[0]
    job = shown(whole, step)
    assert job["level"] == 2
    line = f"--telemetry-level=4: at most 2 here (max_level, {conf}:1); watched at 2"
    assert job["notes"] == [line]
    assert line in done.stderr


def test_the_profile_says_what_nodes_lowered_that_srun_did_not(whole):
    conf = whole.conf("max_level = 2\nmin_period = 1s\n")
    words = ["srun", "-N2", "--telemetry-level=4", "--telemetry-period=100ms", "sleep", "2.5"]
    done = whole.run(["env", own_files(whole), *words])
    assert done.returncode == 0, done.stderr
    step = done.stderr.split("for step ")[1].split(";")[0]
    job = shown(whole, step)
    assert job["state"] == "completed" and len(job["nodes"]) == 2
    for line in (
        f"n[1-2]: --telemetry-level=4: at most 2 here (max_level, {conf}:1); watched at 2",
        f"n[1-2]: --telemetry-period=100ms: at least 1s here (min_period, {conf}:2); sampled every 1s",
    ):
        assert line in job["notes"]


def test_the_default_level_makes_a_profile_and_no_report(whole):
    whole.conf("")
    plain = srun(whole, "-N2", "echo", "out")
    whole.conf("default_level = 1\n")
    done = srun(whole, "-N2", "echo", "out")
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    job = int(max(whole.jobs()))
    described = shown(whole, f"{job}.0")
    assert described["level"] == 1 and described["state"] == "completed"
    assert len(described["nodes"]) == 2
