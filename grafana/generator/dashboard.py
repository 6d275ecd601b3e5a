"""A dashboard as Grafana's JSON: rows of panels, variables, annotations, links."""

import dataclasses

from generator import panels
from generator.model import Panel

WIDTH = 24
# Where Sonde's page is, in links. A person may change it above the dashboard.
PAGE = "http://localhost:4242"


def _at(panel, x, y):
    return {"x": x, "y": y, "w": panel.width, "h": panel.height}


def _place(members, y):
    """Panels beside each other as long as there is room; and where the next row begins."""
    places, x, height = [], 0, 0
    for panel in members:
        if x + panel.width > WIDTH:
            x, y, height = 0, y + height, 0
        places.append(_at(panel, x, y))
        x, height = x + panel.width, max(height, panel.height)
    return places, y + height


def _rows(dashboard, metrics, source):
    made, number, y = [], 1, 0
    for row in dashboard.rows:
        members = [one for one in row.panels if one.only in ("", source.NAME)]
        header = {"id": number, "type": "row", "title": row.title, "collapsed": row.collapsed,
                  "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}, "panels": []}  # fmt: skip
        made.append(header)
        places, end = _place(members, y + 1)
        inside = [panels.make(panel, number + 1 + i, place, dashboard, metrics, source)
                  for i, (panel, place) in enumerate(zip(members, places, strict=True))]  # fmt: skip
        # A collapsed row holds its panels, and what follows stands right below it.
        (header["panels"] if row.collapsed else made).extend(inside)
        number, y = number + 1 + len(inside), y + 1 if row.collapsed else end
    return made


def _choice(source, one, query, regex="", every="", many=False):
    made = {
        "name": one.name, "label": one.label, "type": "query", "datasource": source.SOURCE,
        "query": source.question(query),
        "refresh": 2, "sort": 3, "multi": many, "includeAll": bool(every),
        "regex": regex, "hide": 0, "options": [], "current": {},
    }  # fmt: skip
    if every:
        made["allValue"] = every if not many else None
        made["current"] = {"text": ["All"] if many else "All", "value": ["$__all"] if many else "$__all"}
    return {key: value for key, value in made.items() if value is not None}


def _own_metrics(counters, metrics, source):
    """Names that are not Sonde's, as a regular expression of JavaScript."""
    others = "|".join(f"{prefix}_" for prefix in metrics.own_prefixes())
    exact = "|".join(f"{name}$" for name in getattr(source, "OTHER_NAMES", ()))
    not_ours = f"(?!{others}|alarm:{'|' + exact if exact else ''})"
    rising = "(_total|_count|_sum)$"
    if counters:
        return f"/^{not_ours}.*{rising}/"
    return f"/^{not_ours}(?!.*({rising}|(_created|_spread)$)).*$/"


def _variables(dashboard, metrics, source):
    made = [
        {"name": "source", "label": "Data source", "type": "datasource", "query": source.NAME,
         "refresh": 1, "hide": 0, "options": [], "current": {}},
        {"name": "page", "label": "Sonde's page", "type": "textbox", "query": PAGE, "hide": 0,
         "current": {"text": PAGE, "value": PAGE}, "options": [{"text": PAGE, "value": PAGE, "selected": True}]},
    ]  # fmt: skip
    for one in dashboard.variables:
        if hasattr(one, "counters"):
            query, regex = source.metric_variable(one, dashboard.scope), _own_metrics(one.counters, metrics, source)
            made.append(_choice(source, one, query, regex, "all", True))
        else:
            query, every = source.variable(one, dashboard.scope)
            made.append(_choice(source, one, query, "", every if one.every else "", one.many))
    return made


def _link(title, url, tooltip):
    return {"title": title, "type": "link", "icon": "external link", "url": url, "tooltip": tooltip,
            "tags": [], "asDropdown": False, "targetBlank": True, "includeVars": False, "keepTime": False}  # fmt: skip


def _links(dashboard, source):
    others = {"title": "Sonde", "type": "dashboards", "icon": "dashboard", "url": "", "tooltip": "",
              "tags": ["sonde", source.NAME], "asDropdown": False, "targetBlank": False,
              "includeVars": True, "keepTime": True}  # fmt: skip
    if dashboard.scope == "steps":
        return [others, _link("These steps in Sonde", "${page}/diff?profiles=${job:csv}",
                              "The steps beside each other, each from its own beginning")]  # fmt: skip
    return [others, _link("This step in Sonde", "${page}/#/job/${job}",
                          "Who ran what, the report, phases, alarms and hints")]  # fmt: skip


def make(dashboard, metrics, source):
    return {
        "uid": dashboard.uid + source.UID, "title": dashboard.title + source.TITLE,
        "description": f"{dashboard.about} {source.WHERE_NOTES_ARE}",
        "tags": ["sonde", "slurm", source.NAME], "timezone": "browser", "schemaVersion": 39,
        "version": 1, "editable": True, "graphTooltip": 1, "refresh": dashboard.refresh,
        "time": {"from": "now-30m", "to": "now"}, "links": _links(dashboard, source),
        "templating": {"list": _variables(dashboard, metrics, source)},
        "annotations": {"list": source.annotations(dashboard.scope)},
        "panels": _rows(dashboard, metrics, source),
    }  # fmt: skip


def text(title, words, width=8, height=5):
    """A panel of words."""
    return dataclasses.replace(Panel(title, words), width=width, height=height)
