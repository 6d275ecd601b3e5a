"""A panel as Grafana's JSON."""

COLOURS = {"ok": "green", "warn": "orange", "bad": "red"}


def unit_of(panel, metrics):
    units = {"short" if query.over == "count" else metrics.unit(query.metric, panel.axis, query.total)
             for query in panel.queries}  # fmt: skip
    if len(units) != 1:
        raise SystemExit(f"{panel.title}: metrics of several units, {', '.join(sorted(units))}")
    return units.pop()


def describe(panel, metrics):
    """What is seen, and what each metric is in the words of its declaration."""
    lines = [panel.about] if panel.about else []
    for name in dict.fromkeys(query.metric for query in panel.queries):
        if metrics[name]["help"]:
            lines.append(f"`{name}`: {metrics[name]['help']}")
    return "\n\n".join(lines)


def why_empty(panel, scope, metrics, source):
    """What stands in the panel where there is nothing to show."""
    levels = [metrics[query.metric]["level"] for query in panel.queries]
    needs = panel.needs or (f"--telemetry-level={min(levels)}" if min(levels) > 1 else "")
    text = f"Not recorded here. Needs {needs}." if needs else "Nothing was recorded in this time."
    if source.NAME == "prometheus" and any(source.needs_nodes(one, scope, metrics) for one in panel.queries):
        text += " Prometheus must have the numbers of nodes (scope=node)."
    if source.NAME == "prometheus" and any(map(source.needs_step, panel.queries)):
        text += " Prometheus must have the numbers of the step (scope=job)."
    return text


def thresholds(panel):
    steps = [{"color": "green", "value": None}]
    steps += [{"color": COLOURS[colour], "value": value} for value, colour in panel.thresholds]
    return {"mode": "absolute", "steps": steps}


def _defaults(panel, scope, metrics, source):
    defaults = {"unit": unit_of(panel, metrics), "noValue": why_empty(panel, scope, metrics, source)}
    if not any(query.metric.startswith("$") for query in panel.queries):
        defaults["min"] = 0  # what an application measures may be negative
    if panel.thresholds:
        defaults["thresholds"] = thresholds(panel)
        defaults["color"] = {"mode": "thresholds"}
    if panel.kind in ("lines", "stack"):
        stacked = panel.kind == "stack"
        defaults["custom"] = {
            "drawStyle": "line", "lineWidth": 1, "fillOpacity": 40 if stacked else 0,
            "showPoints": "auto", "spanNulls": False,
            "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
            "axisLabel": panel.axis if panel.axis != "share" else "",
        }  # fmt: skip
    return defaults


REDUCED = {"calcs": ["lastNotNull"], "fields": "", "values": False}


def _stat(panel):
    many = len(panel.queries) > 1 or panel.queries[0].by
    return {
        "reduceOptions": {**REDUCED, "calcs": [panel.calc]}, "orientation": "auto",
        "colorMode": "value" if panel.thresholds else "none", "graphMode": "none",
        "justifyMode": "auto", "textMode": "value_and_name" if many else "value",
    }  # fmt: skip


def _bars(panel):
    return {
        "reduceOptions": {**REDUCED, "calcs": [panel.calc]}, "orientation": "horizontal",
        "displayMode": "basic", "showUnfilled": True, "valueMode": "text", "minVizWidth": 8,
        "minVizHeight": 16,
    }  # fmt: skip


def _lines(_panel):
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }  # fmt: skip


TYPES = {
    "lines": ("timeseries", _lines),
    "stack": ("timeseries", _lines),
    "stat": ("stat", _stat),
    "bars": ("bargauge", _bars),
    "worst": ("table", lambda _panel: {"showHeader": True, "cellHeight": "sm"}),
}


def _ten_worst(panel):
    """A row for each line, with its node and its mean, and of them the ten to look at."""
    order = {"field": "Mean", "desc": not panel.least}
    columns = {"excludeByName": {"Field": True, "job": True}, "renameByName": {"host": "node", "Mean": "mean"}}
    return [
        {"id": "reduce", "options": {"mode": "seriesToRows", "reducers": ["mean"], "labelsToFields": True}},
        {"id": "sortBy", "options": {"fields": {}, "sort": [order]}},
        {"id": "limit", "options": {"limitField": 10}},
        {"id": "organize", "options": columns},
    ]


def _to_the_node(source):
    return {
        "title": "This node", "targetBlank": False,
        "url": f"/d/sonde-node{source.UID}?${{source:queryparam}}&${{page:queryparam}}&${{job:queryparam}}"
               "&var-host=${__data.fields.node}&${__url_time_range}",
    }  # fmt: skip


def make(panel, number, place, dashboard, metrics, source):
    if not panel.queries:
        return {
            "id": number, "type": "text", "title": panel.title, "gridPos": place,
            "transparent": True, "options": {"mode": "markdown", "content": panel.about},
        }  # fmt: skip
    kind, options = TYPES[panel.kind]
    made = {
        "id": number, "type": kind, "title": panel.title, "description": describe(panel, metrics),
        "datasource": source.SOURCE, "gridPos": place,
        "fieldConfig": {"defaults": _defaults(panel, dashboard.scope, metrics, source),
                        "overrides": source.overrides(panel, "ABCDEFGH")},
        "options": options(panel),
        "targets": [source.target(query, panel, dashboard.scope, metrics, "ABCDEFGH"[i])
                    for i, query in enumerate(panel.queries)],
    }  # fmt: skip
    if panel.kind == "worst":
        made["transformations"] = _ten_worst(panel)
        made["fieldConfig"]["defaults"]["links"] = [_to_the_node(source)]
    if panel.repeat:
        made.update(repeat=panel.repeat, repeatDirection="h", maxPerRow=2)
    return made
