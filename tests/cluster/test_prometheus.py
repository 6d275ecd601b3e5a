"""What a real Prometheus has recorded of a step of four nodes is what Sonde says itself, whichever way
the numbers took.

One step is recorded in all ways at once, by two Prometheuses. The one below scrapes `sonde serve` and
`sonde serve --site`, which it asks for the targets. The one above takes what Sonde sends on, what the one
below sends on, and federates the one below.
"""

import collections
import contextlib
import json
import math
import shutil
import types

import pytest
from conftest import BUILD, USER, wait_for
from prometheus import PROMETHEUS, prometheus
from telemetry import LEVEL, Step, counter
from test_proxy import served
from test_site import BEHIND_A_PROXY, reverse_proxy, site

pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="needs prometheus: scripts/deps")

NODES = 4
PERIOD_MS = 100
PYTHON = "/usr/bin/python3"
# Numbers that are easily changed on the way: with many digits, at the ends of what 64 bits hold, larger
# than whole numbers are exact.
ODD = [0.1, 0.1 + 0.2, -1 / 3, 5e-324, 1.7976931348623157e308, 2.0**63, 123456789.12345679]
# Each task counts to this and its rank: more than a 32-bit number or a float holds, and the sum of four is
# still exact.
MANY = 2**50
TOTAL = NODES * MANY + sum(range(NODES))
PROGRAM = """
import os, sys, time
import sonde
rank = int(os.environ["SLURM_PROCID"])
sonde.counter("work_done_total").add(int(sys.argv[2]) + rank)
for i, number in enumerate(sys.argv[3:]):
    if i % 4 == rank:
        sonde.gauge("odd_number", tags={"which": str(i)}).set(float(number))
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
"""
# What comes with a series beside its own tags.
ADDED = ("__name__", "job", "user", "cluster", "way", "server", "instance")
CLOCK = ("sonde_samples_total", ())  # of the step it grows at each tick: its value tells the tick


def key_of(name, tags):
    return name, tuple(sorted(tags.items()))


def read_back(one, selector):
    """{series: {time in ms: value}} of what Prometheus has stored."""
    found = {}
    for labels, samples in one.samples(selector).items():
        metric = json.loads(labels)
        key = key_of(metric["__name__"], {k: v for k, v in metric.items() if k not in ADDED})
        assert key not in found, "a series is there twice"
        found[key] = dict(samples)
        assert len(found[key]) == len(samples)
    return found


def aggregator_of(entry):
    """Of counters the total is the step's number, of gauges what the metric says."""
    if entry["type"] != "gauge":
        return "sum"
    return {"mean": "avg"}.get(entry["reduction"], entry["reduction"])


def questions(entries):
    """(name in Prometheus, tags there, query) for each metric of a profile, and for the percentiles."""
    for name, entry in entries.items():
        filters = [{"type": "wildcard", "tagk": key, "filter": "*", "groupBy": True} for key in entry["tags"]]
        yield name, {}, {"metric": name, "aggregator": aggregator_of(entry), "filters": filters}
        if "spread" in entry:
            counts = entry["type"] != "gauge"
            for percentile in ("5", "50", "95", "99"):
                query = {"metric": name, "aggregator": f"p{percentile}", "filters": filters, "rate": counts}
                yield f"{name}_{'rate_' if counts else ''}spread", {"percentile": percentile}, query


def asked(live, entries):
    """What the step itself says over /api/query: {series: {time in ms: value}}."""
    found = {}
    for name, more, query in questions(entries):
        for result in live.queries([query], start="1h-ago", msResolution=True):
            # Where a task's own series answers for a while, the answer has its host and rank.
            tags = {key: value for key, value in result["tags"].items() if key not in ("job", "host", "task")}
            found[key_of(name, {**tags, **more})] = points(result)
    return found


def asked_of_nodes(live, names):
    """The same of each node and task."""
    found = {}
    for name in names:
        query = {"metric": name, "aggregator": "none"}
        for result in live.queries([query], start="1h-ago", msResolution=True):
            tags = {key: value for key, value in result["tags"].items() if key != "job"}
            found[key_of(name, tags)] = points(result)
    return found


def points(result):
    return {int(time): float(value) for time, value in result["dps"].items()}


def on_ticks(samples):
    """Without the first and the last of a node, which lie beside the ticks."""
    return {time: value for time, value in samples.items() if time % PERIOD_MS == 0}


