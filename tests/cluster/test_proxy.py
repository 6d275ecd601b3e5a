"""metric-proxy's clients and Prometheus against running steps: at the head and at `sonde serve`."""

import json
import re
import time
import urllib.error
import urllib.parse

import pytest
from conftest import USER, wait_for
from prometheus import PROMETHEUS, prometheus
from telemetry import LEVEL, Step, counter, served


class Waiting:
    """A step whose tasks wait; stop() ends it."""

    def __init__(self, cluster, *options):
        self.stopper = cluster.home(USER) / f"stop{Step.count}"
        script = f"until [ -e {self.stopper} ]; do sleep 0.05; done"
        self.step = Step(cluster, ["srun", *LEVEL, *options, "bash", "-c", script])
        self.id = self.step.id

    def stop(self):
        self.stopper.touch()
        code, _ = self.step.wait()
        assert code == 0, self.step.stderr
        return self.step.profile()


def value_of(live, job, name):
    """What a snapshot has of a counter."""
    snapshot = json.loads(live.get(f"/job/?job={urllib.parse.quote(job)}"))
    for one in snapshot["counters"]:
        if one["name"] == name:
            kind = one["ctype"]
            return kind["Counter"]["value"] if "Counter" in kind else kind["Gauge"]["total"]
    return None


def test_values_are_pushed_into_a_running_step(cluster):
    waiting = Waiting(cluster, "-N2", "--ntasks-per-node=1")
    live = waiting.step.wait_nodes(2)
    assert live.status("/push?key=parts_total") == 401
    with pytest.raises(urllib.error.HTTPError) as error:
        live.get("/set?key=parts_total&value=1")
    assert error.value.code == 400
    live.get("/push?key=parts_total&doc=Parts%20done.")
    live.get("/set?key=parts_total&value=3")
    answer = json.loads(live.get("/accumulate?key=parts_total&value=0.5"))
    assert answer == {"operation": "inc", "success": True}
    wait_for(lambda: value_of(live, waiting.id, "parts_total") == 3.5, "the pushed value", 20)
    assert value_of(live, "main", "parts_total") == 3.5
    live.get("/accumulate?key=parts_total&value=1")
    wait_for(lambda: value_of(live, waiting.id, "parts_total") == 4.5, "one more", 20)
    # A tree of two nodes: both send to the head.
    edges = json.loads(live.get("/topo"))
    assert sorted(child for _, child in edges) == sorted(
        node["host"] for node in json.loads(live.get(f"/api/v1/profile?job={waiting.id}"))["job"]["nodes"]
    )
    assert all(parent.endswith(":head") for parent, _ in edges)
    shown = waiting.stop()
    entry = counter(shown, "parts_total")
    assert entry["last"] == 4.5
    assert entry["type"] == "counter"


