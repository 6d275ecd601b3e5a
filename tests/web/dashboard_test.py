"""Grafana's dashboards fit what the program declares: dashboard_test.py LIST_METRICS.

LIST_METRICS prints the metrics that the program declares, one JSON object a line.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from dashboards import ROOT, SOURCES, load, panels, prometheus_query, targets  # noqa: E402

LIST_METRICS = sys.argv[1]
# Labels that every series has; of a Prometheus those of /metrics too.
COMMON_TAGS = {"host", "job"}
# Added by /metrics to what is declared.
COVERAGE = "sonde_coverage_ratio"
# One of the application's own: a variable stands for its name.
CHOSEN = {"$gauge": "gauge", "$counter": "counter"}
# Counters of what is bad once, which are shown as they are.
TOTALS = {"cgroup_oom_kills_total"}
# What Grafana has without a variable of the dashboard.
BUILT_IN = re.compile(r"__|tag_")
SUBJECTS = ["application", "comparison", "itself", "mpi-io", "node", "step"]


def variables_in(value):
    """Names of the variables that stand in the texts of a part of a dashboard."""
    if isinstance(value, dict):
        return set().union(*map(variables_in, value.values()), set())
    if isinstance(value, list):
        return set().union(*map(variables_in, value), set())
    found = re.findall(r"\$(?:\{(\w+)|(\w+))", value) if isinstance(value, str) else []
    return {name for name in map("".join, found) if not BUILT_IN.match(name)}


class DashboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lines = subprocess.run([LIST_METRICS], check=True, capture_output=True, text=True).stdout
        cls.metrics = {one["name"]: one for one in map(json.loads, lines.splitlines())}

    def series_of(self, target):
        """(metric, tags that are named, whether a rate is asked for) of a target."""
        if "metric" in target:
            tags = {one["tagk"] for one in target["filters"]}
            return [(target["metric"], tags, target["shouldComputeRate"])]
        found = []
        of_range = "timestamp(" in target["expr"]  # what was counted, by the time
        for rate, name, chosen, ending, matchers in re.findall(
            r'(rate\()?(?:([a-z_:][\w:]*)\{|\{__name__="(\$\{\w+\})(\w*)",)([^}]*)\}', target["expr"]
        ):
            tags = set(re.findall(r"(\w+)(?:=|!)", matchers))
            for one in re.findall(r"by \(([^)]*)\)", target["expr"]):
                tags |= set(one.split(", "))
            found.append((name or chosen.replace("{", "").replace("}", "") + ending, tags, bool(rate) or of_range))
        return found

    def each(self):
        """(where, panel, metric's declaration, tags, whether its rate is asked for) of all that is declared."""
        for source in SOURCES:
            for where, panel, target in targets(source):
                for name, tags, rate in self.series_of(target):
                    spread = re.fullmatch(r"(.*?)(_rate)?_spread", name)
                    if spread:
                        name, rate = spread.group(1), bool(spread.group(2))
                    if name == COVERAGE:
                        continue
                    counts = target.get("aggregator") == "count" or target.get("expr", "").startswith("count")
                    yield f"{source} {where}", panel, name, tags, rate, bool(spread), counts

    def test_they_are_what_the_tables_say(self):
        subprocess.run([sys.executable, ROOT / "grafana/make_dashboards.py", "--check", LIST_METRICS], check=True)

    def test_each_subject_is_there_for_each_source(self):
        for source in SOURCES:
            self.assertEqual(sorted(load(source)), SUBJECTS)
        self.assertEqual(load("opentsdb")["step"]["uid"], "sonde-step")  # that of the first release

    def test_every_metric_is_declared(self):
        used = {name for _, _, name, *_ in self.each()} - CHOSEN.keys()
        self.assertGreater(len(used), 100)
        self.assertEqual(used - self.metrics.keys(), set())

    def test_counters_are_shown_as_rates_and_gauges_as_they_are(self):
        for where, _, name, _, rate, _, counts in self.each():
            kind = CHOSEN.get(name) or self.metrics[name]["type"]
            if name in TOTALS:
                self.assertFalse(rate, where)
                continue
            self.assertEqual(rate, kind == "counter" and not counts, where)

    def test_percentiles_are_of_metrics_that_have_them(self):
        seen = 0
        for where, _, name, _, _, spread, _ in self.each():
            if spread:
                seen += 1
                self.assertTrue(self.metrics[name]["spread"], where)
        self.assertGreater(seen, 5)
        for where, _, target in targets("opentsdb"):
            if re.fullmatch(r"p\d+", target["aggregator"]):
                self.assertTrue(self.metrics[target["metric"]]["spread"], where)

    def test_units_fit(self):
        fits = {
            ("bytes", False): {"bytes"}, ("bytes", True): {"Bps"}, ("seconds", True): {"short", "percentunit"},
            ("1", True): {"cps"}, ("1", False): {"short", "percentunit"}, ("joules", True): {"watt"},
            ("watts", False): {"watt"}, ("hertz", False): {"hertz"}, ("celsius", False): {"celsius"},
            ("flops_per_second", False): {"flops"}, ("bytes_per_second", False): {"Bps"},
        }  # fmt: skip
        for where, panel, name, _, rate, _, counts in self.each():
            if name in CHOSEN:
                continue
            unit = panel["fieldConfig"]["defaults"]["unit"]
            if counts:  # the number of those that have it
                self.assertEqual(unit, "short", where)
                continue
            self.assertIn(unit, fits[self.metrics[name]["unit"], rate], where)
            if self.metrics[name]["unit"] == "1" and not rate:
                self.assertEqual(unit == "percentunit", name.endswith("_ratio"), where)

    def test_every_tag_is_named_where_the_metric_is_declared(self):
        for where, _, name, tags, _, spread, _ in self.each():
            if name in CHOSEN:
                self.assertLessEqual(tags, COMMON_TAGS | {"percentile"}, where)
                continue
            documented = self.metrics[name]["help"]
            for tag in tags - COMMON_TAGS - ({"percentile"} if spread else set()):
                if tag == "gpu" and name.startswith("gpu_") or tag == "task" and name.startswith(("task_", "mpi_")):
                    continue  # those of their whole group
                self.assertRegex(documented, rf"\b[Tt]ags?\b.*\b{re.escape(tag)}\b", where)

    def test_numbers_of_ranks_are_not_asked_of_prometheus(self):
        """There a node's tasks are put together."""
        for where, _, target in targets("prometheus"):
            self.assertNotIn("task", re.findall(r"by \((\w+)\)", target["expr"]), where)

    def test_no_panel_lies_on_another(self):
        for source in SOURCES:
            for name, dashboard in load(source).items():
                rows = [one["panels"] for one in dashboard["panels"] if one["type"] == "row"]
                for group in [dashboard["panels"], *rows]:
                    taken = {}
                    for panel in group:
                        at = panel["gridPos"]
                        self.assertLessEqual(at["x"] + at["w"], 24, (source, name, panel["title"]))
                        for x in range(at["x"], at["x"] + at["w"]):
                            for y in range(at["y"], at["y"] + at["h"]):
                                self.assertNotIn((x, y), taken, (source, name, panel["title"]))
                                taken[x, y] = panel["title"]

    def test_numbers_of_panels_are_unique(self):
        for source in SOURCES:
            for name, dashboard in load(source).items():
                numbers = [one["id"] for one in dashboard["panels"]]
                numbers += [one["id"] for row in dashboard["panels"] for one in row.get("panels", [])]
                self.assertEqual(len(numbers), len(set(numbers)), name)

    def test_variables_that_are_used_exist_and_the_others_are_used(self):
        for source in SOURCES:
            for name, dashboard in load(source).items():
                there = {one["name"] for one in dashboard["templating"]["list"]}
                self.assertEqual(variables_in(dashboard), there, (source, name))

    def test_every_panel_says_what_it_is_and_why_it_is_empty(self):
        for source in SOURCES:
            for name, dashboard in load(source).items():
                for panel in panels(dashboard):
                    if panel["type"] == "text":
                        self.assertTrue(panel["options"]["content"])
                        continue
                    self.assertTrue(panel["title"] and panel["description"].strip(), (name, panel["title"]))
                    self.assertRegex(panel["fieldConfig"]["defaults"]["noValue"], r"^(Not|Nothing) .*\.$")
                    self.assertTrue(panel["targets"])

    def test_links_lead_to_dashboards_that_exist(self):
        everything = {one["uid"]: one for source in SOURCES for one in load(source).values()}
        self.assertEqual(len(everything), len(SOURCES) * len(SUBJECTS))
        self.assertEqual(len({one["title"] for one in everything.values()}), len(everything))
        for source in SOURCES:
            for name, dashboard in load(source).items():
                self.assertIn(source, dashboard["tags"])
                self.assertEqual([one["tags"] for one in dashboard["links"] if one["type"] == "dashboards"],
                                 [["sonde", source]])  # fmt: skip
                for uid in re.findall(r'"/d/([\w-]+)', json.dumps(dashboard)):
                    self.assertIn(source, everything[uid]["tags"], name)

    def test_panels_ask_the_source_that_is_chosen(self):
        for source in SOURCES:
            for name, dashboard in load(source).items():
                text = json.dumps(dashboard)
                for kind, uid in re.findall(r'\{"type": "([a-z]+)", "uid": "([^"]+)"\}', text):
                    self.assertEqual((kind, uid), (source, "${source}"), name)

    def test_what_is_provisioned_is_there(self):
        for source, name in (("opentsdb", "sonde"), ("prometheus", "sonde-prometheus")):
            provider, data = ((ROOT / f"grafana/provisioning/{kind}/{name}.yaml").read_text()
                              for kind in ("dashboards", "datasources"))  # fmt: skip
            self.assertEqual(re.findall(r"^ +path: (.*)$", provider, re.MULTILINE),
                             [f"/usr/share/sonde/grafana/dashboards/{source}"])  # fmt: skip
            self.assertEqual(re.findall(r"^ +type: (.*)$", data, re.MULTILINE), [source])
        # Without it a panel for what is not there shows an error.
        self.assertIn("/?unknown=none", (ROOT / "grafana/provisioning/datasources/sonde.yaml").read_text())

    def test_second_names_are_not_taken_for_the_applications_own(self):
        documented = (ROOT / "docs/endpoints.md").read_text().split("### Names of Dragon's")[1]
        names = re.findall(r"^\| `(\w+)` \|", documented, re.MULTILINE)
        self.assertGreater(len(names), 5)
        (regex,) = [one["regex"][1:-1] for one in load("opentsdb")["application"]["templating"]["list"]
                    if one["name"] == "gauge"]  # fmt: skip
        for name in [*names, *self.metrics, "alarm:1"]:
            self.assertIsNone(re.search(regex, name), name)
        for name in ("heat_residual", "load", "loss", "db_size_of_mine"):
            self.assertIsNotNone(re.search(regex, name), name)

    @unittest.skipUnless(shutil.which("promtool"), "needs promtool, of Prometheus: scripts/deps")
    def test_prometheus_reads_every_expression(self):
        asked = [prometheus_query(target, Any()) for _, _, target in targets("prometheus")]
        for dashboard in load("prometheus").values():
            asked += [prometheus_query(one["target"], Any()) for one in dashboard["annotations"]["list"]]
        self.assertGreater(len(asked), 150)
        rules = [{"record": f"panel:{i}", "expr": expr} for i, expr in enumerate(asked)]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)
            file.flush()
            promtool = ["promtool", "check", "rules", file.name]
            done = subprocess.run(promtool, check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


    @unittest.skipUnless(shutil.which("promtool"), "needs promtool, of Prometheus: scripts/deps")
    def test_prometheus_gives_the_numbers_that_a_panel_promises(self):
        """By Prometheus' own engine, at the end of an hour in which a step ran for ten minutes."""
        busy, idle = "1+7.5x39", "1+1.5x29"  # from a sample to the next, which are 15 s apart; then nothing
        series = [("node_cpu_seconds_total", {"host": "n1", "mode": "user"}, "_x100 " + busy),
                  ("node_cpu_seconds_total", {"host": "n1", "mode": "idle"}, "_x100 9+7.5x39"),
                  # Came five minutes later and does the same.
                  ("node_cpu_seconds_total", {"host": "n2", "mode": "user"}, "_x120 1+7.5x19"),
                  ("node_cpu_seconds_total", {"host": "n3", "mode": "user"}, "_x110 " + idle),
                  # Is there for a moment.
                  ("node_cpu_seconds_total", {"host": "n4", "mode": "user"}, "_x150 1 7"),
                  ("cgroup_oom_kills_total", {"host": "n1"}, "_x100 0x10 1x28"),
                  ("cgroup_oom_kills_total", {"host": "n2"}, "_x120 0x19"),
                  ("cgroup_oom_kills_total", {"host": "n3"}, "_x110 0x5 2x3")]  # fmt: skip
        expected = {"Fewest busy CPUs": {'{host="n1"}': 0.5, '{host="n2"}': 0.5, '{host="n3"}': 0.1,
                                         '{host="n4"}': 0.4},
                    "Killed for want of memory": {"{}": 3}}  # fmt: skip
        asked = {panel["title"]: prometheus_query(target, {"job": "4711.0"})
                 for where, panel, target in targets("prometheus") if where.startswith("step: ")}  # fmt: skip
        cases = [{"expr": asked[title], "eval_time": "1h",
                  "exp_samples": [{"labels": labels, "value": value} for labels, value in found.items()]}
                 for title, found in expected.items()]  # fmt: skip
        inputs = []
        for name, labels, values in series:
            text = ",".join(f'{key}="{value}"' for key, value in {"job": "4711.0", **labels}.items())
            inputs.append({"series": f"{name}{{{text}}}", "values": values + " stale"})
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"tests": [{"interval": "15s", "input_series": inputs, "promql_expr_test": cases}]}, file)
            file.flush()
            done = subprocess.run(["promtool", "test", "rules", file.name], check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Any(dict):
    """A value for each variable."""

    def __missing__(self, name):
        return "x"


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
