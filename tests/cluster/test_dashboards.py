"""Every panel of Grafana's dashboards has an answer: of the head of a running step, and of a real Prometheus that
scrapes it. What such a step must have has data; what needs special hardware is empty and no error.

One step on two nodes has all of it: level 4, MPI, files, phases, metrics of its own.
"""

import contextlib
import json
import re
import shutil
import subprocess
import types
import urllib.error
import urllib.parse
import urllib.request

import dashboards
import pytest
from conftest import BUILD, ROOT, USER, wait_for
from prometheus import PROMETHEUS, prometheus
from telemetry import Step

NODES = ("n1", "n2")
TASKS = 4
# Of what a panel says that it needs, what this step has; the rest is hardware, or the machine's configuration.
HAS = re.compile(
    r"--telemetry-level=\d"
    r"|--telemetry-(mpi|io|functions), or level 4(, and a program with MPI( that uses MPI-IO)?"
    r"|, and code compiled with -finstrument-functions(, and SONDE_FUNCTION_SECONDS=1)?)?"
    r"|level 4, and a program with MPI|a program that (tells phases|sets it .*)"
)
SCRAPES = """
scrape_configs:
  - job_name: step
    honor_labels: true
    scrape_interval: 1s
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - job_name: nodes
    honor_labels: true
    scrape_interval: 2s
    scrape_timeout: 2s
    authorization: {{credentials: {token}}}
    params: {{scope: [node]}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def must_have_data(panel):
    needs = re.search(r"Needs (.*?)\.(?: Prometheus must|$)", panel["fieldConfig"]["defaults"]["noValue"])
    return needs is None or HAS.fullmatch(needs.group(1)) is not None


@pytest.fixture(scope="module")
def program(cluster):
    if not shutil.which("mpicc.mpich"):
        pytest.skip("no mpich here: scripts/deps")
    work = cluster.dir / "dashboard_work"
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", cluster.dir)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN", "-Wall", "-Werror", "-O1"]
    flags += ["-finstrument-functions", "-Wno-stringop-overflow"]
    source = ROOT / "tests" / "cluster" / "dashboard_work.c"
    subprocess.run(["mpicc.mpich", "-o", work, source, *flags, "-lsonde"], check=True)
    return work


@pytest.fixture(scope="module")
def step(cluster, program):
    """A running step with 6 s of samples."""
    room = cluster.dir / "tmp" / USER / "dashboards"
    room.mkdir(mode=0o777)
    room.chmod(0o777)
    stopper = room / "stop"
    words = ["srun", f"-N{len(NODES)}", f"-n{TASKS}", "--overcommit", "--mpi=pmi2", "--telemetry-level=4"]
    words += ["--telemetry-period=500ms", program, stopper, room]
    step = Step(cluster, words, env={"SONDE_FUNCTION_SECONDS": "1"})
    live = step.wait_nodes(len(NODES))

    def counts():
        with contextlib.suppress(urllib.error.HTTPError):  # 400: it is not known yet
            found = live.query("shown_steps_total", "count")
            return found and len([count for count in found[0]["dps"].values() if count == TASKS]) >= 6
        return False

    wait_for(counts, "6 s of all tasks", 60)
    values = {"job": step.id, "host": NODES[0], "disk": "*", "mountpoint": "*",
              "gauge": "shown_residual", "counter": "shown_steps_total"}  # fmt: skip
    yield types.SimpleNamespace(live=live, id=step.id, values=values)
    stopper.touch()
    assert step.wait()[0] == 0, step.stderr


@pytest.fixture(scope="module")
def stored(step):
    """A Prometheus that has scraped the step and its nodes several times."""
    if PROMETHEUS is None:
        pytest.skip("needs prometheus: scripts/deps")
    with prometheus(SCRAPES.format(token=step.live.token, port=step.live.port)) as one:
        for host in ("", *NODES):
            there = f'count_over_time(sonde_samples_total{{job="{step.id}",host="{host}"}}[1h]) >= 4'
            wait_for(lambda: one(there), f"4 samples of {host or 'the step'}", 60)
        yield one


def conclude(answers):
    """{where: (panel, number of points, error)}: names all that is wrong."""
    wrong = [f"{where}: {error}" for where, (_, _, error) in answers.items() if error]
    wrong += [f"{where}: no data" for where, (panel, points, error) in answers.items()
              if not error and points == 0 and must_have_data(panel)]  # fmt: skip
    assert not wrong, "\n".join(wrong)
    full = sum(points > 0 for _, points, _ in answers.values())
    assert full > 0.5 * len(answers), f"{full} of {len(answers)} have data"


def error_of(error):
    return f"{error.code} {error.read().decode(errors='replace')}"


def test_every_panel_has_an_answer_of_a_running_step(step):
    answers = {}
    # As the data source that is provisioned asks: a metric that is not there is no error.
    address = f"http://127.0.0.1:{step.live.port}/api/query?unknown=none"
    headers = {"Authorization": f"Bearer {step.live.token}", "Content-Type": "application/json"}
    for where, panel, target in dashboards.targets("opentsdb"):
        body = {"start": "1h-ago", "msResolution": True, "queries": [dashboards.opentsdb_query(target, step.values)]}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                found = json.loads(answer.read())
                answers[where] = panel, sum(len(one["dps"]) for one in found), ""
        except urllib.error.HTTPError as error:
            answers[where] = panel, 0, error_of(error)
    conclude(answers)


def test_every_panel_has_an_answer_of_prometheus(step, stored):
    # A variable with All stands for any value.
    values = {name: ".*" if value == "*" else value for name, value in step.values.items()}
    answers = {}
    for where, panel, target in dashboards.targets("prometheus"):
        try:
            answers[where] = panel, len(stored(dashboards.prometheus_query(target, values))), ""
        except urllib.error.HTTPError as error:
            answers[where] = panel, 0, error_of(error)
    conclude(answers)
    for dashboard in dashboards.load("prometheus").values():
        for one in dashboard["annotations"]["list"]:
            found = stored(dashboards.prometheus_query(one["target"], values))
            assert bool(found) == (one["name"] == "Phases that ended"), (one["name"], found)


def test_the_numbers_of_nodes_make_those_of_a_step_that_prometheus_lacks(step, stored):
    """Where only scope=node is scraped, panels about the whole step are the same."""
    checked = 0
    for where, _, target in dashboards.targets("prometheus"):
        query = dashboards.prometheus_query(target, {**step.values, "disk": ".*", "mountpoint": ".*"})
        if ") or " not in query or not stored(query):
            continue
        of_nodes = stored(query.replace('host=""', 'host="nowhere"'))
        assert len(of_nodes) == len(stored(query)), where
        checked += 1
    assert checked > 40, checked


def variables(source):
    for name, dashboard in dashboards.load(source).items():
        for one in dashboard["templating"]["list"]:
            if one["type"] == "query":
                yield f"{name}: {one['name']}", one


def chosen(variable, values):
    """Those that the variable's own regular expression lets through."""
    return sorted(value for value in values if re.search(variable["regex"].strip("/"), value))


