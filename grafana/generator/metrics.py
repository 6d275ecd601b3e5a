"""Metrics as the program declares them: list_metrics prints them, one JSON object a line."""

import json
import re
import subprocess

# Of a gauge, and of a counter's rate.
UNITS = {
    "1": ("short", "cps"),
    "ratio": ("percentunit", None),
    "bytes": ("bytes", "Bps"),
    "seconds": ("s", None),  # seconds per second: the panel says of what
    "joules": ("joule", "watt"),
    "watts": ("watt", None),
    "hertz": ("hertz", None),
    "celsius": ("celsius", None),
    "bytes_per_second": ("Bps", None),
    "flops_per_second": ("flops", None),
}
# A rate of seconds.
AXES = {"CPUs": "short", "tasks": "short", "requests": "short", "share": "percentunit"}

# Added by /metrics itself, to what is declared (web/prometheus/metrics.cc).
COVERAGE = "sonde_coverage_ratio"


class Metrics:
    def __init__(self, program):
        done = subprocess.run([program], check=True, capture_output=True, text=True)
        self.declared = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}
        self.declared[COVERAGE] = {
            "name": COVERAGE, "unit": "ratio", "type": "gauge", "level": 1, "reduction": "sum",
            "spread": False, "help": "Share of the step's node samples that arrived."}  # fmt: skip

    def __getitem__(self, name):
        if name == "$gauge":
            return {"name": name, "unit": "1", "type": "gauge", "level": 1, "reduction": "mean",
                    "spread": True, "help": ""}  # fmt: skip
        if name == "$counter":
            return {"name": name, "unit": "1", "type": "counter", "level": 1, "reduction": "sum",
                    "spread": False, "help": ""}  # fmt: skip
        if name not in self.declared:
            raise SystemExit(f"{name} is no metric that list_metrics prints")
        return self.declared[name]

    def is_counter(self, name):
        return self[name]["type"] == "counter"

    def tags(self, name):
        """As the help tells them: "Tags direction (read, write), socket."; tasks have `task`."""
        found = re.search(r"\bTags? (.*)", self[name]["help"])
        text = re.sub(r"\([^)]*\)", "", found.group(1)) if found else ""
        words = re.split(r"[.:]", text)[0].replace(" and ", " ").split(",")
        tags = [word.split()[0] for word in words if word.split()]
        if name.startswith("task_") and "task" not in tags:
            tags.append("task")
        if name.startswith("gpu_"):
            tags.append("gpu")
        return tags

    def is_rate(self, query):
        return self.is_counter(query.metric) and query.over != "count" and not query.total

    def unit(self, name, axis, total=False):
        """Grafana's name for the unit; of a counter that of its rate, unless its total is shown."""
        metric = self[name]
        if total:
            return UNITS[metric["unit"]][0]
        if metric["unit"] == "seconds" and self.is_counter(name):
            if axis not in AXES:
                raise SystemExit(f"{name}: a rate of seconds: of {', '.join(AXES)}?")
            return AXES[axis]
        if metric["unit"] == "1" and name.endswith("_ratio"):
            return "percentunit"
        unit = UNITS[metric["unit"]][self.is_counter(name)]
        if unit is None:
            raise SystemExit(f"{name}: no unit for a rate of {metric['unit']}")
        return unit

    def own_prefixes(self):
        """First words of the names that are not the application's own."""
        return sorted({name.split("_")[0] for name in self.declared})
