"""Grafana's own OpenTSDB data source shows a step as Sonde tells it, while the step runs and from the archive.

Every query that the data source makes is made by its own code (grafana.py) in all its settings: of version 2.1 to 2.4,
in seconds and milliseconds, with a token or a password. What it hands to Grafana's panels is compared, to the last
bit, with what Sonde answers to the same question in the other form, GET with `m=` and milliseconds. What the data
source itself makes of an answer is written down in `expected`.
"""

import contextlib
import http.client
import itertools
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse

import dashboards
import grafana
import pytest
from conftest import BUILD, OTHER_USER, ROOT, SONDE, USER, wait_for
from grafana_panels import downsampled, is_refused, panel, panels
from telemetry import LEVEL, Live, Step

# tsdbVersion and tsdbResolution: 2.1 or older, 2.2, 2.3, 2.4; seconds, milliseconds.
SETTINGS = list(itertools.product((1, 2, 3, 4), (1, 2)))
TASKS = 4


class Surface:
    """What answers as OpenTSDB, and the range of whole seconds that is asked for. `tries`: how often where a node may
    be too slow to answer, which the data source does not tell."""

    def __init__(self, live, start, end, tries):
        self.live, self.start, self.end, self.tries = live, start, end, tries

    def ask(self, path):
        """Status, reason, headers and body of Sonde's own answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.live.port, timeout=20)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.live.token}"})
            answer = connection.getresponse()
            return answer.status, answer.reason, answer.headers, answer.read().decode()

    def reference(self, m):
        """What Sonde says of the question in milliseconds: of all nodes."""
        asked = {"start": self.start, "end": self.end, "ms": "true", "m": m}

        def of_all():
            status, reason, headers, body = self.ask(f"/api/query?{urllib.parse.urlencode(asked)}")
            nodes = [headers.get(f"Sonde-Nodes-{name}") for name in ("Answered", "Expected")]
            return (status, reason, json.loads(body, parse_int=float)) if nodes[0] == nodes[1] else None

        return wait_for(of_all, f"an answer of all nodes to {m}", 20)

    def shown(self, source, asked, version, resolution, basic):
        """What the data source hands to panels, by name."""
        queries = [
            {
                "refId": name,
                "fromMs": self.start * 1000 + 999,
                "toMs": self.end * 1000,
                "intervalMs": 2900,
                "model": model,
            }
            for name, (model, _) in asked.items()
        ]
        settings = grafana.settings(self.live, version, resolution, basic=basic)
        return source.call(settings, call="query", queries=queries)["results"]


def expected(reference):
    """What the data source shows of an answer."""
    status, reason, results = reference
    if status != 200:
        return {"error": f"request failed, status: {status} {reason}"}
    if any(isinstance(value, str) for result in results for value in result["dps"].values()):
        # It takes no text for a number, and shows nothing of the answer.
        return {"error": "json: cannot unmarshal string into Go "}
    return {"frames": [frame_of(result) for result in results]}


def frame_of(result):
    # In seconds, and the last point of each second counts; null is zero to it.
    points = {int(time) // 1000: 0.0 if value is None else value for time, value in result["dps"].items()}
    notes = [{key: note[key] for key in ("description", "startTime")} for note in result.get("annotations", [])]
    return {
        "name": result["metric"],
        "labels": result["tags"],
        "keys": [*sorted(result["tags"]), *result["aggregateTags"]],
        "annotations": notes,
        "points": [(second * 1000, float(value).hex()) for second, value in points.items()],
    }


def frames(shown):
    """The same of what the data source has shown."""
    if "error" in shown:
        # After this Go names its own types.
        return {"error": re.sub(r"(cannot unmarshal string into Go ).*", r"\1", shown["error"])}
    return {"frames": [one_frame(frame) for frame in shown.get("frames", [])]}


def one_frame(frame):
    schema, data = frame["schema"], frame["data"]
    time, value = schema["fields"]
    assert (time["name"], time["type"], value["type"]) == ("Time", "time", "number")
    assert value["name"] == schema["name"] and schema["meta"]["type"] == "timeseries-multi"
    assert "entities" not in data and "globalAnnotations" not in schema["meta"]["custom"]
    times, values = data["values"]
    return {
        "name": schema["name"],
        "labels": value.get("labels", {}),
        "keys": schema["meta"]["custom"]["tagKeys"],
        "annotations": schema["meta"]["custom"].get("annotations", []),
        "points": [(int(at), float(number).hex()) for at, number in zip(times, values, strict=True)],
    }


def difference(got, want, where="answer"):
    """The first place at which two answers differ, and what is there; None if they are the same."""
    if isinstance(got, dict) and isinstance(want, dict) and got.keys() == want.keys():
        parts = [(f"{where} {key}", got[key], want[key]) for key in want]
    elif isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        parts = [(f"{where}[{i}]", *both) for i, both in enumerate(zip(got, want))]
    else:
        return None if got == want else f"{where} is {str(got)[:500]}, expected {str(want)[:500]}"
    return next(filter(None, (difference(ours, theirs, place) for place, ours, theirs in parts)), None)


def compare(surface, source, asked, settings=SETTINGS, basic=False):
    """Asks the data source and Sonde for panels; what they agree on, by name."""
    for left in reversed(range(surface.tries)):
        wants = {name: expected(surface.reference(m)) for name, (_, m) in asked.items()}
        differ = []
        for version, resolution in settings:
            shown = surface.shown(source, asked, version, resolution, basic)
            for name, want in wants.items():
                differs = difference(frames(shown[name]), want)
                if differs:
                    differ.append(f"{name}, version {version}, resolution {resolution}: {differs}")
        if not differ:
            return wants
        assert left, "\n".join(differ)


@pytest.fixture(scope="module")
def program():
    """Before the cluster: where there is no data source, nothing is started."""
    return grafana.build()


@pytest.fixture(scope="module")
def source(program, cluster):
    with grafana.running(program, cluster.dir) as source:
        yield source


class Shown(Step):
    """A step on two nodes that goes on until it is told to stop."""

    def __init__(self, cluster, user):
        self.stopper = cluster.dir / "tmp" / user / "grafana-stop"
        program = cluster.dir / "grafana_work"
        words = ["srun", "-N2", f"-n{TASKS}", "--overcommit", *LEVEL, program, self.stopper]
        super().__init__(cluster, words, user=user)

    def await_range(self):
        """Waits for a range of the step that no more samples change: its start and end in seconds."""
        live = self.wait_nodes(2)

        def counts(start="1h-ago"):
            """Milliseconds at which the gauge of all tasks is there."""
            with contextlib.suppress(urllib.error.HTTPError):  # 400: it is not known yet
                found = live.queries([{"metric": "panel_saw", "aggregator": "count"}], start=start, msResolution=True)
                return [int(time) for time, count in found[0]["dps"].items() if count == TASKS] if found else []
            return []

        start = wait_for(counts, "the tasks' gauges")[0] // 1000 + 1
        # What lies behind the end is in its answer too: up to 2 s of a bucket, and up to 2 s without a value.
        wait_for(lambda: max(counts(start), default=0) > (start + 12) * 1000, "12 s of the step", 40)
        return start, start + 9

    def stop(self):
        self.stopper.touch()
        return self.wait()[0]


@pytest.fixture(scope="module")
def steps(program, cluster):
    """One of USER that runs, and one of OTHER_USER that has ended, each with its range."""
    work = cluster.dir / "grafana_work"
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", cluster.dir)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN", "-Wall", "-Werror"]
    subprocess.run(["cc", "-o", work, ROOT / "tests/cluster/grafana_work.c", *flags, "-lsonde"], check=True)
    cluster.conf("opentsdb_nan = null\n")
    runs, ends = Shown(cluster, USER), Shown(cluster, OTHER_USER)
    for step in (runs, ends):
        step.range = step.await_range()
    assert ends.stop() == 0, ends.stderr
    yield runs, ends
    runs.stop()


@pytest.fixture(scope="module")
def running(steps):
    """The head of the step that runs."""
    return Surface(steps[0].live(), *steps[0].range, tries=3)


@pytest.fixture(scope="module")
def through(cluster, steps):
    """The same step through `sonde serve`, which asks its head."""
    with served(cluster, USER, "--nan-null") as live:
        yield Surface(live, *steps[0].range, tries=3)


@contextlib.contextmanager
def served(cluster, user, *options):
    """`sonde serve` of the user's archive."""
    process = cluster.popen([SONDE, "serve", "--listen", "127.0.0.1:0", *options], user=user)
    try:
        found = None
        while not found:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", line)
        yield Live("127.0.0.1", int(found.group(1)), found.group(2))
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def archive(cluster, steps):
    """The step that has ended: all of it, for nothing is added meanwhile."""
    start, end = steps[1].range
    with served(cluster, OTHER_USER, "--nan-null") as live:
        yield Surface(live, start - 5, end + 60, tries=1)


