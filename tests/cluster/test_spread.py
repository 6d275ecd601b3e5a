"""Percentiles over the tasks of a step: an application whose every rank has a value that is known,
and what the running step, its profile and its report say of them."""

import json
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT, SONDE, USER
from telemetry import Step, counter, wait_for

TASKS = 40
VALUES = [1000 * 1.1**rank for rank in range(TASKS)]
MEAN = sum(VALUES) / TASKS
SHARES = {"p5": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99}

PROGRAM = """
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "libclient/sonde.h"
int main(int argc, char** argv) {
  sonde_metric_t* value = sonde_gauge("spread_value", "1", "Known", 1, NULL, 0);
  sonde_set(value, 1000 * pow(1.1, atoi(getenv("SLURM_PROCID"))));
  while (access(argv[1], F_OK) != 0) usleep(20000);
  return 0;
}"""


@pytest.fixture(scope="module")
def program(cluster):
    directory = cluster.dir / "spread"
    directory.mkdir()
    directory.chmod(0o777)
    (directory / "spread.c").write_text(PROGRAM)
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", directory)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN"]
    words = ["cc", "-Wall", "-o", directory / "spread", directory / "spread.c", *flags]
    subprocess.run([*words, "-lsonde", "-lm"], check=True)
    return directory / "spread"


@pytest.fixture(autouse=True)
def nothing_runs_on(cluster):
    yield
    cluster.cancel_all()


def exact(values, share):
    """As OpenTSDB estimates it."""
    values = sorted(values)
    position = share * (len(values) + 1)
    if position < 1 or position >= len(values):
        return values[0] if position < 1 else values[-1]
    below, part = int(position), position % 1
    return values[below - 1] + part * (values[below] - values[below - 1])


def expect_spread(found):
    for name, share in SHARES.items():
        assert found[name] == pytest.approx(exact(VALUES, share), rel=0.01), name


def newest(answer):
    (result,) = answer
    return result["dps"][max(result["dps"], key=int)]


def ask(live, **how):
    """The percentiles of the newest tick in which all tasks were seen: a busy node may be late in one."""

    def found():
        names = ["count", *SHARES]
        asked = [{"metric": "spread_value", "aggregator": name, **how} for name in names]
        answers = live.queries(asked, start="1h-ago")
        if len(answers) != len(names):
            return None
        count, *shares = [answer["dps"] for answer in answers]
        whole = [time for time in count if count[time] == TASKS and all(time in s for s in shares)]
        return whole and dict(zip(SHARES, (dps[max(whole, key=int)] for dps in shares)))

    return wait_for(found, f"{TASKS} tasks in a tick")


def exposed(live):
    """The percentiles of /metrics, which shows the newest tick, once all tasks were in it."""

    def found():
        text = live.get("/metrics")
        whole = re.search(r"^spread_value\{.*\} (.*)$", text, re.MULTILINE)
        if not whole or float(whole.group(1)) != pytest.approx(MEAN):
            return None
        shares = re.findall(r'^spread_value_spread\{.*percentile="(\d+)"\} (.*)$', text, re.MULTILINE)
        return {"p" + share: float(value) for share, value in shares}

    return wait_for(found, f"{TASKS} tasks in /metrics")


def newest_whole(live, step):
    """The newest point in which all tasks are. On a busy machine some ticks lack a node."""

    def found():
        series = json.loads(live.get(f"/api/v1/series?job={step.id}&metric=spread_value"))["series"][0]
        whole = [i for i, count in enumerate(series["count"]) if count == TASKS]
        return whole and {name: series[name][whole[-1]] for name in ("p5", "p50", "p95")}

    return wait_for(found, f"a point of {TASKS} tasks")


def archived(cluster, step):
    """The percentiles of the newest tick of the profile in which all tasks were."""
    words = [SONDE, "export", step.id, "--quiet", "--to", "jsonl:-", "--metrics", "spread_value*"]
    done = cluster.run(words, user=USER)
    assert done.returncode == 0, done.stderr
    series = {}
    for line in map(json.loads, done.stdout.splitlines()):
        if "metric" in line:
            share = line["tags"].get("percentile")
            found = series.setdefault("p" + share if share else "mean", {})
            found.update(zip(line["times"], line["values"]))
    whole = {time for time, value in series["mean"].items() if value == pytest.approx(MEAN)}
    newest_whole = max(whole.intersection(*(series[name] for name in SHARES)))
    return {name: series[name][newest_whole] for name in SHARES}


def test_percentiles_of_known_values_while_the_step_runs_and_after_it(cluster, program, tmp_path):
    done = program.parent / "done"
    done.unlink(missing_ok=True)
    levels = ("--telemetry-level=2", "--telemetry-period=100ms")
    step = Step(cluster, ["srun", "-N4", f"-n{TASKS}", "--overcommit", *levels, program, done])
    live = step.wait_nodes(4)
    expect_spread(ask(live))  # as recorded at the head
    expect_spread(ask(live, downsample="1s-avg"))  # of the nodes
    host = {"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": True}
    for result in live.query("spread_value", "p50", filters=[host]):
        newest([result])
        assert result["tags"]["host"] in ("n1", "n2", "n3", "n4")

    expect_spread(exposed(live))
    whole = newest_whole(live, step)
    for name in ("p5", "p50", "p95"):
        assert whole[name] == pytest.approx(exact(VALUES, SHARES[name]), rel=0.01)

    done.touch()
    assert step.wait(60)[0] == 0, step.stderr
    shown = step.profile()
    last = counter(shown, "spread_value")["spread"]["last"]  # of those that had not ended by then
    assert VALUES[0] * 0.99 <= last["p5"] <= last["p50"] <= last["p95"] <= VALUES[-1] * 1.01
    expect_spread(archived(cluster, step))
    cpu = counter(shown, "task_cpu_seconds_total", mode="user")["spread"]["mean"]
    assert 0 <= cpu["p5"] <= cpu["p50"] <= cpu["p95"] <= cpu["p99"] < 4, "CPUs at a time"
    assert "of the tasks below" in step.stderr
