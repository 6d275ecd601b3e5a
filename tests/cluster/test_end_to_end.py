"""A step with telemetry, from srun's command line to the profile, on a real Slurm."""

import contextlib
import json
import os
import re
import subprocess
import termios

import pytest
from conftest import ROOT, SONDE, USER
from telemetry import (
    LEVEL,
    Step,
    build_counting,
    complete,
    counter,
    job_of,
    notes_of,
    report_of,
    show,
    step_id,
    without_sonde,
)

BURN = ROOT / "tests" / "cluster" / "burn.py"


@pytest.fixture(autouse=True)
def nothing_stays(cluster):
    """Every test starts with the defaults and leaves nothing behind."""
    cluster.conf("")
    yield
    cluster.cancel_all()
    cluster.wait_clean()


@pytest.fixture(scope="module")
def burn(cluster):
    """burn.py where the cluster's users can read it."""
    path = cluster.dir / "burn.py"
    path.write_text(BURN.read_text())
    return path


@pytest.fixture(scope="module")
def counting(cluster):
    """A program that adds to an application metric as often as its argument says."""
    return build_counting(cluster.dir)


def end(cluster, step):
    cluster.slurm("scancel", step.job)
    step.wait()


# --- What srun's user gets


def test_a_step_of_four_nodes_is_complete_and_right(cluster, burn):
    done = cluster.run(["srun", "-N4", *LEVEL, "/usr/bin/python3", burn, "0.4"])
    assert done.returncode == 0
    shown = show(cluster, step_id(done.stderr))
    job = job_of(shown)
    assert (job["state"], job["exit_status"], job["expected_nodes"]) == ("completed", 0, 4)
    assert sorted(node["host"] for node in job["nodes"]) == ["n1", "n2", "n3", "n4"]
    assert not notes_of(shown) and complete(shown)
    used = sum(map(float, done.stdout.split()))
    measured = shown["summary"]["cpu_seconds"]
    assert used * 0.97 <= measured <= used * 1.25 + 0.2, "the kernel's clock ticks are 10 ms"
    assert {node["tasks"] for node in shown["nodes"]} == {1}
    for node in shown["nodes"]:
        assert node["cpu_seconds"] >= 0.4 * 0.9


def test_report_follows_the_output_and_names_what_it_is_made_of(cluster):
    done = cluster.run(["srun", "-N4", *LEVEL, "bash", "-c", "echo out; echo err >&2; sleep 0.3"])
    report = report_of(done.stderr)
    assert done.stdout == "out\n" * 4
    assert without_sonde(done.stderr) == ["err"] * 4
    assert complete(show(cluster, step_id(done.stderr)))
    assert re.search(r"^Coverage \d+ %: \d+ of \d+ node samples$", report, re.MULTILINE), report
    assert "4 nodes, 4 tasks, level 2 every 100 ms" in report
    assert report.splitlines()[-1].startswith("sonde: profile in ")
    again = cluster.run([SONDE, "show", step_id(done.stderr)])
    assert again.stdout.splitlines()[0] == report.splitlines()[0]


@pytest.fixture(scope="module")
def with_memory(make_cluster):
    return make_cluster(nodes=1, slurm_conf=["SelectTypeParameters=CR_CPU_Memory", "DefMemPerNode=300"])


@pytest.mark.parametrize("asked, allowed", [(["--mem=200"], 200), ([], 300), (["--mem=0"], None)])
def test_memory_is_of_what_slurm_allocated(with_memory, asked, allowed):
    """srun's own environment does not tell what it has asked for."""
    words = ["env", "-u", "SLURM_MEM_PER_NODE", "srun", "-N1", *asked, *LEVEL, "sleep", "1"]
    done = with_memory.run(words)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in report_of(done.stderr).splitlines() if line.startswith("Memory")]
    assert ("allowed" in line) == (allowed is not None), line
    assert allowed is None or f"of {allowed} MiB allowed" in line, line


