"""Panels, variables and annotations for a Prometheus that scrapes /metrics or is sent to.

A series without the label `host` is a number of the whole step (scope=job), one with it is a node's
(scope=node). Where only nodes are there, the step's number is made of theirs.
"""

import re

from generator.metrics import COVERAGE

NAME = "prometheus"
TITLE = " (Prometheus)"  # behind a title, and behind a uid
UID = "-prometheus"
SOURCE = {"type": "prometheus", "uid": "${source}"}
ALWAYS = "sonde_samples_total"
OVER = {"sum": "sum", "mean": "avg", "min": "min", "max": "max", "count": "count"}
WORST = 10
STEP = 'host=""'


def legend(text):
    return re.sub(r"\{(\w+)\}", r"{{\1}}", text)


def _matcher(tag, pattern):
    if pattern.startswith("!"):
        return f'{tag}!~"{pattern[1:]}"'
    if pattern.startswith("$") or "|" in pattern:
        return f'{tag}=~"{pattern}"'
    return f'{tag}="{pattern}"'


def _series(name, matchers):
    if name.startswith("$"):
        name = re.sub(r"^\$([a-z]+)", r"${\1}", name)
        return f'{{__name__="{name}",{",".join(matchers)}}}'
    return f"{name}{{{','.join(matchers)}}}"


def _by(operator, tags, inner):
    return f"{operator} by ({', '.join(tags)}) ({inner})" if tags else f"{operator}({inner})"


def _mean_rates(series, by):
    """Over the time in which the series were there: rate() of the whole range divides by all of it. Where they were
    there for less than two intervals of Grafana's it is the slope through their samples."""
    shown = "[$__range:$__interval]"

    def extreme(operator, values):
        return f"{operator}_over_time({values}{shown})"

    counted = _by("sum", by, f"{extreme('max', series)} - {extreme('min', series)}")
    last = _by("max", by, extreme("max", f"timestamp({series})"))
    first = _by("min", by, extreme("min", f"timestamp({series})"))
    slope = _by("sum", by, f"deriv({series}[$__range])")
    return f"{counted} / ({last} - {first} > 0) or {slope}"


def _once(query, panel):
    """Whether one value for the whole range is asked for."""
    return panel.kind == "worst" or query.total and panel.kind == "stat"


def expression(query, panel, scope, metrics):
    metric = metrics[query.metric]
    counts = metrics.is_rate(query)
    job = 'job=~"$job"' if scope == "steps" else 'job="$job"'
    where = [_matcher(tag, pattern) for tag, pattern in query.where.items()]
    by = [*query.by, *(["job"] if scope == "steps" else [])]
    span = "$__range" if panel.kind == "worst" else "$__rate_interval"

    def values(host, name=query.metric, more=(), rate=counts, bare=False):
        series = _series(name, [job, *host, *where, *more])
        if bare:
            return series
        if rate:
            return f"rate({series}[{span}])"
        if query.total and _once(query, panel):
            return f"max_over_time({series}[$__range])"  # also of nodes that have left
        return f"avg_over_time({series}[{span}])" if panel.kind == "worst" else series

    if query.percentile:
        name = query.metric + ("_rate_spread" if counts else "_spread")
        percentile = f'percentile="{query.percentile}"'
        return _by("max", by, values([STEP], name, [percentile], False))
    if query.metric == COVERAGE:
        return values([STEP])
    own = "sum" if metrics.is_counter(query.metric) else OVER[metric["reduction"]]
    over = OVER[query.over] if query.over else own
    host = ['host="$host"'] if scope == "node" else ['host!=""']
    if panel.kind == "worst" and counts:
        of_nodes = _mean_rates(values(host, rate=False, bare=True), by)
    elif over == own or over == "count":
        of_nodes = _by(over, by, values(host))
    else:
        of_nodes = _by(over, by, _by(own, ["host", *(tag for tag in by if tag != "host")], values(host)))
    if panel.kind == "worst":
        return f"{'bottomk' if panel.least else 'topk'}({WORST}, {of_nodes})"
    if scope == "node" or "host" in by or over != own:
        return of_nodes
    return f"{_by(own, by, values([STEP]))} or {of_nodes}"


def needs_step(query):
    """Whether it takes what only the step has, with scope=job."""
    return bool(query.percentile) or query.metric == COVERAGE


def needs_nodes(query, scope, metrics):
    """Whether it takes numbers of nodes, which are scraped with scope=node."""
    own = "sum" if metrics.is_counter(query.metric) else metrics[query.metric]["reduction"]
    return scope == "node" or "host" in query.by or query.over not in ("", own)


def target(query, panel, scope, metrics, ref):
    once = _once(query, panel)
    return {
        "refId": ref, "datasource": SOURCE, "expr": expression(query, panel, scope, metrics),
        "legendFormat": legend(query.legend), "editorMode": "code", "format": "time_series",
        "instant": once, "range": not once,
    }  # fmt: skip


def overrides(_panel, _refs):
    return []


def variable(one, scope):
    matchers = [] if one.tag == "job" else ['job="$job"']
    if scope == "node" and one.tag not in ("job", "host"):
        matchers.append('host="$host"')
    series = _series(one.of, matchers) if matchers else one.of
    return f"label_values({series}, {one.tag})", ".*"


def question(text):
    """Of a variable, as it is stored."""
    return {"query": text, "refId": "PrometheusVariableQueryEditor-VariableQuery"}


def metric_variable(_one, _scope):
    return 'label_values({job="$job"}, __name__)'


def annotations(scope):
    job = 'job=~"$job"' if scope == "steps" else 'job="$job"'
    phases = f"rate(phase_seconds_total{{{job},{STEP}}}[$__rate_interval])"
    return [
        _annotation("Phases that ended", "blue", f"sum by (phase) ({phases}) > 0", "{{phase}}", "phase"),
        _annotation("Alerts of Prometheus", "red", f'ALERTS{{alertstate="firing",{job}}}',
                    "{{alertname}}", "severity"),
    ]  # fmt: skip


def _annotation(name, colour, expr, title, keys):
    return {
        "name": name, "datasource": SOURCE, "enable": True, "iconColor": colour, "expr": expr,
        "titleFormat": title, "tagKeys": keys, "step": "",
        "target": {"refId": "Anno", "expr": expr, "interval": "", "datasource": SOURCE},
    }  # fmt: skip


WHERE_NOTES_ARE = (
    "Prometheus has numbers only: it marks phases when they end, and its own alerts. Remarks and Sonde's "
    "alarms are on the step's page.")  # fmt: skip
