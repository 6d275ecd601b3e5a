"""Whether values are right: a program that knows what it did, beside what the profile says of it.

Values of tasks are compared with what the program counted itself. Values of nodes cannot be, for
other programs use the machine too: there what the program read at its start and end must be within
the node's value, and this within what the test read before and after the step.
"""

import json
import pathlib
import statistics
import subprocess

import pytest
from conftest import ROOT, USER
from telemetry import Step, counter

LEVEL = ("--telemetry-level=2", "--telemetry-period=100ms")
WORK = ROOT / "tests" / "cluster" / "work.c"
TICK = 0.01  # of the kernel's clock, in which it tells the time of running processes


@pytest.fixture(scope="module")
def work(cluster):
    program = cluster.dir / "work"
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-pthread", "-o", program, WORK], check=True)
    return program


@pytest.fixture
def room(cluster, tmp_path_factory):
    """A directory on the cluster's disk that every task may write to."""
    path = cluster.dir / tmp_path_factory.mktemp("room").name
    path.mkdir(mode=0o777)
    path.chmod(0o777)
    return path


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


def results(step):
    """What the tasks printed, by rank: one JSON object a line."""
    found = sorted((json.loads(line) for line in step.stdout.splitlines()), key=lambda r: r["rank"])
    return found


def summed(results, *keys):
    return sum(result[key] for result in results for key in keys)


def run(cluster, *words):
    step = Step(cluster, ["srun", *words])
    assert step.wait()[0] == 0, step.stderr
    return results(step), step.profile()


def last(shown, metric, **tags):
    return counter(shown, metric, **tags)["last"]


def live(step):
    """The running step's profile, as sonde show gives that of a finished one."""
    return {"profile": json.loads(step.live().get(f"/api/v1/profile?job={step.id}"))}


# --- Tasks: what they used


def check_cpu_and_faults(shown, own):
    assert last(shown, "task_cpu_seconds_total", mode="user") == pytest.approx(
        summed(own, "user"), rel=0.02, abs=TICK * len(own)
    )
    assert last(shown, "task_cpu_seconds_total", mode="system") == pytest.approx(
        summed(own, "system"), rel=0.02, abs=TICK * len(own)
    )
    # The end of a process and the C library's fault a few pages after it has counted.
    assert 0 <= last(shown, "task_minor_faults_total") - summed(own, "minor") <= 20 * len(own)
    assert 0 <= last(shown, "task_major_faults_total") - summed(own, "major") <= 20 * len(own)


@pytest.mark.parametrize("where", ["main", "thread", "child", "grandchildren"])
def test_cpu_time_and_page_faults_of_a_task(cluster, work, where):
    own, shown = run(cluster, "-N1", *LEVEL, work, f"spin={where}:0.3", f"touch={where}:4000")
    assert summed(own, "user", "system") >= 0.3 and summed(own, "minor") >= 4000
    check_cpu_and_faults(shown, own)


def test_cpu_time_and_page_faults_of_several_tasks_on_two_nodes(cluster, work):
    everywhere = [
        f"{verb}={where}:{amount}"
        for where in ("main", "thread", "child", "grandchildren")
        for verb, amount in (("spin", "0.05"), ("touch", "1000"))
    ]
    # Tasks of different size: the extremes have a name.
    own, shown = run(cluster, "-N2", "-n4", *LEVEL, work, *everywhere, "touch=ranked:3000")
    assert [result["rank"] for result in own] == [0, 1, 2, 3]
    check_cpu_and_faults(shown, own)
    faults = counter(shown, "task_minor_faults_total")
    assert faults["min"] == pytest.approx(own[0]["minor"], abs=20)
    assert faults["max"] == pytest.approx(own[3]["minor"], abs=20)
    assert (faults["min_owner"]["rank"], faults["max_owner"]["rank"]) == (0, 3)