def whole_rows(presence):
    """Whether all nodes are in the step's row of a tick, which a busy machine does not always manage; else
    /api/query answers from what the nodes have, and the row is sent as it is."""

    def is_whole(time):
        began = [one for one in presence if one["first"] <= time * 1_000_000]
        return bool(began) and began[-1]["nodes"] == NODES

    return is_whole


def complete_ticks(data, key):
    """When all that measured the metric had a sample, and it was in the step's row."""
    name, tags = key
    rate = name.endswith("_rate_spread")
    name = name.removesuffix("_rate_spread" if rate else "_spread")
    wanted = {(k, v) for k, v in tags if k != "percentile"}
    counts = collections.Counter(
        time
        for (other, its), samples in data.asked_nodes.items()
        if other == name and {(k, v) for k, v in its if k not in ("host", "task")} == wanted
        for time in on_ticks(samples)
    )
    most = max(counts.values(), default=0)
    ticks = {time for time, count in counts.items() if count == most and data.is_whole(time)}
    return {time for time in ticks if time - PERIOD_MS in ticks} if rate else ticks


def discovered(server, address, prefix, scope, token):
    """A job of Prometheus' configuration: the running steps that a server names."""
    seconds = 5 if scope == "node" else 1  # every node is asked for every metric
    credentials = f"{{type: Bearer, credentials: {token}}}"
    authorization = f"authorization: {credentials}" if token else ""
    return f"""
  - job_name: {server}-{scope}
    honor_labels: true
    scrape_interval: {seconds}s
    scrape_timeout: {seconds}s
    {authorization}
    http_sd_configs:
      - url: http://{address}{prefix}/api/sd?scope={scope}
        refresh_interval: 1s
        {authorization}
    relabel_configs: [{{target_label: server, replacement: {server}-{scope}}}]
"""


def by_name(address, token, step):
    """The same of one step that is named, running or not."""
    return f"""
  - job_name: named
    honor_labels: true
    scrape_interval: 1s
    authorization: {{credentials: {token}}}
    params: {{job: [{step}]}}
    static_configs: [{{targets: ["{address}"], labels: {{server: named}}}}]
"""


FEDERATES = """
scrape_configs:
  - job_name: below
    honor_labels: true
    scrape_interval: 1s
    metrics_path: /federate
    params: {"match[]": ['{server!=""}']}
    static_configs: [{targets: ["127.0.0.1:@PORT@"], labels: {way: federated}}]
"""
SENDS_ON = """
remote_write:
  - url: @URL@
    write_relabel_configs: [{target_label: way, replacement: sent}]
scrape_configs:
"""
SERVERS = ("serve", "site")


@pytest.fixture(scope="module")
def program(cluster):
    """The words and the environment of a step's tasks, and the file that ends them."""
    directory = cluster.dir / "programs"
    directory.mkdir()
    shutil.copytree(BUILD / "libclient" / "python" / "sonde", directory / "sonde")
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", directory)
    (directory / "program.py").write_text(PROGRAM)
    stopper = cluster.home(USER) / "stop"
    words = [PYTHON, directory / "program.py", stopper, str(MANY), *map(repr, ODD)]
    environment = {"PYTHONPATH": str(directory), "LD_LIBRARY_PATH": str(directory)}
    return types.SimpleNamespace(words=words, environment=environment, stopper=stopper)