SURFACES = pytest.mark.parametrize("name", ["running", "through", "archive"])


@pytest.fixture
def surface(request, name):
    return request.getfixturevalue(name)


@SURFACES
def test_every_panel_shows_what_sonde_says(surface, source):
    one, other = sorted({tags["host"] for tags in lookup(surface, "panel_saw", 0)[1]})
    wants = {}
    for name, asked in panels(one, other).items():
        wants |= compare(surface, source, {name: asked})
    # That they are the same says nothing of what is empty everywhere.
    for name, want in wants.items():
        assert ("error" in want) == is_refused(name), (name, want)
        if not is_refused(name):
            assert bool(want["frames"]) == (name != "no more keys"), name
            assert all(frame["points"] for frame in want["frames"]), name
    hosts = [frame["labels"]["host"] for frame in wants["a line for each host"]["frames"]]
    assert hosts == [one, other]
    texts = {frame["labels"]["text"] for frame in wants["names to be escaped"]["frames"]}
    assert texts == {"a b", '<"|\\>&', "ä€🐌", "A", "{x=*}", "%20+"}
    (notes,) = [frame["annotations"] for frame in wants["annotations"]["frames"]]
    assert sum(note["description"].startswith("turn") for note in notes) > 2, notes
    left, filled = (wants[f"gaps {how}"]["frames"][0]["points"] for how in ("left", "filled with zero"))
    assert len(left) < len(filled)