def test_figures_are_shares_of_what_was_measured_and_allowed(cluster, burn):
    archive = cluster.dir / "tmp" / USER / "figures"
    done = cluster.run(
        ["env", "SLURM_MEM_PER_NODE=200", "srun", "-N4", *LEVEL, "/usr/bin/python3", burn, "2"],
        env={"SONDE_ARCHIVE": str(archive)},  # as salloc --mem=200 gives it to srun
    )
    assert done.returncode == 0, done.stderr
    (listed,) = json.loads(cluster.run([SONDE, "--archive", archive, "ls", "--json"]).stdout)
    shown = json.loads(cluster.run([SONDE, "--archive", archive, "show", "--json"]).stdout)
    summary = shown["summary"]
    # Slurm's nodes here are one machine, and each counts all of its processors.
    assert summary["node_cpus"] == 4 * os.cpu_count(), summary
    assert summary["measured_tasks"] == 4
    assert summary["measured_seconds"] <= summary["duration_seconds"]
    of_tasks = summary["cpu_seconds"] / summary["measured_seconds"] / 4
    assert summary["cpu_of_tasks"] == pytest.approx(of_tasks)
    assert summary["memory_limit_bytes"] == 200 * 2**20, "asked for; there may be no control group"
    assert "of 200 MiB allowed" in report_of(done.stderr)
    # What is said to be stored is what lies on the disk.
    stored = shown["profile"]["cost"]["stored_bytes"]
    assert listed["stored_bytes"] == stored
    # Until LevelDB merges its files, a part of them is a log.
    assert cluster.run([SONDE, "--archive", archive, "archive", "compact"]).returncode == 0
    on_disk = sum(path.stat().st_size for path in (archive / "db").iterdir())
    assert 0.8 * on_disk < stored < 1.2 * on_disk, on_disk