# What each variable has to offer of this step.
OFFERED = {"host": list(NODES), "gauge": ["shown_residual"], "counter": ["shown_steps_total"]}


def check_offer(where, variable, values, step):
    name = variable["name"]
    if name == "job":
        assert step.id in values, where
    elif name in OFFERED:
        assert values == OFFERED[name], where
    else:
        assert values, where


def test_variables_are_looked_up_in_a_running_step(step):
    for where, one in variables("opentsdb"):
        query = dashboards.fill(one["query"], step.values)
        if query == "metrics()":
            found = json.loads(step.live.get("/api/suggest?type=metrics&q=&max=100000"))
        else:
            metric, tag, *more = re.fullmatch(r"tag_values\((.*)\)", query).group(1).split(", ")
            m = f"{metric}{{{','.join([f'{tag}=*', *more])}}}"
            answer = step.live.get(f"/api/search/lookup?limit=1000&{urllib.parse.urlencode({'m': m})}")
            found = {result["tags"][tag] for result in json.loads(answer)["results"]}
        check_offer(where, one, chosen(one, found), step)


def test_variables_are_looked_up_in_prometheus(step, stored):
    for where, one in variables("prometheus"):
        query = dashboards.fill(one["query"]["query"], step.values)
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
        asked = urllib.parse.urlencode({"match[]": selector})
        with urllib.request.urlopen(f"{stored.url}/api/v1/label/{label}/values?{asked}", timeout=20) as answer:
            found = json.loads(answer.read())["data"]
        check_offer(where, one, chosen(one, found), step)


def test_phases_are_annotations_of_a_running_step(step):
    for dashboard in dashboards.load("opentsdb").values():
        (one,) = dashboard["annotations"]["list"]
        (found,) = step.live.query(one["target"]["target"])
        assert {note["description"] for note in found["annotations"]} >= {"talk", "files"}


def test_what_list_metrics_prints_is_what_is_recorded(step):
    """Of all metrics that the step has: the dashboards' words, units and levels are made from that."""
    program = BUILD / "daemon" / "collect" / "list_metrics"
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    declared = {one["name"]: one for one in map(json.loads, printed.splitlines())}
    profile = json.loads(step.live.get(f"/api/v1/profile?job={step.id}"))
    recorded = {entry["metric"]: entry for entry in profile["footprint"]}
    own = {name for name in recorded if name.split("_")[0] in ("mpi", "io", "function", "phase")}
    assert len(own) > 20 and own <= declared.keys(), own - declared.keys()
    for name in recorded.keys() & declared.keys():
        for key in ("unit", "type", "level", "reduction", "help"):
            assert recorded[name][key] == declared[name][key], (name, key)
        assert ("spread" in recorded[name]) == declared[name]["spread"], name