# Not through `sonde serve`: these are 700 queries, and each is asked a second time there.
@pytest.mark.parametrize("name", ["running", "archive"])
def test_every_aggregator_of_a_group_and_of_an_interval(surface, source):
    names = json.loads(surface.ask("/api/aggregators")[3])
    assert len(names) > 30
    for name in names:
        asked = {name: panel(f"{name}:panel_saw{{Side=*}}", "panel_saw", name, tags={"Side": "*"})}
        if name != "none":
            interval = downsampled("2s", name)
            asked[f"2s-{name}"] = panel(f"max:2s-{name}:panel_saw", "panel_saw", "max", **interval)
        assert all(want["frames"] for want in compare(surface, source, asked).values())


@SURFACES
def test_panels_of_one_request_fail_by_themselves(surface, source):
    chosen = ("a line for all", "an unknown metric", "a metric of the nodes")
    asked = {name: panels("", "")[name] for name in chosen}
    wants = compare(surface, source, asked, basic=True)
    assert [bool(wants[name].get("frames")) for name in chosen] == [True, False, True]


@SURFACES
def test_a_panel_is_empty_where_the_range_has_no_data(surface, source):
    before = Surface(surface.live, surface.start - 7300, surface.start - 7200, surface.tries)
    for name in ("a line for all", "an interval"):
        assert compare(before, source, {name: panels("", "")[name]})[name] == {"frames": []}


@SURFACES
def test_save_and_test_says_whether_the_token_is_right(surface, source):
    for options in ({}, {"basic": True}):
        health = source.call(grafana.settings(surface.live, **options), call="health")
        assert health["Message"] == "Data source is working", health
        health = source.call(grafana.settings(surface.live, token="wrong", **options), call="health")
        assert health["Message"] == "OpenTSDB suggest endpoint returned status 401", health


def resource(surface, source, path, limit=1000, **parameters):
    """Status and text of what the data source answers to an editor or a variable."""
    asked = f"{path}?{urllib.parse.urlencode(parameters)}" if parameters else path
    got = source.call(grafana.settings(surface.live, limit=limit), call="resource", resource=asked)
    return int(got["status"]), got["body"]


def own(surface, path, **parameters):
    status, _, _, body = surface.ask(f"{path}?{urllib.parse.urlencode(parameters)}")
    return status, body


def lookup(surface, m, limit):
    """Status and tags of Sonde's own answer."""
    status, body = own(surface, "/api/search/lookup", m=m, limit=limit)
    return status, [result["tags"] for result in json.loads(body).get("results", [])]