def test_job_is_the_same_with_and_without(cluster):
    job = ["-N2", "bash", "-c", "cat; echo $SLURM_PROCID; echo err >&2; exit 3"]
    plain = cluster.run(["srun", *job], input="in\n")
    watched = cluster.run(["srun", *LEVEL, *job], input="in\n")
    assert watched.returncode == plain.returncode == 3
    assert sorted(watched.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    number = re.compile(r"\d{4,}\.\d+|\[\d+\]")

    def same(stderr):
        return sorted(number.sub("STEP", line) for line in without_sonde(stderr))

    assert same(watched.stderr) == same(plain.stderr)
    job = job_of(show(cluster, step_id(watched.stderr)))
    assert job["state"] == "failed" and job["exit_status"] == 3 << 8


def test_level_0_leaves_nothing(cluster):
    before = sorted(cluster.archive().rglob("*"))
    done = cluster.run(["srun", "-N4", "--telemetry-level=0", "env"])
    plain = cluster.run(["srun", "-N4", "true"])
    assert done.returncode == plain.returncode == 0
    for stderr in (done.stderr, plain.stderr):
        # Slurm's own words where the step before is still completing.
        assert not [line for line in stderr.splitlines() if not line.endswith("resources")]
    assert "SONDE_SOCKET=" not in done.stdout and "SONDE_LEVEL=" not in done.stdout
    assert sorted(cluster.archive().rglob("*")) == before


def test_level_1_has_the_application_and_no_system(cluster, counting):
    words = ["srun", "-N2", "--telemetry-level=1", "--telemetry-period=100ms", counting, "1000"]
    shown = show(cluster, step_id(cluster.run(words).stderr))
    names = {entry["metric"] for entry in shown["profile"]["footprint"]}
    assert "work_done_total" in names
    assert all(entry["level"] <= 1 for entry in shown["profile"]["footprint"])
    assert not any(name.startswith("node_") for name in names)


def test_the_report_is_short_full_or_off(cluster):
    def ran(conf):
        cluster.conf(conf)
        return cluster.run(["srun", "-N1", *LEVEL, "sleep", "0.5"], env={"SONDE_REPORT": None})

    done = ran("")
    short = report_of(done.stderr).splitlines()
    assert 3 <= len(short) <= 9, done.stderr
    assert short[0].startswith(f"Sonde: {step_id(done.stderr)} ") and " completed in " in short[0]
    assert any(line.startswith("See ") and line.endswith(f"sonde show {step_id(done.stderr)}") for line in short)
    assert ran("report = off\n").stderr == ""
    assert "\nOwn cost " in ran("report = full\n").stderr


def test_the_report_is_as_wide_as_the_terminal(cluster):
    widest = {}
    for columns in (60, 120):
        master, slave = os.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        step = cluster.popen(["srun", "-N1", *LEVEL, "sleep", "0.5"], stderr=slave, env={"SONDE_REPORT": "full"})
        os.close(slave)
        text = b""
        with contextlib.suppress(OSError):  # the end: nobody has the terminal open any more
            while part := os.read(master, 4096):
                text += part
        os.close(master)
        assert step.wait() == 0, text
        report = report_of(text.decode().replace("\r\n", "\n")).split("sonde: profile in")[0]
        widest[columns] = max(map(len, report.splitlines()))
    assert 50 < widest[60] <= 60 and 90 < widest[120] <= 120, widest


def test_the_full_report_draws_the_applications_metrics(cluster):
    # Low for a second, then high for as long.
    script = f"for value in 1 8; do {SONDE} put depth=$value; sleep 1; done"
    done = cluster.run(["srun", "-N1", *LEVEL, "bash", "-c", script], env={"SONDE_REPORT": "full"})
    report = report_of(done.stderr)
    assert re.search(r"^application metric +over time ", report, re.MULTILINE), done.stderr
    (line,) = [one for one in report.splitlines() if one.startswith("depth ")]
    drawn = re.match(r"depth +([_.,=+*# -]*#) ", line)  # blanks: ticks that a busy machine left out
    assert drawn and len(drawn.group(1)) <= 16, done.stderr
    assert re.fullmatch(r"_+.?#+", drawn.group(1).replace(" ", "")), done.stderr


def test_a_step_of_a_tenth_of_a_second_has_a_profile(cluster):
    done = cluster.run(["srun", "-N4", "--telemetry-level=2", "sleep", "0.1"])
    shown = show(cluster, step_id(done.stderr))
    job = job_of(shown)
    assert job["state"] == "completed" and len(job["nodes"]) == 4 and complete(shown)
    assert shown["summary"]["memory_total_bytes"] > 0


def test_application_metric_has_its_exact_value(cluster, counting):
    # The second node's program ends in less than a period.
    script = f"[ $SLURM_PROCID = 0 ] && exec {counting} 3000001 300000; exec {counting} 41"
    done = cluster.run(["srun", "-N2", *LEVEL, "bash", "-c", script])
    assert done.returncode == 0
    entry = counter(show(cluster, step_id(done.stderr)), "work_done_total")
    assert entry["last"] == 3000042
    assert (entry["min"], entry["max"]) == (41, 3000001)
    assert (entry["min_owner"]["host"], entry["max_owner"]["host"]) == ("n2", "n1")


# --- The running step


def test_running_step_answers_over_http(cluster):
    step = Step(cluster, ["srun", "-N4", *LEVEL, "sleep", "60"])
    live = step.wait_nodes(4)
    listed = json.loads(live.get("/job/list"))
    assert any(step.id.split(".")[0] in json.dumps(job) for job in listed)
    metrics = live.get("/metrics")
    assert re.search(r'^sonde_samples_total\{.*\} \d', metrics, re.MULTILINE), metrics[:500]
    (total,) = live.query("sonde_samples_total")
    assert total["dps"] and "host" in total["aggregateTags"]
    by_host = live.query(
        "sonde_samples_total",
        filters=[{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}],
    )
    assert sorted(result["tags"]["host"] for result in by_host) == ["n1", "n2", "n3", "n4"]
    assert all(result["dps"] for result in by_host)
    end(cluster, step)


def test_http_wants_the_token_and_stays_on_loopback(cluster):
    step = Step(cluster, ["srun", "-N1", *LEVEL, "sleep", "60"])
    live = step.live()
    assert live.status("/") == 200, "the page is the same for everybody"
    for path in ("/metrics", "/job/list", "/api/version", "/no/such"):
        assert live.status(path) == 401
        assert live.status(path, "0" * len(live.token)) == 401
    assert live.status("/metrics", live.token) == 200
    listening = subprocess.run(["ss", "-Hltn", f"sport = :{live.port}"], capture_output=True, text=True)
    assert [line.split()[3] for line in listening.stdout.splitlines()] == [f"127.0.0.1:{live.port}"]
    end(cluster, step)


def test_sonde_shows_a_running_step(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])
    live = step.wait_nodes(2)
    assert job_of(step.profile())["state"] == "running"
    url = cluster.run([SONDE, "url", step.id])
    assert f":{live.port}/" in url.stdout and live.token in url.stdout
    end(cluster, step)
    assert job_of(step.profile())["state"] == "cancelled"


