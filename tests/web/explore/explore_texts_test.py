"""What leaves the explorer, in headless Chromium: files with its points and plots, and the texts for other programs,
which are run.

explore_texts_test.py PAGE_SERVER API_SERVER [SONDE PYTHON_PACKAGE] [--shots DIR]: SONDE is the command, of which a
step is needed that a program asks by sonde.query. Needs what page_test.py needs; promtool, if it is there, reads the
PromQL.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree

from explorer_page import PACKAGE, SONDE, STEP, Explorer  # first: it says where page is
from page import SHOTS, main


class FilesTest(Explorer):
    def saved(self, name):
        path = pathlib.Path(self.downloads.name) / name
        self.until(lambda: path.exists() and path.stat().st_size > 0)
        return path

    def test_csv_has_every_point(self):
        start, end = self.step_range()
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=none&by=host")
        self.control("Save the points as CSV").click()
        with open(self.saved("sonde-4711.0-node_load1.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        expected = self.expected(start, end, {"metric": "node_load1", "aggregator": "max", "by": ["host"]})
        self.assertEqual(rows[0], ["time", "seconds", *(f"A: host=n{n}" for n in (1, 2, 3, 4))])
        self.assertEqual(len(rows), 601)
        for i, (line, points) in enumerate(expected.items()):
            read = {str(round(float(row[1]) * 1000)): float(row[i + 2]) for row in rows[1:] if row[i + 2]}
            self.assertEqual(read, points, line)
        self.assertTrue(rows[1][0].endswith("Z"))

    def test_json_has_every_point(self):
        start, end = self.step_range()
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=none&by=host")
        self.control("Save the points as JSON").click()
        lines = json.loads(self.saved("sonde-4711.0-node_load1.json").read_text())
        expected = self.expected(start, end, {"metric": "node_load1", "aggregator": "max", "by": ["host"]})
        self.assertEqual({f"{one['query']} host={one['tags']['host']}":
                          {str(time): value for time, value in one["points"]} for one in lines}, expected)
        self.assertEqual([one["per_second"] for one in lines], [False] * 4)

    def test_a_value_has_its_derivative_beside_it(self):
        start, end = self.step_range()
        self.open(f"job={STEP}&view=table&metric=node_load1&agg=max&down=10s-avg")
        self.press("Derivative of query A, its change per second, beside it")
        one = {"metric": "node_load1", "aggregator": "max", "downsample": "10s-avg"}
        self.assert_shows(start - start % 10000, end, one, {**one, "rate": True})
        self.view("Lines")
        self.assertEqual(len(self.find_all("figure.graph canvas")), 2)  # of another unit, one below the other
        self.press("Value of query B, beside it")
        self.assertEqual([value for name, value in self.parameters() if name == "rate"], ["rate"])
        self.assertEqual(len(self.find_all(".query")), 3)

    def test_png_is_the_plot(self):
        self.open(f"job={STEP}&metric=node_load1&agg=none&down=10s-avg")
        self.control("Save the plots as PNG").click()
        data = self.saved("sonde-4711.0-node_load1.png").read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        self.assertGreater(width, 600)
        self.assertGreater(height, 350)
        self.assertGreater(len(data), 10_000)  # not one colour
        if SHOTS:
            pathlib.Path(SHOTS, "saved.png").write_bytes(data)

    def test_svg_has_the_lines_and_their_names(self):
        self.open(f"job={STEP}&metric=node_load1&agg=none&down=10s-avg")
        self.control("Save the plots as SVG").click()
        root = xml.etree.ElementTree.fromstring(self.saved("sonde-4711.0-node_load1.svg").read_text())
        texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
        for host in ("n1", "n2", "n3", "n4"):
            self.assertTrue(any(f"host={host}" in one for one in texts), texts)
        lines = [one for one in root.iter("{http://www.w3.org/2000/svg}path") if one.get("fill") == "none"]
        self.assertEqual(len(lines), 4)
        # Of the 10 minutes, in which one node is away for a while.
        self.assertTrue(all(55 < len(re.findall(r"[ML]", one.get("d"))) < 65 for one in lines))


# Questions whose texts are run: what stands in the address, and what the page shows.
ASKED = [
    "metric=node_load1&agg=max&down=1m-avg",
    "metric=node_cpu_seconds_total&agg=sum&rate=rate&down=30s-max&by=host&by=mode",
    "metric=node_network_receive_bytes_total&agg=avg&rate=drop&down=30s-last-nan&where=literal_or:device:ib0",
    "metric=node_load1&agg=none&down=1m-avg&where=regexp:host:n%5B1-2%5D%7C%5En4%24",
    "metric=task_resident_memory_bytes&agg=p95&down=1m-avg&by=host&where=not_literal_or:task:0%7C3",
    "metric=solver.residual&agg=dev&down=0all-last&where=iwildcard:host:N*",
    "metric=node_load1&agg=count&down=2m-count-zero&by=job&explicit=1&by=host",
    "metric=node_disk_read_bytes_total&agg=mimmax&rate=counter&down=1m-first&where=not_key:mode:",
]


# A button says for a moment only what it has done.
NOTE_TEXTS = """
    window.noted = [];
    new MutationObserver(() => window.noted.push(arguments[0].textContent)).observe(arguments[0], {childList: true});"""


class TextsTest(Explorer):
    def answered(self, answer):
        """An answer in the form of shown()."""
        return sorted(json.dumps(sorted((str(t), v) for t, v in one["dps"] if v is not None)) for one in answer)

    def shapes(self):
        return sorted(json.dumps(sorted(points.items())) for points in self.points().values())

    def test_curl_and_grafana_ask_for_what_the_page_shows(self):
        for asked in [*ASKED, "&".join([ASKED[0], *ASKED[2:4]])]:
            self.open(f"job={STEP}&view=table&{asked}")
            self.assertTrue(self.points(), asked)
            command = self.text("curl")
            self.assertNotIn(self.token, command)
            done = subprocess.run(["bash", "-c", command], env={**os.environ, "SONDE_TOKEN": self.token},
                                  capture_output=True, text=True, check=True, timeout=30)
            self.assertEqual(self.answered(json.loads(done.stdout)), self.shapes(), command)
            begin = json.loads(re.search(r"-d '(.*)'$", command, re.S)[1])
            words = [("start", f"{begin['start']}ms"), ("end", f"{begin['end']}ms"), ("ms", ""), ("arrays", "true"), ("nan", "null")]
            words += [("m", m) for m in self.text("grafana").split("\n")]
            answer = self.get("/api/query?" + urllib.parse.urlencode(words))
            self.assertIsInstance(answer, list, (answer, words))
            self.assertEqual(self.answered(answer), self.shapes(), words)

    def test_text_that_a_shell_could_misread_stays_text(self):
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=1m-avg&where=not_literal_or:host:it%27s%20%24(id)%20%60id%60%20%22%5C")
        command = self.text("curl")
        done = subprocess.run(["bash", "-c", command], env={**os.environ, "SONDE_TOKEN": self.token},
                              capture_output=True, text=True, check=True, timeout=30)
        self.assertTrue(json.loads(done.stdout)[0]["dps"])
        body = json.loads(subprocess.run(
            ["bash", "-c", command.replace("curl", "printf '%s\\0'", 1)], capture_output=True, text=True, check=True,
            env=os.environ).stdout.split("\0")[-2])
        self.assertEqual(body["queries"][0]["filters"][1]["filter"], "it's $(id) `id` \"\\")

    def test_what_m_cannot_say_is_said(self):
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=1m-avg&where=regexp:host:n1%5C)")
        self.assertIn("# A: none: a pattern has brackets that do not close", self.text("grafana"))

    def promql(self, asked, job=STEP):
        self.open(f"job={job}&{asked}")
        return self.text("promql")

    def test_promql_where_there_is_an_equivalent(self):
        expected = {
            "metric=node_load1&agg=max&down=none": 'max(node_load1{job="4711.0"})',
            "metric=node_load1&agg=avg&down=1m-avg&by=host": 'avg by (host) (avg_over_time(node_load1{host!="", job="4711.0"}[1m]))',
            "metric=node_cpu_seconds_total&agg=sum&rate=rate&down=30s-max&by=mode&where=not_literal_or:mode:idle%7Ciowait":
                'sum by (mode) (rate(node_cpu_seconds_total{mode!="", job="4711.0", mode!~"idle|iowait"}[30s]))',
            "metric=node_load1&agg=dev&down=2n-dev&where=iwildcard:host:N.*": 'stddev(stddev_over_time(node_load1{job="4711.0", host=~"(?i:N\\\\..*)"}[60d]))',
            "metric=node_load1&agg=none&down=none&where=regexp:host:%5En%5B12%5D": 'node_load1{job="4711.0", host=~".*(?:^n[12]).*"}',
            "metric=node_load1&agg=squareSum&down=none": 'sum((node_load1{job="4711.0"}) ^ 2)',
            "metric=node_load1&agg=p95&down=none": 'quantile(0.95, node_load1{job="4711.0"})',
            "metric=solver.residual&agg=max&rate=rate&down=none": 'delta(solver_residual{job="4711.0"}[1m]) / 60',
            "metric=task_resident_memory_bytes&agg=sum&down=none&by=host": 'sum by (host) (task_resident_memory_bytes{host!="", job="4711.0"})',
            "metric=node_load1&agg=min&down=none&where=not_key:device:": 'min(node_load1{job="4711.0", device=""})',
        }
        expected["metric=solver.residual&agg=max&rate=rate&down=none"] = 'max(delta(solver_residual{job="4711.0"}[1m]) / 60)'
        found = {asked: self.promql(asked) for asked in expected}
        self.assertEqual(found, expected)
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=0all-avg")
        self.assertIn("as an instant", self.notes("promql"))
        self.assert_promtool_reads([*found.values(), self.text("promql")])

    def assert_promtool_reads(self, expressions):
        promtool = shutil.which("promtool")
        if not promtool:
            return
        rules = [{"record": f"r{i}", "expr": text} for i, text in enumerate(expressions)]
        path = pathlib.Path(self.downloads.name, "rules.yml")
        path.write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}), encoding="utf-8")
        done = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True, check=False, timeout=30)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_promql_cannot_say_is_said(self):
        for asked, why in (
                ("metric=node_load1&agg=mult&down=none", "PromQL has no aggregator as mult"),
                ("metric=node_load1&agg=median&down=none", "PromQL has no aggregator as median"),
                ("metric=node_load1&agg=ep95r7&down=none", "PromQL has no aggregator as ep95r7"),
                ("metric=node_load1&agg=max&down=1m-first", "PromQL has no function over time as the downsampling first"),
                ("metric=node_load1&agg=max&down=1dc-avg", "no intervals of the calendar such as 1dc"),
                ("metric=node_cpu_seconds_total&agg=sum&rate=rate&down=1m-dev", "a rate of values downsampled by dev"),
                ("metric=task_threads&agg=max&down=none", "the sum of its tasks: the max of all tasks cannot be made"),
                ("metric=task_threads&agg=sum&down=none&by=task", "none for each task"),
                ("metric=node_load1&agg=max&down=none&explicit=1", "no other labels"),
                ("metric=load_average&agg=max&down=none", "load_average is not a metric of /metrics")):
            text = self.promql(asked)
            self.assertTrue(text.startswith("# A: none: "), text)
            self.assertIn(why, text)

    def test_texts_are_copied(self):
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=1m-avg")
        self.browser.execute_cdp_cmd("Browser.grantPermissions", {
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": self.server_url})
        for kind, label in (("curl", "curl"), ("grafana", "OpenTSDB, for Grafana (m=)"), ("promql", "PromQL"),
                            ("python", "Python, within the step")):
            button = self.control(f"Copy: {label}")
            self.scroll_to(button)
            self.browser.execute_script(NOTE_TEXTS, button)
            button.click()
            self.until_equal(self.clipboard, self.text(kind))
            self.until_in("Copied", lambda: self.browser.execute_script("return window.noted"))
        self.control("Copy the link to this page").click()
        self.until_equal(self.clipboard, self.browser.current_url)

    def clipboard(self):
        return self.browser.execute_script("return navigator.clipboard.readText()")


# Under `sonde run`: measures a little, then runs what it reads, each until a line with "end".
PROGRAM = """
import json, sys, time
import sonde
gauge = sonde.gauge("app_value", "bytes", "A value")
counter = sonde.counter("app_steps_total", "1", "Steps")
begin = time.time()
while time.time() < begin + 1.5:
    gauge.set((time.time() - begin) ** 2)
    counter.add(3)
    time.sleep(0.01)
