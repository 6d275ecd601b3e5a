"""Panels and annotations as Grafana's editors save them, each with the same question in the form of Sonde's GET."""


def panel(m, metric, aggregator="sum", **model):
    """What a panel's editor saves, and the same question as Sonde's GET takes it."""
    whole = {"metric": metric, "aggregator": aggregator, "refId": "A", "currentTagKey": "", **model}
    whole.setdefault("disableDownsampling", "downsampleAggregator" not in model)
    return whole, m


def filtered(kind, pattern, key="Side", group=True):
    return {"filters": [{"type": kind, "tagk": key, "filter": pattern, "groupBy": group}]}


def downsampled(interval, function="avg", fill="none"):
    return {"downsampleInterval": interval, "downsampleAggregator": function, "downsampleFillPolicy": fill}


def rate(**options):
    return {"shouldComputeRate": True, **options}


def panels(one, other):
    """By name, for a step on these two hosts."""
    return {
        "a line for all": panel("sum:panel_saw", "panel_saw"),
        "a line for each host": panel("avg:panel_saw{host=*}", "panel_saw", "avg", tags={"host": "*"}),
        "some hosts": panel(
            f"max:panel_saw{{host={one}|{other}}}", "panel_saw", "max", tags={"host": f"{one}|{other}"}
        ),
        "hosts by a pattern": panel("max:panel_saw{host=N*}", "panel_saw", "max", tags={"host": "N*"}),
        "two keys": panel("sum:panel_saw{Side=*,task=*}", "panel_saw", tags={"task": "*", "Side": "*"}),
        "literal_or": panel(
            "sum:panel_saw{Side=literal_or(Left|right)}", "panel_saw", **filtered("literal_or", "Left|right")
        ),
        "iliteral_or": panel("sum:panel_saw{Side=iliteral_or(LEFT)}", "panel_saw", **filtered("iliteral_or", "LEFT")),
        "not_literal_or": panel(
            "sum:panel_saw{Side=not_literal_or(Left)}", "panel_saw", **filtered("not_literal_or", "Left")
        ),
        "not_iliteral_or": panel(
            "sum:panel_saw{Side=not_iliteral_or(left)}", "panel_saw", **filtered("not_iliteral_or", "left")
        ),
        "wildcard": panel("sum:panel_saw{Side=wildcard(L*t)}", "panel_saw", **filtered("wildcard", "L*t")),
        "iwildcard": panel("sum:panel_saw{Side=iwildcard(*T)}", "panel_saw", **filtered("iwildcard", "*T")),
        "regexp": panel("sum:panel_saw{Side=regexp(ef|ig)}", "panel_saw", **filtered("regexp", "ef|ig")),
        "not_key": panel("sum:panel_saw{}{text=not_key()}", "panel_saw", **filtered("not_key", "", "text")),
        "a filter that does not group": panel(
            "sum:panel_saw{}{Side=wildcard(*)}", "panel_saw", **filtered("wildcard", "*", group=False)
        ),
        # Of both forms Go writes the tags later, and of two forms the later one counts.
        "filters and tags": panel(
            "sum:panel_saw{host=*}", "panel_saw", tags={"host": "*"}, **filtered("literal_or", "Left")
        ),
        "no more keys": panel(
            "sum:explicit_tags:panel_saw{Side=wildcard(*)}{}",
            "panel_saw",
            explicitTags=True,
            **filtered("wildcard", "*"),
        ),
        "exactly the keys": panel(
            "sum:explicit_tags:panel_saw{Side=*,host=*,job=*,task=*}",
            "panel_saw",
            explicitTags=True,
            tags={"Side": "*", "host": "*", "job": "*", "task": "*"},
        ),
        "names to be escaped": panel("none:panel_odd{text=*}", "panel_odd", "none", tags={"text": "*"}),
        "sums of huge and tiny numbers": panel("sum:panel_odd{text=*}", "panel_odd", tags={"text": "*"}),
        "a sum that no double holds": panel("sum:panel_huge", "panel_huge"),
        "a rate": panel("sum:rate:panel_parts_total", "panel_parts_total", **rate()),
        "a rate by host": panel(
            "sum:rate:panel_parts_total{host=*}", "panel_parts_total", tags={"host": "*"}, **rate()
        ),
        "a counter": panel(
            "sum:rate{dropcounter}:panel_saw", "panel_saw", **rate(isCounter=True, counterMax="", counterResetValue="")
        ),
        "a counter and its most": panel(
            "sum:rate{counter,100}:panel_saw", "panel_saw", **rate(isCounter=True, counterMax="100")
        ),
        "a counter of 64 bits": panel(
            "none:rate{counter,9223372036854775807}:panel_saw",
            "panel_saw",
            "none",
            **rate(isCounter=True, counterMax=str(2**63 - 1)),
        ),
        "a counter and what is no reset": panel(
            "sum:rate{counter,100,300}:panel_saw",
            "panel_saw",
            **rate(isCounter=True, counterMax="100", counterResetValue="300"),
        ),
        "a counter and a reset alone": panel(
            "sum:rate{counter,,5}:panel_saw", "panel_saw", **rate(isCounter=True, counterResetValue="5")
        ),
        "a counter whose most is no number": panel(
            "sum:rate{dropcounter}:panel_saw", "panel_saw", **rate(isCounter=True, counterMax="many")
        ),
        "an interval": panel("sum:1s-avg:panel_saw{host=*}", "panel_saw", tags={"host": "*"}, **downsampled("1s")),
        "an interval with a point": panel("sum:1500ms-max:panel_saw", "panel_saw", **downsampled("1.5s", "max")),
        "an interval shorter than a second": panel(
            "sum:300ms-sum:panel_saw", "panel_saw", **downsampled("300ms", "sum")
        ),
        "the interval of the panel": panel("sum:2s-min:panel_saw", "panel_saw", downsampleAggregator="min"),
        "one point for all": panel(
            "sum:0all-sum:panel_saw{host=*}", "panel_saw", tags={"host": "*"}, **downsampled("0all", "sum")
        ),
        "an interval and a rate": panel(
            "sum:rate:1s-max:panel_parts_total{host=*}",
            "panel_parts_total",
            tags={"host": "*"},
            **downsampled("1s", "max"),
            **rate(),
        ),
        "gaps left": panel("sum:1s-avg:panel_gaps{host=*}", "panel_gaps", tags={"host": "*"}, **downsampled("1s")),
        "gaps filled with null": panel(
            "sum:1s-avg-null:panel_gaps{host=*}", "panel_gaps", tags={"host": "*"}, **downsampled("1s", "avg", "null")
        ),
        "gaps filled with zero": panel(
            "sum:1s-avg-zero:panel_gaps{host=*}", "panel_gaps", tags={"host": "*"}, **downsampled("1s", "avg", "zero")
        ),
        "gaps filled with nan": panel(
            "sum:1s-avg-nan:panel_gaps{host=*}", "panel_gaps", tags={"host": "*"}, **downsampled("1s", "avg", "nan")
        ),
        "gaps at each tick": panel(
            "none:70ms-avg-zero:panel_saw", "panel_saw", "none", **downsampled("0.07s", "avg", "zero")
        ),
        "a metric of the nodes": panel("avg:node_load1{host=*}", "node_load1", "avg", tags={"host": "*"}),
        "processors": panel(
            "sum:rate{dropcounter}:1s-max:node_cpu_seconds_total{mode=*}",
            "node_cpu_seconds_total",
            tags={"mode": "*"},
            **downsampled("1s", "max"),
            **rate(isCounter=True),
        ),
        "a metric of the tasks": panel(
            "sum:task_processes{host=*,task=*}", "task_processes", tags={"host": "*", "task": "*"}
        ),
        "a name of Dragon's": panel(
            "sum:load_average{}{host=wildcard(*)}", "load_average", **filtered("wildcard", "*", "host", False)
        ),
        "a percentage of Dragon's": panel(
            "sum:1s-avg:used_RAM{}{host=wildcard(*)}",
            "used_RAM",
            **filtered("wildcard", "*", "host", False),
            **downsampled("1s"),
        ),
        # An annotation is asked for as a metric without downsampling.
        "annotations": panel("sum:node_load1", "node_load1", fromAnnotations=True, isGlobal=False),
        # What Sonde refuses.
        "an unknown metric": panel("sum:no_such_metric", "no_such_metric"),
        "no metric": panel("sum:", ""),
        "an unknown host": panel("sum:panel_saw{host=n77}", "panel_saw", tags={"host": "n77"}),
        "an unknown key": panel("sum:panel_saw{hots=*}", "panel_saw", tags={"hots": "*"}),
        "an unknown aggregator": panel("mean:panel_saw", "panel_saw", "mean"),
        "an unknown interval": panel("sum:1q-avg:panel_saw", "panel_saw", **downsampled("1q")),
        "an unknown filter": panel("sum:panel_saw{Side=like(L)}", "panel_saw", **filtered("like", "L")),
        "a wrong pattern": panel("sum:panel_saw{Side=regexp((?=L))}", "panel_saw", **filtered("regexp", "(?=L)")),
    }


def is_refused(name):
    return name.startswith(("an unknown", "no metric", "a wrong"))