@pytest.mark.parametrize(("provider", "peer"), [("sockets", r"[\d.]+:\d+$"), ("tcp", "over tcp")])
def test_longer_steps_use_links_between_nodes(cluster, provider, peer):
    log_dir = cluster.dir / "tmp" / "sonde-test1"
    cluster.conf(f"provider = {provider}\nfabric_after = 200ms\nlog_dir = {log_dir}\n")
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "60"])

    def links():
        logs = [path.read_text() for path in log_dir.glob(f"sonded.{step.id}.n*.log")]
        return re.findall(rf"data goes to the head at .*{peer}", "\n".join(logs), re.MULTILINE)

    cluster.wait_for(lambda: len(links()) == 2, "both nodes' links")
    live = step.wait_nodes(2)
    before = json.loads(live.get(f"/api/v1/profile?job={step.id}"))["job"]["coverage"]["got"]
    cluster.wait_for(
        lambda: json.loads(live.get(f"/api/v1/profile?job={step.id}"))["job"]["coverage"]["got"]
        > before + 6,
        "ticks over the new links",
    )
    end(cluster, step)
    shown = step.profile()
    assert not notes_of(shown)
    assert complete(shown), "no tick is lost with the change of links"


@pytest.mark.parametrize("provider", ["tcp;ofi_rxm", "udp;ofi_rxd"])
def test_a_tree_over_reliable_datagrams(cluster, provider):
    """With a descriptor to wait on, and without one. Head and nodes are a tree of three levels."""
    log_dir = cluster.dir / "tmp" / "sonde-test1"
    cluster.conf(
        f"fanout = 2\nfabric_after = 100ms\nlog_dir = {log_dir}\nprovider = {provider}\n"
    )
    step = Step(cluster, ["srun", "-N4", *LEVEL, "sleep", "60"])

    def links():
        logs = [path.read_text() for path in log_dir.glob(f"sonded.{step.id}.n*.log")]
        return re.findall(rf"data goes to .* over {provider}", "\n".join(logs))

    cluster.wait_for(lambda: len(links()) == 4, "all nodes' fabric links", 20)
    live = step.wait_nodes(4)
    before = json.loads(live.get(f"/api/v1/profile?job={step.id}"))["job"]["coverage"]["got"]
    cluster.wait_for(
        lambda: json.loads(live.get(f"/api/v1/profile?job={step.id}"))["job"]["coverage"]["got"]
        > before + 40,
        "ticks over the new links",
    )
    end(cluster, step)
    shown = step.profile()
    assert not notes_of(shown)
    assert complete(shown), "no tick is lost with the change of links"


