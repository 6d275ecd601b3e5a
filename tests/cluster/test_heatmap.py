"""Heatmaps of a real step: what its head answers while it runs, and `sonde serve` while it runs and
afterwards. Every rank has a value that is known."""

import json
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT
from telemetry import Step, served, wait_for

PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
#include "libclient/sonde.h"
int main(int argc, char** argv) {
  int rank = atoi(getenv("SLURM_PROCID"));
  sonde_metric_t* value = sonde_gauge("heat_value", "1", "Known", 1, NULL, 0);
  sonde_metric_t* work = sonde_counter("heat_work_total", "1", "Work", 0, NULL, 0);
  sonde_set(value, 10 * (rank + 1));
  while (access(argv[1], F_OK) != 0) {
    sonde_add(work, 1 + rank);
    usleep(20000);
  }
  return 0;
}"""


@pytest.fixture(scope="module")
def program(cluster):
    directory = cluster.dir / "heatmap"
    directory.mkdir()
    directory.chmod(0o777)
    (directory / "heat.c").write_text(PROGRAM)
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", directory)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN"]
    words = ["cc", "-Wall", "-o", directory / "heat", directory / "heat.c", *flags]
    subprocess.run([*words, "-lsonde"], check=True)
    return directory / "heat"


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


def heatmap(live, step, **asked):
    """Of all nodes: one that is late with its answer is left out, and that is said."""
    query = "&".join(f"{key}={value}" for key, value in asked.items())

    def of_all():
        answer = json.loads(live.get(f"/api/v1/heatmap?job={step.id}&{query}"))
        return answer if answer["nodes_answered"] == answer["nodes_expected"] else None

    return wait_for(of_all, "an answer of all nodes")


def numbers(row):
    return [value for value in row if value is not None]


def check(live, step):
    by_rank = heatmap(live, step, metric="heat_value", by="task", columns=20)
    assert by_rank["names"] == [str(rank) for rank in range(8)]
    hosts = by_rank["task_hosts"]
    assert sorted(set(hosts)) == ["n1", "n2", "n3", "n4"]
    for rank, row in enumerate(by_rank["mean"]):
        assert set(numbers(row)) == {10 * (rank + 1)}, row
    by_node = heatmap(live, step, metric="heat_value", columns=200)
    assert sorted(by_node["names"]) == ["n1", "n2", "n3", "n4"]
    for host, row in zip(by_node["names"], by_node["mean"]):
        # Most of the time: its ranks begin and end one after the other.
        usual = sorted(numbers(row))[len(numbers(row)) // 2]
        own = [10 * (rank + 1) for rank in range(8) if hosts[rank] == host]
        assert usual == sum(own) / len(own), host  # as gauges of an application are reduced
    rows = heatmap(live, step, metric="heat_work_total", columns=1, rows=2)
    assert [count for _, count in rows["rows"]] == [2, 2]
    assert rows["rate"] and all(value > 0 for row in rows["mean"] for value in row)
    assert rows["members"] == [[2], [2]]
    # The table of the page and the plot of one node have the same numbers.
    first = by_node["names"][0]
    one = heatmap(live, step, metric="node_load1", columns=1, count=1)
    series = json.loads(live.get(f"/api/v1/series?job={step.id}&metric=node_load1&points=5000&host={first}"))
    values = series["series"][0]["value"]
    assert one["names"] == [first]
    assert min(values) - 0.01 <= one["mean"][0][0] <= max(values) + 0.01
    # Within a node: each core's time in all modes is that of the clock.
    # Of a few periods it need not be: the kernel counts by its own ticks, which a busy machine comes too late for.
    def cores_of_first():
        return heatmap(live, step, metric="node_cpu_core_seconds_total", by="cpu", host=first, columns=1)

    cores = cores_of_first()
    assert cores["host"] == first and cores["names"] == [str(i) for i in range(len(cores["names"]))]
    wait_for(lambda: all(0.5 < row[0] < 1.5 for row in cores_of_first()["mean"]), "the time of each core")
    titles = {m["metric"]: m["title"] for m in json.loads(live.get(f"/api/v1/overview?job={step.id}"))["metrics"]}
    assert titles["node_load1"] == "Load average over 1 minute"
    assert titles["heat_value"] == "Known"


def test_nodes_and_ranks_of_a_step_while_it_runs_and_afterwards(cluster, program):
    done = program.parent / "done"
    done.unlink(missing_ok=True)
    step = Step(cluster, ["srun", "-N4", "-n8", "--overcommit", "--telemetry-level=4",
                          "--telemetry-period=100ms", program, done])
    live = step.wait_nodes(4)

    def all_ranks():
        rows = heatmap(live, step, metric="heat_work_total", by="task", columns=1)["mean"]
        return len(rows) == 8 and all(row[0] is not None for row in rows)

    wait_for(all_ranks, "rates of all ranks")
    check(live, step)
    with served(cluster) as server:
        check(server, step)
        done.touch()
        assert step.wait(60)[0] == 0, step.stderr
        wait_for(lambda: json.loads(server.get(f"/api/v1/profile?job={step.id}"))["job"]["state"] == "completed",
                 "the end of the step")
        check(server, step)