def test_the_peak_of_memory_that_no_sample_saw(cluster, work):
    own, shown = run(cluster, "-N2", "--telemetry-level=2", work, "touch=ranked:16384")
    peak = counter(shown, "task_resident_memory_peak_bytes")
    # The kernel's own count of it runs behind by up to 64 pages for each processor.
    assert own[0]["peak"] >= 0.98 * 4096 * 16384 and own[1]["peak"] >= 0.98 * 4096 * 32768
    assert peak["last"] == pytest.approx(summed(own, "peak"), rel=0.02)
    assert peak["max"] == pytest.approx(own[1]["peak"], rel=0.02)
    assert peak["max_owner"]["rank"] == 1


# --- Tasks: input and output


CALLS = {
    "task_read_call_bytes_total": "rchar",
    "task_write_call_bytes_total": "wchar",
    "task_read_calls_total": "syscr",
    "task_write_calls_total": "syscw",
}


@pytest.mark.parametrize("size", [("-N1",), ("-N2", "-n4")], ids=["one task", "tasks on two nodes"])
def test_calls_are_exact_to_the_byte(cluster, work, room, size):
    places = ("main", "thread", "child")
    everywhere = [f"{verb}={where}:100" for verb in ("write", "read") for where in places]
    step = Step(cluster, ["srun", *size, *LEVEL, work, f"room={room}", *everywhere, "hold"])
    tasks = 4 if "-n4" in size else 1
    cluster.wait_for(lambda: len(step.stdout.splitlines()) == tasks, "all tasks' results", 20)
    own = results(step)
    assert summed(own, "syscw") >= 300 * tasks and summed(own, "syscr") >= 300 * tasks
    expected = {metric: summed(own, key) for metric, key in CALLS.items()}

    def seen():
        shown = live(step)
        try:
            return {metric: last(shown, metric) for metric in CALLS} == expected and shown
        except AssertionError:  # not measured yet
            return None

    cluster.wait_for(seen, f"{expected}", 10)
    (room / "release").touch()
    assert step.wait()[0] == 0
    shown = step.profile()
    assert {metric: last(shown, metric) for metric in CALLS} == expected


def test_bytes_from_and_to_storage_are_exact_to_the_end(cluster, work, room):
    step = ["-N2", "-n4", "--telemetry-level=2", work, f"room={room}"]
    writes = ["write=main:256", "sync", "write=child:256", "sync"]
    own, shown = run(cluster, *step, *writes, "forget", "read=main:256")
    # A block is 4096 bytes; the file system's own blocks come on top.
    assert summed(own, "written") >= 4 * 512 * 4096
    assert last(shown, "task_written_bytes_total") == summed(own, "written")
    assert summed(own, "fetched") >= 4 * 256 * 4096
    # Pages of its own program that it came back to after it had counted.
    assert 0 <= last(shown, "task_read_bytes_total") - summed(own, "fetched") <= 4 * 65536


# --- Tasks: children that nobody waits for


def test_a_child_that_nobody_waits_for_counts_as_it_was_last_seen(cluster, work, room):
    words = [work, f"room={room}", "ignore", "spin=child:0.4", "hold"]
    step = Step(cluster, ["srun", "-N1", *LEVEL, *words])
    cluster.wait_for(lambda: step.stdout, "the result", 20)
    own = results(step)
    # Its own usage has it not: the kernel forgets what a child used that its parent ignores.
    assert own[0]["user"] + own[0]["system"] < 0.2 and own[0]["lost"] >= 0.4
    used = summed(own, "user", "system", "lost")
    cluster.wait_for(lambda: (room / "held").exists(), "the child that waits")

    def cpu(shown):
        return sum(last(shown, "task_cpu_seconds_total", mode=mode) for mode in ("user", "system"))

    cluster.wait_for(lambda: live(step)["profile"]["footprint"], "the first tick")
    cluster.wait_for(lambda: cpu(live(step)) >= used - 2 * TICK, "the child's time")
    (room / "release").touch()
    assert step.wait()[0] == 0
    assert cpu(step.profile()) == pytest.approx(used, rel=0.02, abs=2 * TICK)