@pytest.mark.parametrize(("provider", "expected"), [("sockets", 4), ("tcp", 0)])
def test_no_sample_of_a_larger_step_waits_for_links(cluster, provider, expected):
    """Sockets are there at once; until libfabric is loaded all nodes send to the head."""
    log_dir = cluster.dir / "tmp" / "sonde-test1"
    cluster.conf(f"fanout = 2\nfabric_after = 1h\nlog_dir = {log_dir}\nprovider = {provider}\n")
    step = Step(cluster, ["srun", "-N4", *LEVEL, "sleep", "60"])

    def links():
        logs = [path.read_text() for path in log_dir.glob(f"sonded.{step.id}.n*.log")]
        return re.findall(r"data goes to (?:the head|node)", "\n".join(logs))

    live = step.wait_nodes(4)
    cluster.wait_for(
        lambda: json.loads(live.get(f"/api/v1/profile?job={step.id}"))["job"]["coverage"]["got"] > 12,
        "ticks of all nodes",
    )
    cluster.wait_for(lambda: len(links()) == expected or None, f"{expected} links")
    end(cluster, step)
    shown = step.profile()
    assert not notes_of(shown)
    assert complete(shown) and len(links()) == expected


def test_nodes_keep_their_fabric_where_the_head_has_another(cluster):
    """As on hosts of srun that lack the nodes' fabric: its children use sockets."""
    log_dir = cluster.dir / "tmp" / "sonde-test1"
    cluster.conf(f"fanout = 2\nfabric_after = 100ms\nlog_dir = {log_dir}\nprovider = tcp\n")
    env = {"SONDE_PROVIDER": "warp"}
    step = Step(cluster, ["srun", "--export=PATH", "-N4", *LEVEL, "sleep", "60"], env=env)

    def links():
        logs = [path.read_text() for path in log_dir.glob(f"sonded.{step.id}.n*.log")]
        return re.findall(r"data goes to (.*) at .* over tcp", "\n".join(logs))

    cluster.wait_for(lambda: len(links()) == 2, "the links of the two that are no children of it")
    end(cluster, step)
    shown = step.profile()
    assert all(parent.startswith("node ") for parent in links())
    assert not notes_of(shown)
    assert complete(shown)


# --- Steps of all kinds


def test_a_step_that_is_started_from_outside_its_job(cluster):
    allocated = cluster.run(["salloc", "-N2", "--no-shell"])
    job = re.search(r"job allocation (\d+)", allocated.stderr).group(1)
    done = cluster.run(["srun", f"--jobid={job}", "-N2", *LEVEL, "true"])
    cluster.slurm("scancel", job)
    assert done.returncode == 0, done.stderr
    assert "2 nodes" in report_of(done.stderr)


def test_steps_at_once_are_kept_apart(cluster, counting):
    script = f"""
      for i in 1 2 3; do
        srun -N4 --overlap --telemetry-period=100ms {counting} $((i * 1000)) 200000 &
      done
      wait"""
    job = cluster.sbatch(script, options=["-N4", "--telemetry-level=2"])
    assert cluster.wait_job(job) == "COMPLETED"
    values = []
    for step in range(3):
        shown = show(cluster, f"{job}.{step}")
        assert job_of(shown)["state"] == "completed" and len(job_of(shown)["nodes"]) == 4
        values.append(counter(shown, "work_done_total")["last"])
    assert sorted(values) == [4000, 8000, 12000]