@SURFACES
def test_names_are_suggested(surface, source):
    for parameters in (
        {"type": "metrics", "q": "panel_", "max": 1000},
        {"type": "metrics", "q": "", "max": 3},
        {"type": "tagk", "q": "", "max": 1000},
        {"type": "tagv", "q": "n", "max": 1000},
        {"type": "tagv", "q": "<", "max": 1000},
        {"type": "metrics", "q": "nothing starts so", "max": 1000},
        {"type": "nothing", "q": "", "max": 1000},
    ):
        got = resource(surface, source, "api/suggest", **parameters)
        assert got == own(surface, "/api/suggest", **parameters), parameters
    got = resource(surface, source, "api/suggest", type="metrics", q="panel_", max=1000)
    assert json.loads(got[1]) == [f"panel_{name}" for name in ("gaps", "huge", "odd", "parts_total", "saw")]
    for path in ("aggregators", "config/filters"):
        status, body = resource(surface, source, f"api/{path}")
        assert (status, json.loads(body)) == (200, sorted(json.loads(own(surface, f"/api/{path}")[1]))), path


def agree(surface, source, m, limit, wanted, **parameters):
    """A variable's values, which are those that `wanted` takes of the tags of Sonde's own answer."""
    for left in reversed(range(surface.tries)):
        status, tags = lookup(surface, m, limit)
        got = resource(surface, source, "api/search/lookup", limit, **parameters)
        want = sorted({value for one in tags for value in wanted(one)})
        if (got[0], json.loads(got[1])) == (status, want):
            return want
        assert left, (m, got, status, want)


@SURFACES
def test_variables_have_the_keys_and_values_of_tags(surface, source):
    keys = {
        metric: agree(surface, source, metric, 1000, list, type="key", metric=metric)
        for metric in ("panel_saw", "panel_parts_total", "node_load1", "no_such_metric")
    }
    assert keys["panel_saw"] == ["Side", "host", "job", "task"] and keys["node_load1"] == ["host", "job"]
    assert keys["no_such_metric"] == []

    def values(keys, limit=1000, metric="panel_saw"):
        """`keys` is what is written into tag_values(metric, ...)."""
        key, *conditions = keys.replace(" ", "").split(",")
        m = f"{metric}{{{','.join([f'{key}=*', *conditions])}}}"
        return agree(surface, source, m, limit, lambda tags: [tags[key]], type="keyvalue", metric=metric, keys=keys)

    assert values("task, Side=Left") == values("task,Side=Left", 0) == ["1", "3"]
    assert values("task") == ["0", "1", "2", "3"] and len(values("task", 1)) == 1
    assert len(values("host")) == 2 and len(values("text", metric="panel_odd")) == 6
    for unknown in ("host,host=n77", "rack"):
        assert values(unknown) == []


@SURFACES
def test_dashboards_have_no_errors(surface, source):
    """Of a step that has little of what they show: with the address that is provisioned, what is not there is empty."""
    host = lookup(surface, "panel_saw", 0)[1][0]["host"]
    values = {"job": lookup(surface, "panel_saw", 0)[1][0]["job"], "host": host, "disk": "*", "mountpoint": "*",
              "gauge": "panel_saw", "counter": "panel_parts_total"}  # fmt: skip
    settings = grafana.settings(surface.live)
    settings["url"] += "/?unknown=none"
    provisioned = (ROOT / "grafana/provisioning/datasources/sonde.yaml").read_text()
    assert "url: ${SONDE_URL}/?unknown=none" in provisioned
    asked = {where: json.loads(dashboards.fill(json.dumps(target), dashboards.Kept(values)))
             for where, _, target in dashboards.targets("opentsdb")}  # fmt: skip
    full = 0
    for where, model in asked.items():
        query = {"refId": where, "fromMs": surface.start * 1000, "toMs": surface.end * 1000, "intervalMs": 1000}
        shown = source.call(settings, call="query", queries=[{**query, "model": model}])["results"][where]
        assert "error" not in shown, (where, shown)
        full += bool(shown.get("frames"))
    assert full > 0.3 * len(asked), (full, len(asked))


def test_nan_as_a_text_is_refused_by_the_data_source(cluster, steps, source):
    """Why there is opentsdb_nan: as OpenTSDB writes it, the panel shows an error."""
    with served(cluster, OTHER_USER) as live:
        surface = Surface(live, *steps[1].range, tries=1)
        for name in ("gaps filled with nan", "a sum that no double holds"):
            assert "error" in compare(surface, source, {name: panels("", "")[name]})[name]


def test_save_and_test_says_that_nothing_answers(source):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen, nor does anyone else at this port
        live = Live("127.0.0.1", closed.getsockname()[1], "token")
        health = source.call(grafana.settings(live), call="health")
    assert "connection refused" in health["Message"], health
