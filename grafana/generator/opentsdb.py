"""Panels, variables and annotations for the OpenTSDB data source, which is a running step's head or
`sonde serve`."""

import re

NAME = "opentsdb"
TITLE = ""  # behind a title, and behind a uid
UID = ""
SOURCE = {"type": "opentsdb", "uid": "${source}"}
# What every step has from its first tick on, at any level.
ALWAYS = "sonde_samples_total"
# Second names of metrics, for dashboards made for Dragon (docs/endpoints.md): not the application's.
OTHER_NAMES = ("DeviceMemoryUtilization", "DevicePowerUsage", "DeviceUtilization", "cpu_percent",
               "db_size", "load_average", "num_running_processes", "used_RAM")  # fmt: skip
AGGREGATORS = {"sum": "sum", "mean": "avg", "min": "min", "max": "max", "count": "count"}


def legend(text):
    return re.sub(r"\{(\w+)\}", r"$tag_\1", text)


def _filter(tag, pattern, group):
    if pattern == "*" or pattern.startswith("$"):
        kind = "wildcard"  # a variable with All stands for *
    elif pattern.startswith("!"):
        kind, pattern = "not_literal_or", pattern[1:]
    else:
        kind = "literal_or"
    return {"type": kind, "tagk": tag, "filter": pattern, "groupBy": group}


def _filters(query, scope):
    by = list(query.by) + (["job"] if scope == "steps" else [])
    job = {"type": "literal_or", "tagk": "job", "filter": "$job", "groupBy": "job" in by}
    filters = [job]
    if scope == "node":
        filters.append({**job, "tagk": "host", "filter": "$host", "groupBy": False})
    where = {**{tag: "*" for tag in by}, **query.where}
    filters += [_filter(tag, where[tag], tag in by) for tag in where if tag != "job"]
    return filters


def target(query, _panel, scope, metrics, ref):
    rate = metrics.is_rate(query)
    over = query.over or metrics[query.metric]["reduction"]
    if not query.over and metrics.is_counter(query.metric):
        over = "sum"
    return {
        "refId": ref,
        "datasource": SOURCE,
        "metric": query.metric,
        "aggregator": f"p{query.percentile}" if query.percentile else AGGREGATORS[over],
        "alias": legend(query.legend),
        "filters": _filters(query, scope),
        "disableDownsampling": False,
        # Of a counter the last value of an interval; Sonde's counters do not go back.
        "downsampleAggregator": "max" if rate or query.total else "avg",
        "downsampleFillPolicy": "none",
        "shouldComputeRate": rate,
        "isCounter": False,
    }


def overrides(panel, refs):
    """Names of lines. The data source's own aliases count where the browser asks it; where Grafana's server does, as
    since Grafana 13, they are made of the lines' labels."""
    return [
        {"matcher": {"id": "byFrameRefID", "options": ref},
         "properties": [{"id": "displayName", "value": re.sub(r"\{(\w+)\}", r"${__field.labels.\1}", query.legend)}]}
        for ref, query in zip(refs, panel.queries) if query.legend and panel.kind != "worst"
    ]  # fmt: skip


def variable(one, scope):
    """The question, and what stands for all values."""
    job = "" if one.tag == "job" else ", job=$job"
    host = ", host=$host" if scope == "node" and one.tag not in ("job", "host") else ""
    return f"tag_values({one.of}, {one.tag}{job}{host})", "*"


def question(text):
    """Of a variable, as it is stored."""
    return text


def metric_variable(_one, _scope):
    return "metrics()"


def annotations(_scope):
    """The data source asks for those of a metric, and cannot name a step: with several steps in the
    range those of all are shown."""
    name = "Phases, remarks and alarms"
    return [{
        "name": name, "datasource": SOURCE, "enable": True, "iconColor": "blue",
        "target": {"refId": "Anno", "fromAnnotations": True, "isGlobal": False, "name": name,
                   "target": ALWAYS},
    }]  # fmt: skip


WHERE_NOTES_ARE = (
    "Phases, remarks and alarms are marked in the charts. Where several steps ran in the time that is "
    "shown, those of all of them are.")  # fmt: skip
