"""Every metric and tag of the dashboard exists: dashboard_test.py REPOSITORY LIST_METRICS.

LIST_METRICS prints the metrics that the program declares, one JSON object a line.
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
LIST_METRICS = sys.argv[2]
# Tags that every series has, or that come from a variable's metric.
COMMON_TAGS = {"host", "job"}


def targets():
    dashboard = json.loads((ROOT / "grafana/dashboards/sonde.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel, target


class DashboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lines = subprocess.run([LIST_METRICS], check=True, capture_output=True, text=True).stdout
        cls.metrics = {one["name"]: one for one in map(json.loads, lines.splitlines())}

    def test_it_is_what_its_table_says(self):
        subprocess.run([sys.executable, ROOT / "grafana/make_dashboard.py", "--check"], check=True)

    def test_every_metric_is_declared(self):
        used = {target["metric"] for _, target in targets()} - {"$app"}
        self.assertGreater(len(used), 10)
        self.assertEqual(used - self.metrics.keys(), set())

    def test_counters_are_shown_as_rates_and_gauges_as_they_are(self):
        for panel, target in targets():
            if target["metric"] == "$app":
                continue
            counter = self.metrics[target["metric"]]["type"] == "counter"
            self.assertEqual(target["shouldComputeRate"], counter, panel["title"])

    def test_units_fit(self):
        for panel, target in targets():
            if target["metric"] == "$app":
                continue
            unit = panel["fieldConfig"]["defaults"]["unit"]
            if self.metrics[target["metric"]]["unit"] == "bytes":
                self.assertEqual(unit, "Bps" if target["shouldComputeRate"] else "bytes",
                                 panel["title"])

    def test_every_tag_is_named_where_the_metric_is_declared(self):
        for panel, target in targets():
            for one in target["filters"]:
                if one["tagk"] in COMMON_TAGS:
                    continue
                documented = self.metrics[target["metric"]]["help"]
                self.assertRegex(documented, rf"\b[Tt]ags?\b.*\b{re.escape(one['tagk'])}\b",
                                 panel["title"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
