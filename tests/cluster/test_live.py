"""Live events of a running step's head: a tick at a time, alarms as they come and go, and the end."""

import http.client
import json
import pathlib
import shutil
import tempfile
import urllib.parse

import pytest
from conftest import USER, wait_for
from telemetry import LEVEL, Step

PYTHON = shutil.which("python3", path="/usr/bin:/bin")
WORK = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""


class Events:
    """A reader of /api/live."""

    def __init__(self, live, path, last_id=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=30)
        headers = {"Authorization": f"Bearer {live.token}"}
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.getheader("Content-Type").startswith("text/event-stream")

    def __iter__(self):
        """(event, id, data) until the stream ends."""
        kind = number = data = None
        for raw in self.answer:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif not line and kind is not None:
                yield kind, number, data
                kind = number = data = None

    def until(self, kind):
        """The events up to the first of that kind, which is the last of them."""
        seen = []
        for event in self:
            seen.append(event)
            if event[0] == kind:
                return seen
        raise AssertionError(f"the stream ended without {kind}: {seen[-5:]}")

    def ticks(self, count):
        found = [self.until("tick")[-1] for _ in range(count)]
        return [(number, data) for _, number, data in found]


@pytest.fixture
def running(cluster, request):
    """A step of two tasks that ends when it is told to; a parameter is its environment."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="live", dir=cluster.home(USER)))
    directory.chmod(0o777)
    (directory / "work.py").write_text(WORK)
    stop = directory / "stop"
    step = Step(cluster, ["srun", "-N2", *LEVEL, PYTHON, str(directory / "work.py"), str(stop)],
                env=getattr(request, "param", None))
    step.stop = stop.touch
    yield step
    step.stop()
    step.process.wait(30)


def test_every_tick_is_told_until_the_step_ends(running):
    live = running.wait_nodes(2)
    query = urllib.parse.quote("max:node_load1{host=*}")
    events = Events(live, f"/api/live?metric=node_load1,task_processes&m={query}")
    kind, _, first = next(iter(events))
    assert (kind, first) == ("step", {"job": running.id, "period": 0.1})
    ticks = events.ticks(10)
    times = [number for number, _ in ticks]
    # None is left out and none comes twice: a step's rows are 100 ms apart.
    assert [later - earlier for earlier, later in zip(times, times[1:])] == [100_000_000] * 9
    for number, data in ticks:
        assert data["job"] == running.id and abs(data["time"] - number / 1e9) < 0.001
        assert {"node_load1"} <= {one["metric"] for one in data["series"]}
    hosts = {one["tags"]["host"] for _, data in ticks for one in data["queries"]}
    assert len(hosts) == 2
    # Who comes back gets what it has missed.
    again = Events(live, "/api/live?metric=node_load1", last_id=times[4])
    assert [number for number, _ in again.ticks(5)] == times[5:]
    running.stop()
    *_, (kind, _, end) = events.until("end")
    assert kind == "end" and end["job"] == running.id
    assert next(iter(events), None) is None, "nothing after the end, and the connection closes"
    assert running.wait()[0] == 0


def test_alarms_are_told_as_they_are_raised_and_over(running):
    live = running.wait_nodes(2)
    events = Events(live, "/api/live?metric=node_load1")
    rule = urllib.parse.quote("node_memory_MemTotal_bytes any > 1 critical")
    live.get(f"/alarms/add?name=there&rule={rule}")
    *_, (_, _, raised) = events.until("alarm")
    assert (raised["name"], raised["active"], raised["severity"]) == ("there", True, "critical")
    assert raised["node"] in {"n1", "n2", "n3", "n4"}
    # Who only comes now is told at first.
    late = Events(live, "/api/live?metric=node_load1")
    assert late.until("alarm")[-1][2]["name"] == "there"
    live.get("/alarms/del?name=there")
    running.stop()
    events.until("end")


def test_two_streams_do_not_keep_a_step_from_ending(running):
    live = running.wait_nodes(2)
    streams = [Events(live, "/api/live?metric=node_load1") for _ in range(2)]
    for stream in streams:
        stream.ticks(1)
    running.stop()
    code, seconds = running.wait()
    assert code == 0 and seconds < 8
    for stream in streams:
        stream.until("end")


@pytest.mark.parametrize("running", [{"SONDE_ALARM_COMMAND": "/bin/false"}], indirect=True)
def test_alarms_and_notes_of_a_step_are_annotations(running):
    live = running.wait_nodes(2)
    events = Events(live, "/api/live?metric=node_load1")
    rule = urllib.parse.quote("node_memory_MemTotal_bytes any > 1")
    live.get(f"/alarms/add?name=there&rule={rule}")
    failed = "the command for alarms, /bin/false, failed: ended with code 1"

    def told():
        notes = json.loads(live.get("/api/annotations?start_time=1h-ago"))
        by_kind = {note["custom"]["kind"]: note for note in notes}
        return by_kind if {"remark", "note"} <= set(by_kind) else None

    kinds = wait_for(told, "the annotations", 20)
    assert kinds["remark"]["description"].startswith("alarm there")
    assert kinds["remark"]["custom"]["job"] == running.id
    assert failed in kinds["note"]["description"] and kinds["note"]["endTime"] == 0
    # As Grafana asks for them: beside a query, and global ones.
    (answer, *_) = live.queries(
        [{"metric": "node_load1", "aggregator": "sum"}], start="1h-ago", globalAnnotations=True
    )
    for key in ("annotations", "globalAnnotations"):
        assert any(failed in note["description"] for note in answer[key]), key
    # And who reads along is told.
    seen = ""
    while failed not in seen:
        seen = events.until("note")[-1][2]["description"]
    running.stop()
    events.until("end")
