"""Grafana's dashboards, for tests: their panels and queries, and the questions that Grafana makes of them."""

import collections
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ("opentsdb", "prometheus")


def load(source):
    """{file's name: dashboard}."""
    found = sorted((ROOT / "grafana" / "dashboards" / source).glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in found}


def panels(dashboard):
    """Those in collapsed rows, too; no rows."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def targets(source):
    """(where, panel, target) of all queries."""
    for name, dashboard in load(source).items():
        for panel in panels(dashboard):
            for target in panel.get("targets", []):
                yield f"{name}: {panel['title']} {target['refId']}", panel, target


def fill(text, values):
    """Variables as Grafana puts values in their place: $name, ${name}."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda m: values[m.group(1) or m.group(2)], text)


class Kept(dict):
    """What has no value stays: it is Grafana's own to fill, as in legends."""

    def __missing__(self, name):
        return f"${name}"


def opentsdb_query(target, values, interval="1s"):
    """What Grafana sends of a target in the body of /api/query."""
    query = {
        "metric": fill(target["metric"], values),
        "aggregator": target["aggregator"],
        "downsample": f"{interval}-{target['downsampleAggregator']}",
        "filters": [{**one, "filter": fill(one["filter"], values)} for one in target["filters"]],
    }
    if target["shouldComputeRate"]:
        query.update(rate=True, rateOptions={"counter": target["isCounter"], "dropResets": True})
    return query


def prometheus_query(target, values):
    spans = {"__rate_interval": "1m", "__range": "1h", "__interval": "1m"}
    return fill(target["expr"], collections.ChainMap(spans, values))
