"""Steps and metric-proxies that take each other's numbers.

With the real metric-proxy v2 where its binary is named by SONDE_METRIC_PROXY: it is in no package
registry, and `cargo build` of a checkout makes it. Else with a stand-in, and the tests of the real one
skip.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import pytest
from conftest import USER, wait_for
from telemetry import LEVEL, Step, counter, job_of, served

STAND_IN = pathlib.Path(__file__).with_name("standin_proxy.py")
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
REAL = os.environ.get("SONDE_METRIC_PROXY", "")
needs_real = pytest.mark.skipif(
    not REAL, reason="needs metric-proxy v2: SONDE_METRIC_PROXY=PATH names its binary"
)


class Proxied:
    """A step whose only task is a stand-in for a metric-proxy; stop() ends it."""

    def __init__(self, cluster, *options):
        self.directory = cluster.home(USER) / f"proxied{Step.count}"
        self.directory.mkdir(mode=0o777)
        self.directory.chmod(0o777)
        script = f"exec {PYTHON} {STAND_IN} {self.directory} > {self.directory}/said"
        self.step = Step(cluster, ["srun", *LEVEL, *options, "bash", "-c", script])

    def target(self):
        said = self.directory / "said"

        def port():
            found = re.search(r"^port (\d+)$", said.read_text() if said.exists() else "", re.MULTILINE)
            return found and found.group(1)

        return f"localhost:{wait_for(port, 'the port of the stand-in', 20)}"

    def stop(self):
        (self.directory / "stop").touch()
        code, _ = self.step.wait()
        assert code == 0, self.step.stderr
        return self.step.profile()


def listed(live):
    return json.loads(live.get("/join/list"))


def error_of(live, path):
    with pytest.raises(urllib.error.HTTPError) as error:
        live.get(path)
    return error.value.code, json.loads(error.value.read())


def last(live, metric):
    with contextlib.suppress(urllib.error.HTTPError):  # 400: it is not known yet
        answers = live.query(metric, "sum")
        points = [(int(t), v) for answer in answers for t, v in answer["dps"].items()]
        return max(points)[1] if points else None
    return None


def test_a_proxy_is_recorded_as_long_as_it_answers(cluster):
    proxied = Proxied(cluster, "-N1")
    live = proxied.step.wait_nodes(1)
    target = proxied.target()
    answer = json.loads(live.get(f"/join?to={target}&period=100"))
    assert answer["success"] and answer["period"] == 100 and answer["failed"] == ""
    (entry,) = listed(live)
    assert entry["ttype"] == "Proxy"
    assert entry["target_url"] == f"http://{target}/job?job=main"
    assert (entry["state"], entry["up"], entry["period"], entry["error"]) == ("up", 1, 100, "")
    assert abs(entry["last_scrape"] - time.time()) < 60
    wait_for(lambda: (last(live, "scrapes_total") or 0) >= 3, "three scrapes", 20)
    assert last(live, "load") == 2.5
    # Again: it is scraped already.
    assert json.loads(live.get(f"/join?to={target}&period=100"))["success"]

    (proxied.directory / "dead").touch()
    down = wait_for(lambda: (one := listed(live)[0])["state"] == "down" and one, "its failure", 20)
    assert down["up"] == 0 and down["error"] and down["last_scrape"] > 0
    (proxied.directory / "dead").unlink()
    wait_for(lambda: listed(live)[0]["state"] == "up", "its return", 20)

    assert json.loads(live.get(f"/disconnect?target={target}"))["success"]
    wait_for(lambda: not listed(live), "its end", 40)
    code, error = error_of(live, f"/disconnect?target={target}")
    assert code == 404 and error["success"] is False
    shown = proxied.stop()
    calls = counter(shown, "calls", function="MPI_Send", instance=target)
    assert calls["type"] == "counter" and calls["last"] >= 4
    assert not [note for note in job_of(shown)["notes"] if "exporter" in note]


def test_what_does_not_answer_is_an_error_and_is_listed(cluster):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        target = f"localhost:{closed.getsockname()[1]}"
        step = Step(cluster, ["srun", *LEVEL, "-N2", "--ntasks-per-node=1", "sleep", "60"])
        live = step.wait_nodes(2)
        code, error = error_of(live, f"/join?to={target}&node=*")
        assert code == 503 and error["success"] is False
        assert target in error["operation"] and "refused" in error["operation"]
        entries = listed(live)
        assert len(entries) == 2 and len({entry["node"] for entry in entries}) == 2
        for entry in entries:
            assert (entry["state"], entry["up"], entry["last_scrape"]) == ("failed", 0, 0)
            assert "refused" in entry["error"]
    step.process.terminate()
    step.wait()


def test_a_silent_target_is_told_of_and_hides_no_step(cluster):
    step = Step(cluster, ["srun", *LEVEL, "-N1", "sleep", "120"])
    step.wait_nodes(1)
    # The kernel takes its connections; nobody reads them.
    with socket.create_server(("127.0.0.1", 0)) as silent, served(cluster) as server:
        target = f"localhost:{silent.getsockname()[1]}"
        code, error = error_of(server, f"/join?to={target}&period=5000&job={step.id}")
        assert code == 503 and error["success"] is False
        assert target in error["operation"] and "no answer in 4" in error["operation"]
        # The head is not taken for silent.
        assert server.status("/alarms/list", server.token) == 200
        assert server.query("node_load1", filters=[], start="1m-ago")
        (entry,) = listed(server)
        assert entry["state"] == "failed" and "no answer in 4" in entry["error"]
    step.process.terminate()
    step.wait()


def test_an_alarm_may_be_about_one_node(cluster):
    step = Step(cluster, ["srun", *LEVEL, "-N2", "--ntasks-per-node=1", "sleep", "60"])
    live = step.wait_nodes(2)
    hosts = [node["host"] for node in json.loads(live.get(f"/api/v1/profile?job={step.id}"))["job"]["nodes"]]
    metric = "task_threads"  # of the node's tasks together
    for host, bound in ((hosts[0], 0), (hosts[1], 1e9)):
        rule = {"name": f"on {host}", "target": f"Node: {host}", "metric": metric, "operation": ">", "value": bound}
        with live._open("/alarms/add", live.token, json.dumps(rule).encode()) as answer:
            assert json.loads(answer.read())["success"]
    raised = wait_for(lambda: json.loads(live.get("/alarms")).get(f"Node: {hosts[0]}"), "the alarm", 20)
    assert raised[0]["node"] == hosts[0] and raised[0]["current"] >= 1
    both = json.loads(live.get("/alarms/list"))
    assert both[f"Node: {hosts[1]}"][0]["active"] is False
    code, error = error_of(live, "/alarms/add?name=x&metric=no_such&operation=%3E&value=1")
    assert code == 400 and error["success"] is False and "no_such" in error["operation"]
    step.process.terminate()
    step.wait()


# ---- The real one ----


@contextlib.contextmanager
def metric_proxy(*arguments):
    """One that runs; gives a function that asks it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [REAL, "--port", str(port), "--unix", f"{directory}/socket", "--target-prefix", directory,
             "--sampling-period", "200", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

        def ask(path):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                    return json.loads(answer.read())
            except urllib.error.URLError:
                return None  # it is starting

        ask.port = port
        try:
            wait_for(lambda: ask("/period"), "metric-proxy", 30)
            yield ask
        finally:
            process.kill()
            process.wait(30)


@needs_real
def test_a_real_proxy_takes_a_step_as_its_child(cluster):
    step = Step(cluster, ["srun", *LEVEL, "-N2", "--ntasks-per-node=1", "sleep", "120"])
    live = step.wait_nodes(2)
    name = "node_memory_MemTotal_bytes"
    wanted = json.loads(live.get(f"/trace/plot?jobid={step.id}&filter={name}"))[-1][1]
    with metric_proxy("--sub-proxies", f"sonde:{live.token}@127.0.0.1:{live.port}") as proxy:
        wait_for(
            lambda: step.id in [job["jobid"] for job in proxy("/job/list") or []], "the step at the proxy", 30
        )

        def gauge():
            for one in (proxy(f"/job?job={step.id}") or {"counters": []})["counters"]:
                if one["name"] == name:
                    value = one["ctype"]["Gauge"]
                    return value["hits"] and value["total"] / value["hits"]
            return None

        assert wait_for(gauge, "its memory", 30) == pytest.approx(wanted)
        scrape = next(s for s in proxy("/join/list") if s["ttype"] == "Proxy")
        assert scrape["target_url"].endswith("/job")
        step.process.terminate()
        step.wait()


@needs_real
def test_a_real_proxy_joins_a_step_as_its_parent(cluster):
    step = Step(cluster, ["srun", *LEVEL, "-N1", "sleep", "120"])
    live = step.wait_nodes(1)
    with metric_proxy("--root-proxy", f"sonde:{live.token}@127.0.0.1:{live.port}") as proxy:
        (entry,) = wait_for(lambda: listed(live), "the proxy at the step", 40)
        assert (entry["ttype"], entry["state"]) == ("Proxy", "up"), entry
        assert entry["target_url"].endswith(f":{proxy.port}/job?job=main")
        wait_for(lambda: (last(live, "proxy_cpu_total") or 0) >= 1, "the proxy's metrics", 30)
    step.process.terminate()
    step.wait()
