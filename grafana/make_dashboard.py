#!/usr/bin/env python3
"""Writes dashboards/sonde.json. The panels are the table below: edit it, not the JSON.

make_dashboard.py [--check]: with --check fails if the file is not what would be written.
"""

import json
import pathlib
import sys

SOURCE = {"type": "opentsdb", "uid": "${source}"}
OUT = pathlib.Path(__file__).parent / "dashboards" / "sonde.json"

# Row, then panels: title, unit of Grafana, stacked, queries. A query: metric, aggregator, rate,
# filters, alias.
JOB = ("job", "$job", False)
HOST = ("host", "$host", False)
BY_HOST = ("host", "$host", True)

PANELS = [
    ("Overview", [
        ("CPU time by mode, all nodes", "short", True, [
            ("node_cpu_seconds_total", "sum", True,
             [JOB, HOST, ("mode", "*", True)], "$tag_mode")]),
        ("Load, mean and extremes over nodes", "short", False, [
            ("node_load1", "avg", False, [JOB, HOST], "mean"),
            ("node_load1", "min", False, [JOB, HOST], "least"),
            ("node_load1", "max", False, [JOB, HOST], "most")]),
        ("Memory of all nodes", "bytes", False, [
            ("node_memory_MemTotal_bytes", "sum", False, [JOB, HOST], "total"),
            ("node_memory_MemAvailable_bytes", "sum", False, [JOB, HOST], "available")]),
        ("Waiting for a CPU", "percentunit", False, [
            ("node_pressure_cpu_waiting_seconds_total", "avg", True, [JOB, HOST], "mean"),
            ("node_pressure_cpu_waiting_seconds_total", "max", True, [JOB, HOST], "most")]),
    ]),
    ("By host", [
        ("Load", "short", False, [("node_load1", "avg", False, [JOB, BY_HOST], "$tag_host")]),
        ("Busy CPUs", "short", False, [
            ("node_cpu_seconds_total", "sum", True,
             [JOB, BY_HOST, ("mode", "not:idle|iowait", False)], "$tag_host")]),
        ("Available memory", "bytes", False, [
            ("node_memory_MemAvailable_bytes", "avg", False, [JOB, BY_HOST], "$tag_host")]),
        ("Network, received and sent", "Bps", False, [
            ("node_network_receive_bytes_total", "sum", True, [JOB, BY_HOST], "$tag_host in"),
            ("node_network_transmit_bytes_total", "sum", True, [JOB, BY_HOST], "$tag_host out")]),
    ]),
    ("Network and disks", [
        ("Received by device", "Bps", True, [
            ("node_network_receive_bytes_total", "sum", True,
             [JOB, HOST, ("device", "*", True)], "$tag_device")]),
        ("Sent by device", "Bps", True, [
            ("node_network_transmit_bytes_total", "sum", True,
             [JOB, HOST, ("device", "*", True)], "$tag_device")]),
        ("Read from disks", "Bps", False, [
            ("node_disk_read_bytes_total", "sum", True, [JOB, BY_HOST], "$tag_host")]),
        ("Written to disks", "Bps", False, [
            ("node_disk_written_bytes_total", "sum", True, [JOB, BY_HOST], "$tag_host")]),
    ]),
    ("Tasks", [
        ("CPU time of the tasks by mode", "short", True, [
            ("task_cpu_seconds_total", "sum", True,
             [JOB, HOST, ("mode", "*", True)], "$tag_mode")]),
        ("Resident memory of a task", "bytes", False, [
            ("task_resident_memory_bytes", "avg", False, [JOB, HOST], "mean"),
            ("task_resident_memory_bytes", "min", False, [JOB, HOST], "least"),
            ("task_resident_memory_bytes", "max", False, [JOB, HOST], "most")]),
        ("Threads", "short", False, [
            ("task_threads", "sum", False, [JOB, BY_HOST], "$tag_host")]),
        ("Storage read and written by the tasks", "Bps", False, [
            ("task_read_bytes_total", "sum", True, [JOB, HOST], "read"),
            ("task_written_bytes_total", "sum", True, [JOB, HOST], "written")]),
    ]),
    ("Application", [
        ("$app", "short", False, [
            ("$app", "avg", False, [JOB, HOST], "mean"),
            ("$app", "min", False, [JOB, HOST], "least"),
            ("$app", "max", False, [JOB, HOST], "most")]),
        ("$app by host", "short", False, [
            ("$app", "avg", False, [JOB, BY_HOST], "$tag_host")]),
    ]),
]