print("ready", begin, flush=True)
text = ""
for line in sys.stdin:
    if line != "end\\n":
        text += line
        continue
    space = {}
    exec(text.split("for letter")[0], space)
    text = ""
    print(json.dumps([[[p.time, p.value] for p in one.points] for answer in space["answers"].values() for one in answer]), flush=True)
"""


@unittest.skipUnless(SONDE, "needs the command sonde and Python's package")
class PythonTest(Explorer):
    @classmethod
    def setUpClass(cls):
        cls.archive = tempfile.TemporaryDirectory(prefix="sonde-explore-")
        cls.addClassCleanup(cls.archive.cleanup)
        sonde = [SONDE, "--archive", cls.archive.name, "--config", os.devnull]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SONDE_", "SLURM_", "PMI"))}
        env.update(PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        cls.program = subprocess.Popen(
            [*sonde, "run", "--quiet", "--level", "2", "--period", "100ms", "--", "/usr/bin/python3", "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        cls.addClassCleanup(cls.program.communicate, "")
        ready, begin = cls.program.stdout.readline().split()
        assert ready == "ready"
        cls.begin = float(begin)
        listed = subprocess.run([*sonde, "ls", "--json"], capture_output=True, text=True, env=env, check=True).stdout
        found = json.loads(listed)
        cls.step = found[0]["job"]["job"] if isinstance(found, list) and "job" in found[0] else listed
        url = subprocess.run([*sonde, "url", cls.step], capture_output=True, text=True, env=env, check=True).stdout.split()[0]
        cls.address_of_step = url
        # A server that says its address and ends with its input, as the others do.
        cls.SERVER = pathlib.Path(cls.archive.name, "server")
        cls.SERVER.write_text(f"#!/bin/sh\necho '{url}'\nexec cat\n", encoding="utf-8")
        cls.SERVER.chmod(0o755)
        super().setUpClass()

    def measured(self):
        """Until when all that is asked for is known to the head, in seconds since the program began to measure."""
        ends = []
        for metric in ("app_value", "app_steps_total", "node_cpu_seconds_total"):
            answer = self.get("/api/query?arrays=true", {"start": int(self.begin * 1e3), "msResolution": True,
                                                         "queries": [{"metric": metric, "aggregator": "max"}]})
            found = answer if isinstance(answer, list) else []  # none has that name yet
            ends.append(max((time for one in found for time, _ in one["dps"]), default=0))
        return min(ends) / 1e3 - self.begin

    def test_python_asks_for_what_the_page_shows(self):
        # The program may have begun long after its step, and the page and the program ask one after the other.
        self.until(lambda: self.measured() > 1.3)
        begin = self.begin - self.get(f"/api/v1/profile?job={self.step}")["job"]["start"] / 1e9
        for asked in ("metric=app_value&agg=max&down=none",
                      "metric=app_value&agg=avg&down=200ms-avg-nan&by=host&by=task",
                      "metric=app_steps_total&agg=sum&rate=rate&down=300ms-max&where=wildcard:host:*",
                      "metric=node_cpu_seconds_total&agg=sum&rate=rate&down=500ms-last&by=mode&where=not_literal_or:mode:idle|steal",
                      "metric=app_value&agg=p50&down=500ms-max&where=literal_or:task:0&metric=app_value&agg=none&down=0all-last"):
            self.open(f"from={begin + 0.2:.3f}&to={begin + 1.2:.3f}&view=table&{asked}")
            shown = sorted(json.dumps([float(value) for value in points.values()]) for points in self.points().values())
            self.assertTrue(shown, asked)
            self.program.stdin.write(self.text("python") + "\nend\n")
            self.program.stdin.flush()
            answer = json.loads(self.program.stdout.readline())
            self.assertEqual(sorted(json.dumps([v for _, v in points if v == v]) for points in answer), shown, self.text("python"))
            times = [round(t * 1e3) for points in answer for t, v in points if v == v]
            self.assertEqual(set(times), {int(t) for points in self.points().values() for t in points})


if __name__ == "__main__":
    main()