@pytest.fixture(scope="module")
def recorded(cluster, program):
    """What both Prometheuses and the step itself have of it, while it runs and after it."""
    with contextlib.ExitStack() as stack:
        above, below = (stack.enter_context(prometheus()) for _ in range(2))
        sent_on = f"{above.url}/api/v1/write label.way=forwarded"
        cluster.conf(f"forward.step = {sent_on}\nforward.nodes = {sent_on} scope=node\n")
        above.start(FEDERATES.replace("@PORT@", str(below.port)))
        step = Step(cluster, ["srun", f"-N{NODES}", *LEVEL, *program.words], env=program.environment)
        head = step.wait_nodes(NODES)
        serve = stack.enter_context(served(cluster))
        behind = stack.enter_context(site(cluster, BEHIND_A_PROXY, "127.0.0.1:0"))
        proxy = stack.enter_context(reverse_proxy(behind.port(), USER))
        config = SENDS_ON.replace("@URL@", f"{above.url}/api/v1/write")
        for scope in ("job", "node"):
            config += discovered("serve", f"127.0.0.1:{serve.port}", "", scope, serve.token)
            config += discovered("site", f"127.0.0.1:{proxy}", f"/user/{USER}", scope, None)
        below.start(config + by_name(f"127.0.0.1:{serve.port}", serve.token, step.id))
        data = types.SimpleNamespace(scraped={}, federated={}, sent={})

        def stored(one, labels):
            return read_back(one, f'{{job="{step.id}",{labels}}}')

        def until(one, labels, samples):
            """Waits for so many samples."""
            there = f'count_over_time({CLOCK[0]}{{job="{step.id}",{labels}}}[1h]) >= {samples}'
            wait_for(lambda: one(there), f"{samples} samples with {labels}", 60)

        for server in SERVERS:
            until(below, f'server="{server}-job"', 5)
            until(below, f'server="{server}-node",host="n4"', 2)
            until(above, f'way="federated",server="{server}-job"', 3)
            until(above, f'way="federated",server="{server}-node",host="n4"', 1)
        for host in ("", *cluster.nodes):
            until(above, f'way="forwarded",host="{host}"', 20)
        for host, values in (('host=""', f"== {TOTAL}"), ('host!=""', f">= {MANY}")):
            counted = f'count(work_done_total{{job="{step.id}",way="forwarded",{host}}} {values}) == '
            tasks = 1 if host == 'host=""' else NODES
            wait_for(lambda: above(f"{counted}{tasks}"), f"what {tasks} have counted, sent on", 60)
        for server in (f"{server}-{scope}" for server in SERVERS for scope in ("job", "node")):
            data.federated[server] = stored(above, f'way="federated",server="{server}"')
            data.scraped[server] = stored(below, f'server="{server}"')

            newest = max(map(max, data.scraped[server].values()))

            def sent_whole():
                """Of a newer scrape some series may have come and others not: series are sent side by side."""
                sent = until_time(stored(above, f'way="sent",server="{server}"'), newest)
                return contains(sent, data.scraped[server]) and sent

            data.sent[server] = wait_for(sent_whole, f"all that was scraped of {server}, sent on", 60)
        data.forwarded = stored(above, 'way="forwarded",host=""')
        data.forwarded_nodes = stored(above, 'way="forwarded",host!=""')
        profile = json.loads(head.get(f"/api/v1/profile?job={step.id}"))
        entries = {entry["metric"]: entry for entry in profile["footprint"]}
        data.asked, data.asked_nodes = asked(head, entries), asked_of_nodes(head, entries)
        data.is_whole = whole_rows(profile["job"]["presence"])
        program.stopper.touch()
        assert step.wait()[0] == 0, step.stderr
        cluster.wait_clean(20)
        data.profile = step.profile()["profile"]
        data.ended = stored(above, 'way="forwarded",host=""')
        last = counter({"profile": data.profile}, CLOCK[0])["last"]
        until_ended = f'{CLOCK[0]}{{job="{step.id}",server="named"}} == {last}'
        wait_for(lambda: below(until_ended), "a scrape of the ended step", 30)
        data.named = stored(below, 'server="named"')
        return data


def until_time(all_, newest):
    return {key: {time: value for time, value in samples.items() if time <= newest} for key, samples in all_.items()}


def contains(all_, some):
    return all(samples.items() <= all_.get(key, {}).items() for key, samples in some.items())


def without_added(samples):
    """The series that the step itself has under that name."""
    return {key: values for key, values in samples.items() if not key[0].endswith("_created")
            and key[0] != "sonde_coverage_ratio"}  # fmt: skip


class Comparison:
    """Numbers are equal. Where the nodes' own series answer in place of a row, for times at which a busy
    machine was late, a sum of fractions may have the last bit of another order, and percentiles, which a
    row has from a sketch, agree within 1 % (docs/queries.md)."""

    def __init__(self):
        self.equal = self.fractions = self.near = 0

    def compare(self, stored, own, where):
        if stored is not None and stored == own:
            self.equal += 1
            self.fractions += not own.is_integer()
            return
        assert stored is not None and own is not None, where
        (name, _), *_ = where
        if name.endswith("_spread"):
            assert abs(stored - own) <= 0.01 * abs(own), (where, stored, own)
        else:
            assert abs(stored - own) <= 4 * math.ulp(own), (where, stored, own)
            assert not (stored.is_integer() and own.is_integer()), (where, stored, own)
        self.near += 1

    def conclude(self):
        assert self.equal > 1000 and self.fractions > self.near


def test_what_is_sent_on_are_the_rows_of_the_step(recorded):
    assert set(recorded.forwarded) <= set(recorded.asked)
    assert len(recorded.forwarded) > 200
    comparison = Comparison()
    for key, samples in recorded.forwarded.items():
        ticks = complete_ticks(recorded, key)
        ticks = {time for time in ticks if min(samples) <= time <= max(samples)}
        for time in ticks:
            comparison.compare(samples.get(time), recorded.asked[key].get(time), (key, time))
        assert key != CLOCK or len(ticks) >= 10
    comparison.conclude()