def make_filter(key, pattern, group_by):
    kind = "wildcard" if pattern == "*" else "literal_or"
    if pattern.startswith("not:"):
        kind, pattern = "not_literal_or", pattern[4:]
    return {"type": kind, "tagk": key, "filter": pattern, "groupBy": group_by}


def make_target(index, query):
    metric, aggregator, rate, filters, alias = query
    target = {
        "refId": "ABCDEFGH"[index], "datasource": SOURCE, "metric": metric,
        "aggregator": aggregator, "alias": alias, "shouldComputeRate": rate,
        "downsampleAggregator": "avg", "downsampleFillPolicy": "none",
        "filters": [make_filter(*one) for one in filters],
    }
    if rate:
        # The last value of a bucket; our counters never go back.
        target.update(downsampleAggregator="max", isCounter=False)
    return target


def make_panel(number, place, panel):
    title, unit, stacked, queries = panel
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 40 if stacked else 0,
              "showPoints": "never", "spanNulls": False,
              "stacking": {"mode": "normal" if stacked else "none", "group": "A"}}
    defaults = {"unit": unit, "custom": custom}
    if "$app" not in title:  # what an application measures may be negative
        defaults["min"] = 0
    return {
        "id": number, "type": "timeseries", "title": title, "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"},
                    "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [make_target(i, query) for i, query in enumerate(queries)],
    }


def make_variable(name, label, query, multiple):
    return {
        "name": name, "label": label, "type": "query", "datasource": SOURCE, "query": query,
        "definition": query, "refresh": 2, "sort": 1, "multi": multiple, "includeAll": multiple,
        "current": {"text": ["All"], "value": ["$__all"]} if multiple else {}, "options": [],
    }


def make_panels():
    panels, number, y = [], 1, 0
    for row, members in PANELS:
        panels.append({"id": number, "type": "row", "title": row, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        number, y = number + 1, y + 1
        for i, panel in enumerate(members):
            place = {"x": 12 * (i % 2), "y": y + 8 * (i // 2), "w": 12, "h": 8}
            panels.append(make_panel(number, place, panel))
            number += 1
        y += 8 * ((len(members) + 1) // 2)
    return panels


def make_dashboard():
    # An application's metrics have names of their own; any metric of the step may be chosen.
    variables = [
        {"name": "source", "label": "Source", "type": "datasource", "query": "opentsdb",
         "refresh": 1, "options": [], "current": {}},
        make_variable("job", "Step", "tag_values(node_load1, job)", False),
        make_variable("host", "Host", "tag_values(node_load1, host, job=$job)", True),
        make_variable("app", "Metric", "metrics()", False),
    ]
    return {
        "uid": "sonde-step", "title": "Sonde: a job step", "tags": ["sonde", "slurm"],
        "timezone": "browser", "schemaVersion": 38, "version": 1, "editable": True,
        "graphTooltip": 1, "refresh": "5s", "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": variables}, "annotations": {"list": []}, "panels": make_panels(),
    }


def main():
    text = json.dumps(make_dashboard(), indent=2) + "\n"
    if "--check" in sys.argv[1:]:
        if not OUT.exists() or OUT.read_text() != text:
            sys.exit(f"{OUT} is not what {sys.argv[0]} writes; run it")
        return
    OUT.write_text(text)


if __name__ == "__main__":
    main()