def test_sonde_serve_knows_running_steps(cluster):
    # Nothing of steps before them, which are in the archive.
    began = str(time.time_ns() // 1_000_000)
    first = Waiting(cluster, "-N1", "-w", "n2")
    second = Waiting(cluster, "-N1", "-w", "n3")
    head = first.step.wait_nodes(1)
    second.step.wait_nodes(1)
    with served(cluster) as live:
        jobs = {job["jobid"]: job for job in json.loads(live.get("/job/list"))}
        assert {"main", "Node: n2", "Node: n3", first.id, second.id} <= set(jobs)
        name = "node_memory_MemTotal_bytes"
        one, other = (
            json.loads(live.get(f"/trace/plot?jobid={step}&filter={name}"))[-1][1]
            for step in (first.id, second.id)
        )
        on_node = value_of(live, "Node: n2", name)
        assert on_node == one
        text = live.get("/metrics?job=main")
        both = re.search(rf'^{name}{{job="main"}} (\S+)$', text, re.MULTILINE)
        assert float(both.group(1)) == one + other
        # A question about both, put together from what the heads say.
        answers = live.query(name, "sum", start=began, downsample="0all-last")
        latest = [list(answer["dps"].values())[-1] for answer in answers]
        assert one + other in latest
        # What is told to a step reaches its head.
        with pytest.raises(urllib.error.HTTPError) as error:
            live.get("/push?key=parts_total")
        assert error.value.code == 400  # two steps run
        live.get(f"/push?key=parts_total&job={first.id}")
        live.get(f"/set?key=parts_total&value=2&job={first.id}")
        wait_for(lambda: value_of(head, first.id, "parts_total") == 2, "the pushed value", 20)
        live.get(f"/alarms/add?name=low&target={first.id}&metric=parts_total&operation=%3C&value=9")
        alarms = json.loads(live.get("/alarms/list"))
        assert set(alarms) == {first.id, second.id}
        assert "low" in [alarm["name"] for alarm in alarms[first.id]]
        assert "low" not in [alarm["name"] for alarm in alarms[second.id]]
        names = {name for edge in json.loads(live.get("/topo")) for name in edge}
        assert {f"{first.id}/n2", f"{second.id}/n3"} <= names
        first.stop()
        second.stop()
        # And when they are over they are in the archive that is served.
        wait_for(
            lambda: first.id in [job["jobid"] for job in json.loads(live.get("/profiles"))],
            "the finished step",
            20,
        )
        assert value_of(live, first.id, "parts_total") == 2


def test_the_queue_is_slurms(cluster):
    waiting = Waiting(cluster, "-N1")
    with served(cluster) as live:
        jobs = json.loads(live.get("/queue/list"))["jobs"]
        assert jobs[str(waiting.step.job)]["STATE"] == "RUNNING"
    # The head itself, which has little of the user's environment.
    jobs = json.loads(waiting.step.live().get("/queue/list"))["jobs"]
    assert jobs[str(waiting.step.job)]["STATE"] == "RUNNING"
    waiting.stop()


@pytest.mark.skipif(PROMETHEUS is None, reason="needs prometheus: scripts/deps")
def test_prometheus_scrapes_and_federates_a_running_step(cluster):
    waiting = Waiting(cluster, "-N2", "--ntasks-per-node=1")
    waiting.step.wait_nodes(2)
    with served(cluster) as live:
        scrape = f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: sonde
    honor_labels: true
    authorization: {{credentials: {live.token}}}
    http_sd_configs:
      - url: http://127.0.0.1:{live.port}/api/sd
        refresh_interval: 1s
        authorization: {{type: Bearer, credentials: {live.token}}}
  - job_name: nodes
    scrape_interval: 5s  # every node is asked for every metric
    scrape_timeout: 5s
    honor_labels: true
    authorization: {{credentials: {live.token}}}
    params: {{scope: [node]}}
    static_configs: [{{targets: ["127.0.0.1:{live.port}"]}}]
"""
        name, wanted = "node_memory_MemTotal_bytes", None
        with prometheus(scrape) as ask:
            selector = f'{name}{{job="{waiting.id}",host=""}}'
            [sample] = wait_for(lambda: ask(selector), "a scraped sample", 60)
            wanted = value_of(live, waiting.id, name)
            gauge = json.loads(live.get(f"/trace/plot?jobid={waiting.id}&filter={name}"))[-1][1]
            assert float(sample["value"][1]) == gauge
            nodes = wait_for(
                lambda: (found := ask(f'{name}{{job="{waiting.id}",host!=""}}')) and len(found) == 2
                and found,
                "samples of both nodes",
                60,
            )
            assert sum(float(node["value"][1]) for node in nodes) == gauge
            # Counters come with their time of creation, and grow.
            created = ask(f'node_cpu_seconds_created{{job="{waiting.id}",host="",mode="user"}}')
            assert len(created) == 1
            wait_for(
                lambda: (found := ask(f'rate(node_cpu_seconds_total{{job="{waiting.id}",host="",mode="user"}}[10s])'))
                and float(found[0]["value"][1]) > 0,
                "a rate of a counter",
                60,
            )
            federate = f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: federated
    honor_labels: true
    metrics_path: /federate
    params: {{"match[]": ['{{job="{waiting.id}"}}']}}
    static_configs: [{{targets: ["127.0.0.1:{ask.port}"]}}]
"""
            with prometheus(federate) as above:
                [sample] = wait_for(lambda: above(selector), "a federated sample", 60)
                assert float(sample["value"][1]) == gauge
    assert wanted is not None
    waiting.stop()