def test_what_is_sent_on_are_the_samples_of_each_node(recorded):
    assert set(recorded.forwarded_nodes) <= set(recorded.asked_nodes)
    assert len(recorded.forwarded_nodes) > 200 * NODES
    for key, samples in recorded.forwarded_nodes.items():
        own = {time: value for time, value in recorded.asked_nodes[key].items() if time <= max(samples)}
        assert all(value in (own.get(time), own.get(time - 1)) for time, value in samples.items()), key
        for time, value in own.items():
            # Beside the ticks a time is rounded up there, and down in an answer. Of two samples that have
            # the same time then, the later one is there.
            there = samples[time] if time in samples else samples[time + 1]
            assert value == there or time + 1 in own, (key, time)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("way", ["scraped", "federated", "sent"])
def test_a_scrape_has_the_numbers_of_one_tick(recorded, way, server):
    """Also after Prometheus itself has passed it on."""
    stored = getattr(recorded, way)[f"{server}-job"]
    assert set(without_added(stored)) <= set(recorded.asked)
    own = {key: on_ticks(samples) for key, samples in recorded.asked.items()}
    complete = {key: complete_ticks(recorded, key) for key in own}
    ticks = {value: time for time, value in own[CLOCK].items() if time in complete[CLOCK]}
    scrapes = {time: ticks[value] for time, value in stored[CLOCK].items() if value in ticks}
    assert len(set(scrapes.values())) >= 3
    assert [scrapes[time] for time in sorted(scrapes)] == sorted(scrapes.values())
    comparison = Comparison()
    for time, tick in scrapes.items():
        assert tick < time + 1000
        for key, samples in own.items():
            newest = max((t for t in samples if t <= tick), default=None)
            if newest in complete[key]:
                comparison.compare(stored[key].get(time), samples[newest], (key, time, tick))
    comparison.conclude()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("way", ["scraped", "federated", "sent"])
def test_a_scrape_of_nodes_has_what_each_measured_then(recorded, way, server):
    own = {}
    for (name, tags), samples in recorded.asked_nodes.items():
        own[name, tuple((key, value) for key, value in tags if key != "task")] = samples  # a node has one
    stored = without_added(getattr(recorded, way)[f"{server}-node"])
    assert len({key for key in stored if key[0] == CLOCK[0]}) == NODES
    assert set(stored) <= set(own)
    for key, samples in stored.items():
        for time, value in samples.items():
            # The metrics are asked for one after the other.
            near = {v for t, v in own[key].items() if time - 5000 < t < time + 5000}
            before = [v for t, v in own[key].items() if t <= time - 5000]
            assert value in near.union(before[-1:]), (key, time)


def test_numbers_of_a_program_are_what_it_set(recorded):
    """By every way, to the last bit."""
    ways = {"forwarded": recorded.forwarded}
    for server in SERVERS:
        for way in ("scraped", "federated", "sent"):
            ways[way, server] = getattr(recorded, way)[f"{server}-job"]
    for way, stored in ways.items():
        for which, number in enumerate(ODD):
            assert set(stored[key_of("odd_number", {"which": str(which)})].values()) == {number}, way
        counted = stored["work_done_total", ()]  # as long as tasks are starting it is less
        assert counted[max(counted)] == TOTAL, way
    for rank in range(NODES):
        tags = {"host": f"n{rank + 1}", "task": str(rank)}
        counted = recorded.forwarded_nodes[key_of("work_done_total", tags)]
        assert counted[max(counted)] == MANY + rank


def test_an_ended_step_has_the_numbers_of_its_profile(recorded):
    footprint = {key_of(one["metric"], one["tags"]): one for one in recorded.profile["footprint"]}
    newest = max(recorded.named[CLOCK])
    assert set(footprint) <= set(recorded.named)
    for key, entry in footprint.items():
        assert recorded.named[key][newest] == entry["last"], key
        samples = recorded.ended[key]
        assert samples[max(samples)] == entry["last"], key
    got = recorded.profile["job"]["coverage"]
    assert recorded.named["sonde_coverage_ratio", ()][newest] == got["got"] / got["expected"]
    began = {samples[newest] for (name, _), samples in recorded.named.items() if name.endswith("_created")}
    assert began == {recorded.profile["job"]["start"] / 1e9}
