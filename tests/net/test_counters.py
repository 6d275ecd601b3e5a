"""What a node has counted stays in the totals of the step, whatever becomes of the node: while the
step runs and afterwards, for every reader alike (docs/queries.md, "Counters")."""

import csv
import itertools
import subprocess

from daemons import SONDE
from step import COUNTED

# Of whole nodes; counts by itself.
CPU = "node_cpu_seconds_total"
ROUNDING = 1e-6


def ask(request, job, metric, tags=None, **query):
    """The points of the sum over the step, in order: [(s, value)]."""
    query = {"metric": metric, "aggregator": "sum", "tags": {"job": job, **(tags or {})}} | query
    body = {"start": 1, "end": 2_000_000_000, "msResolution": True, "queries": [query]}
    answers = request("/api/query", body)
    assert len(answers) == 1, answers
    return sorted((int(at) / 1000, value) for at, value in answers[0]["dps"].items())


def check_rises(points, what):
    for (_, before), (at, value) in itertools.pairwise(points):
        assert value >= before - ROUNDING, f"{what} falls at {at}: {points}"


def check_total(points, total, what):
    check_rises(points, what)
    assert points[-1][1] == total, f"{what} ends in {points[-1][1]}, not {total}: {points}"


def check_not_negative(rates, what):
    assert all(rate >= -ROUNDING for _, rate in rates), f"{what}: {rates}"


def step_that_ends(make_step):
    """Four nodes, two of them behind another one, that end one after the other while the others go on
    counting. Gives what the running step told when one was left."""
    step = make_step(nodes=4, level=2)
    step.start()
    for node in step.nodes:
        node.add(100)
    step.wait_total()
    for index in (3, 0, 1):
        for node in step.alive():
            node.add(10 + index)
        step.at(index).leave()
        step.at(index).daemon.wait_exit()
        step.wait_total()
    live = ask(step._request, step.name, COUNTED)
    step.at(2).add(5)
    step.finish()
    return step, live


def exported(step):
    """The step's numbers in a file of `sonde export`."""
    path = step.directory / "step.csv"
    arguments = [SONDE, "--archive", step.archive, "export", step.name, "--to", path, "--quiet"]
    subprocess.run([*arguments, "--metrics", COUNTED, "--scope", "job"], check=True)
    with path.open() as file:
        rows = list(csv.reader(file))[1:]
    return [(float(row[0]), float(row[-1])) for row in rows if row[-1]]


def test_a_sum_never_falls_when_nodes_end(make_step):
    step, live = step_that_ends(make_step)
    check_rises(live, "the running step's sum")
    total = step.injected
    with step.serving() as request:
        for aggregator in ("sum", "zimsum", "pfsum"):
            points = ask(request, step.name, COUNTED, aggregator=aggregator)
            check_total(points, total, aggregator)
        for by in ("100ms-last", "300ms-max", "1s-last"):
            check_total(ask(request, step.name, COUNTED, downsample=by), total, by)
        for by in (None, "1s-avg", "1s-last"):
            rates = ask(request, step.name, COUNTED, rate=True, **({"downsample": by} if by else {}))
            check_not_negative(rates, f"the rate by {by}")
        check_rises(ask(request, step.name, CPU, {"mode": "user"}), CPU)

        trace = f"jobid={step.name}&filter={COUNTED}"
        check_total(request(f"/trace/plot?{trace}"), total, "/trace/plot")
        check_total(request(f"/trace/plot?{trace}&points=5"), total, "/trace/plot of few points")
        for points in ("", "&points=5"):
            change = request(f"/trace/plot?{trace}&derivate=true{points}")
            check_not_negative(change, "/trace/plot's derivative")
        lines = request(f"/trace/json?jobid={step.name}")["metrics"]
        check_total(lines[COUNTED], total, "/trace/json")
        check_not_negative(lines[f"deriv__{COUNTED}"], "/trace/json's derivative")
    step.check_stored_total()
    check_total(exported(step), total, "sonde export")