# --- Nodes


def reading(path, line, column):
    for text in pathlib.Path(path).read_text().splitlines():
        words = text.replace(":", " ").split()
        if words[0] == line:
            return int(words[column])
    raise AssertionError(f"{path} has no {line}")


NODE = {
    "node_forks_total": ("/proc/stat", "processes", 1),
    "node_context_switches_total": ("/proc/stat", "ctxt", 1),
    "node_vmstat_pgfault_total": ("/proc/vmstat", "pgfault", 1),
    "node_network_receive_bytes_total": ("/proc/net/dev", "lo", 1),
    "node_network_transmit_packets_total": ("/proc/net/dev", "lo", 10),
}


def test_counters_of_a_node_lie_between_two_readings(cluster, work, room):
    before = {metric: reading(*where) for metric, where in NODE.items()}
    words = [f"room={room}", "await", "loopback=4000000", "spin=grandchildren:0.1", "touch=main:4000"]
    step = Step(cluster, ["srun", "-N1", "--telemetry-level=4", work, *words])
    step.wait_nodes(1)  # nobody waits for a daemon: on a busy machine it may begin after the tasks
    (room / "begin").touch()
    assert step.wait()[0] == 0, step.stderr
    (own,), shown = results(step), step.profile()
    after = {metric: reading(*where) for metric, where in NODE.items()}
    inside = {metric: own["end"][metric] - own["start"][metric] for metric in NODE}
    assert inside["node_network_receive_bytes_total"] >= 4_000_000
    assert inside["node_vmstat_pgfault_total"] >= 4000 and inside["node_forks_total"] >= 2
    for metric in NODE:
        tags = {"device": "lo"} if "network" in metric else {}
        value = last(shown, metric, **tags)
        assert inside[metric] <= value <= after[metric] - before[metric], metric


def test_facts_of_a_node(cluster):
    step = Step(cluster, ["srun", "-N1", *LEVEL, "true"])
    assert step.wait()[0] == 0
    total = reading("/proc/meminfo", "MemTotal", 1) * 1024
    assert last(step.profile(), "node_memory_MemTotal_bytes") == total


# --- The names that Dragon's dashboard asks by


def test_other_names_have_the_values_of_their_metrics(cluster):
    step = Step(cluster, ["srun", "-N2", "-n4", *LEVEL, "sleep", "60"])
    live = step.wait_nodes(2)
    metrics = (
        "load_average node_load1 used_RAM node_memory_MemAvailable_bytes "
        "node_memory_MemTotal_bytes cpu_percent num_running_processes"
    ).split()
    hosts = [{"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}]
    queries = [{"metric": name, "aggregator": "avg", "filters": hosts} for name in metrics]
    # A node may have sampled once more between two of them, so only common times are compared.
    found = {}
    for result in live.queries(queries, start="1h-ago", msResolution=True):
        found[result["metric"], result["tags"]["host"]] = result["dps"]
    assert set(found) == {(metric, host) for metric in metrics for host in ("n1", "n2")}
    for host in ("n1", "n2"):
        load, node_load, used, free, total, cpu, processes = (found[m, host] for m in metrics)
        both = load.keys() & node_load.keys()
        assert both and all(load[when] == node_load[when] for when in both)
        both = used.keys() & free.keys() & total.keys()
        assert both and all(
            used[when] == pytest.approx(100 * (1 - free[when] / total[when])) for when in both
        )
        # Of single samples it may be more: the kernel's clock ticks are 10 ms, of 100.
        assert cpu and -10 <= statistics.fmean(cpu.values()) <= 110
        assert max(processes.values()) >= 2, "two tasks on each node"
    cluster.run(["scancel", f"{step.job}"], user=USER)
    step.wait()
