"""At the end of steps of thousands of nodes the nodes below the head join the blocks of those below
them. Here twenty daemons are told of so many. That two levels join takes more of them than a machine has
processors for, since twelve blocks have to meet: tests/unit/joined_blocks_test.cc has it."""

import collections
import json
import re
import subprocess

from daemons import SONDE
from profile_file import joined_records
from test_end import check_nobody_gave_up

MANY = 100_000  # so many that one row is left of each node
JOIN_FROM = 4096  # BlockIntake::kJoinFrom
# So many rows are left of each node of JOIN_FROM. The nodes begin to send within 50 ms: the moments at
# which they begin are the closer, the fewer nodes there are.
PROFILE_LIMIT = {1: "1M", 2: "2304K"}


def sonde(archive, *words):
    return subprocess.run(
        [SONDE, "--archive", archive, *words], capture_output=True, text=True, check=True
    ).stdout


def exported(archive, name):
    """(metric, tags) -> [(time, value)] of the nodes' series, as `sonde export` has them."""
    series = {}
    for line in sonde(archive, "export", "--scope", "node", "--to", "jsonl:-", name).splitlines():
        told = json.loads(line)
        if "tags" in told:
            key = told["metric"], tuple(sorted(told["tags"].items()))
            assert key not in series, "a series comes twice"
            series[key] = list(zip(told["times"], told["values"], strict=True))
    return series


def of_metric(series, metric):
    """host -> points of the one series of a metric that a node has."""
    found = [(dict(tags), points) for (name, tags), points in series.items() if name == metric]
    found = [(tags["host"], points) for tags, points in found if "thinned" not in tags]
    assert len(dict(found)) == len(found)
    return dict(found)


def values_by_host(step):
    """How many values of its own each node has in the archive."""
    values = collections.Counter()
    for (_, tags), points in exported(step.archive, step.name).items():
        values[dict(tags)["host"]] += len(points)
    return values


def hosts_of(step):
    return {node.host for node in step.nodes}


def counted(node):
    return node.id + 0.125  # sums of them are exact


def level(node):
    return 0.5 + node.id / 4  # means of it are as exact


def run(make_step, rows=1, **options):
    """A step whose nodes all leave in one moment. `rows`: that are left of each, about."""
    step = make_step(conf=[f"profile_limit = {PROFILE_LIMIT[rows]}"], **options)
    step.start()
    for node in step.nodes:
        node.application.set_level(level(node))
        node.add(counted(node))
    step.wait_total()
    for node in step.nodes:
        node.application.close()
    for node in sorted(step.nodes, key=step.index, reverse=True):
        node.leave()
    step.finish()
    check_nobody_gave_up(step)
    step.file = step.directory / "step.sonde"
    sonde(step.archive, "export", "--to", step.file, step.name)
    return step


def check_values(step, archive):
    """All that was counted and set is there of each node, once."""
    series = exported(archive, step.name)
    done, levels = of_metric(series, "work_done_total"), of_metric(series, "work_level")
    assert set(done) == set(levels) == hosts_of(step)
    for node in step.nodes:
        assert done[node.host][-1][1] == counted(node)
        assert {value for _, value in levels[node.host]} == {level(node)}
    for points in series.values():
        times = [time for time, _ in points]
        assert times == sorted(set(times))
    return series


def joined_nodes(step):
    """Which nodes are in each record of joined blocks, by index."""
    return [{node for node, _, _ in record} for record in joined_records(step.file)]


def test_blocks_that_meet_are_one_record_and_read_as_the_nodes_recorded_them(make_step, tmp_path):
    step = run(make_step, nodes=20, fanout=10, expected=JOIN_FROM)
    met = joined_nodes(step)
    assert met and all(len(nodes) > 1 for nodes in met), "no blocks of children met"
    assert set().union(*met) <= set(range(10, 20)), "only children's blocks are joined"
    series = check_values(step, step.archive)
    # What the entries say by themselves, read by another reader than the product's.
    for record in joined_records(step.file):
        for node, group, times in record:
            if group.startswith("os"):
                host = step.at(node).host
                stored = {time for time, _ in of_metric(series, "sonde_samples_total")[host]}
                assert set(times) <= stored
    with step.serving() as ask:
        body = {
            "start": 0,
            "msResolution": True,
            "queries": [
                {"metric": "work_done_total", "aggregator": "none", "tags": {"job": step.name, "host": "*"}}
            ],
        }
        answers = ask("/api/query", body)
        last = {one["tags"]["host"]: list(one["dps"].values())[-1] for one in answers}
        assert last == {node.host: counted(node) for node in step.nodes}
    report = sonde(step.archive, "show", step.name)
    assert re.search(rf"work_done_total .*task 19 on {step.nodes[19].host}", report), report
    assert "everything can be read" in sonde(step.archive, "archive", "verify")
    other = tmp_path / "other"
    sonde(other, "import", step.file)
    assert check_values(step, other) == series
    step.close()

    # The same step, too small for joining, has the same series.
    alone = run(make_step, nodes=20, fanout=10, expected=JOIN_FROM - 1)
    assert not joined_nodes(alone)
    whole = lambda series: {key for key in series if "thinned" not in dict(key[1])}
    assert whole(check_values(alone, alone.archive)) == whole(series)


def test_every_nodes_own_series_are_there(make_step):
    step = make_step(nodes=8, expected=MANY, level=2)
    step.start()
    step.finish()
    check_nobody_gave_up(step)
    values = values_by_host(step)
    assert set(values) == hosts_of(step), values


def test_a_parent_that_dies_while_its_children_leave_costs_none_of_their_blocks(make_step):
    step = make_step(nodes=8, expected=MANY, level=2)
    step.start()
    for node in step.nodes:
        if node is not step.at(0):
            node.leave()
    step.at(0).kill()
    for node in step.nodes:
        if node is not step.at(0):
            node.daemon.wait_exit()
    step.finish()
    assert set(values_by_host(step)) >= hosts_of(step) - {step.at(0).host}