def test_batch_step_says_that_it_saw_one_node_of_several(cluster, burn):
    job = cluster.sbatch(f"/usr/bin/python3 {burn} 0.3", options=["-N2", *LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    shown = show(cluster, f"{job}.batch")
    found = job_of(shown)
    assert (found["step"], found["state"], found["job_nodes"]) == ("batch", "completed", 2)
    assert [node["host"] for node in found["nodes"]] == ["n1"]
    assert complete(shown)
    assert any("1 of the job's 2 nodes" in note for note in found["notes"]), found["notes"]
    assert 0.29 <= shown["summary"]["cpu_seconds"] <= 1


def test_batch_step_on_one_node_has_no_such_note(cluster):
    job = cluster.sbatch("exit 5", options=["-N1", *LEVEL])
    assert cluster.wait_job(job) == "FAILED"
    found = job_of(show(cluster, f"{job}.batch"))
    assert (found["state"], found["exit_status"], found["notes"]) == ("failed", 5 << 8, [])


def test_srun_in_a_batch_script_without_environment(cluster):
    # Neither PATH nor the home that this cluster gives its users comes along.
    script = f"""
      export SLURM_CONF={cluster.dir}/etc/slurm.conf HOME={cluster.home()}
      {cluster.program('srun')} -N2 /bin/sleep 0.2"""
    job = cluster.sbatch(script, options=["-N2", "--export=NONE", *LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    shown = show(cluster, f"{job}.0")
    assert job_of(shown)["state"] == "completed" and complete(shown)


def test_array_tasks_are_found_by_their_array(cluster):
    array = cluster.sbatch("srun -N1 sleep 0.1", options=["-N1", "--array=1-2", *LEVEL])
    cluster.wait_for(lambda: show(cluster, f"{array}_1.0") and show(cluster, f"{array}_2.0"), "both", 30)
    jobs = [job_of(show(cluster, f"{array}_{task}.0")) for task in (1, 2)]
    assert [job["array_task"] for job in jobs] == ["1", "2"]
    assert {job["array_job"] for job in jobs} == {str(array)}


def test_heterogeneous_step_is_one_profile(cluster):
    done = cluster.run(["srun", "-N1", *LEVEL, "sleep", "0.3", ":", "-N2", "sleep", "0.3"])
    assert done.returncode == 0
    shown = show(cluster, step_id(done.stderr))
    job = job_of(shown)
    assert (job["state"], job["expected_nodes"], job["expected_tasks"]) == ("completed", 3, 3)
    assert job["job"] == min(node["job"] for node in job["nodes"]), "the leader's"
    assert len({node["host"] for node in job["nodes"]}) == 3
    assert not notes_of(shown) and complete(shown)


# --- A tree with inner nodes


@pytest.fixture(scope="module")
def eight(make_cluster):
    return make_cluster(nodes=8, cpus_per_node=1)


def test_inner_nodes_merge_pass_on_and_ask(eight):
    log_dir = eight.dir / "tmp" / "sonde-test1"
    eight.conf(f"fanout = 2\nfabric_after = 100ms\nlog_dir = {log_dir}\n")
    words = ["srun", "-N8", "--telemetry-level=2", "--telemetry-period=500ms", "sleep", "60"]
    step = Step(eight, words)

    def links():
        logs = "".join(path.read_text() for path in log_dir.glob(f"sonded.{step.id}.*.log"))
        return re.findall(r"data goes to (the head|node \d+)", logs)

    eight.wait_for(lambda: len(links()) == 8, "eight links")
    assert sorted(links()) == ["node 0"] * 2 + ["node 1"] * 2 + ["node 2"] * 2 + ["the head"] * 2
    live = step.wait_nodes(8)
    by_host = live.query(
        "sonde_samples_total",
        filters=[{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}],
    )
    hosts = sorted(result["tags"]["host"] for result in by_host)
    assert hosts == [f"n{i}" for i in range(1, 9)]
    end(eight, step)
    shown = step.profile()
    assert len(job_of(shown)["nodes"]) == 8 and not notes_of(shown)
    # Eight nodes on one small machine: a part may come after its tick's time.
    assert complete(shown)
    assert {row["host"] for row in shown["nodes"] if row["memory_total_bytes"]} == set(hosts)
    eight.wait_clean()


def test_a_task_epilog_that_takes_long_hides_nothing(cluster, burn):
    """Slurm tells the plugin of a task's end after it: until then nobody has said how it ended."""
    epilog = cluster.dir / "epilog"
    epilog.write_text("#!/bin/sh\nsleep 1.5\n")
    epilog.chmod(0o755)
    words = ["-N1", f"--task-epilog={epilog}", *LEVEL, "/usr/bin/python3", burn, "0.3"]
    done = cluster.run(["srun", *words])
    assert done.returncode == 0, done.stderr
    shown = show(cluster, step_id(done.stderr))
    assert job_of(shown)["state"] == "completed"
    assert shown["summary"]["cpu_seconds"] >= 0.3 * 0.9
