"""The explorer (#/explore) in headless Chromium: every control, every number beside the API's, and the texts
for other programs, which are run.

explore_test.py PAGE_SERVER API_SERVER [SONDE PYTHON_PACKAGE] [--shots DIR]: SONDE is the command, of which
a step is needed that a program asks by sonde.query. Needs Debian's chromium, chromium-driver and
python3-selenium; promtool, if it is there, reads the PromQL.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree

from explorer_page import PACKAGE, SHOTS, SONDE, STEP, UNNAMED, Explorer  # before page_test
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select


class MenusTest(Explorer):
    def test_without_parameters_it_shows_the_newest_step_and_says_so_in_the_address(self):
        self.open()
        self.assertEqual(self.find("[data-step]").get_attribute("data-step"), "4712.0")
        self.assertIn(("metric", "node_cpu_seconds_total"), self.parameters())
        self.assertEqual(len(self.find_all("figure.graph canvas")), 1)
        self.assertEqual([row.get_attribute("data-line") for row in self.find_all("table.lines tbody tr")],
                         [f"A mode={mode}" for mode in ("idle", "iowait", "system", "user")])

    def test_every_menu_changes_the_question_and_the_address(self):
        start, end = self.step_range()
        self.open(f"job={STEP}&view=table&metric=node_load1&agg=avg&down=30s-avg")
        query = {"metric": "node_load1", "aggregator": "avg", "downsample": "30s-avg"}
        begin = start - start % 30000
        self.assert_shows(begin, end, query)
        self.choose("Aggregator of query A", "max")
        query["aggregator"] = "max"
        self.assert_shows(begin, end, query)
        self.write("Interval of query A", "1m")
        begin = start - start % 60000
        query["downsample"] = "1m-avg"
        self.assert_shows(begin, end, query)
        self.choose("Function of query A", "min")
        query["downsample"] = "1m-min"
        self.choose("Fill of query A", "zero")
        query["downsample"] = "1m-min-zero"
        self.assert_shows(begin, end, query)
        self.choose("Rate of query A", "rate")
        query["rate"] = True
        self.assert_shows(begin, end, query)
        for rate, options in (("counter", {"counter": True}), ("drop", {"counter": True, "dropResets": True})):
            self.choose("Rate of query A", rate)
            self.assert_shows(begin, end, {**query, "rateOptions": options})
        self.choose("Rate of query A", "")
        del query["rate"]
        self.act(lambda: self.query().find_element(By.CSS_SELECTOR, "input[value=host]").click())
        query["by"] = ["host"]
        self.assert_shows(begin, end, query)
        self.assertEqual(len(self.points()), 4)
        self.press_filter("host", "n1", "literal_or")
        self.assert_shows(begin, end, {**query, "where": [("literal_or", "host", "n1")]})
        self.assertEqual(list(self.points()), ["A host=n1"])
        self.choose("Kind of filter 1 of query A", "regexp")
        self.write("Pattern of filter 1 of query A", "n[23]$")
        self.assert_shows(begin, end, {**query, "where": [("regexp", "host", "n[23]$")]})
        self.assertEqual(list(self.points()), ["A host=n2", "A host=n3"])
        expected = [("job", STEP), ("view", "table"), ("metric", "node_load1"), ("agg", "max"), ("down", "1m-min-zero"),
                    ("by", "host"), ("where", "regexp:host:n[23]$")]
        self.assertEqual(self.parameters(), expected)
        self.press("Remove filter 1 of query A")
        self.assert_shows(begin, end, query)
        self.choose("Aggregator of query A", "none")
        self.assert_shows(begin, end, {"metric": "node_load1", "aggregator": "none", "downsample": "1m-min-zero"})
        self.write("Interval of query A", "0all")
        self.assert_shows(start, end, {"metric": "node_load1", "aggregator": "none", "downsample": "0all-min-zero"})

    def press_filter(self, key, value, kind):
        self.control("Add filter to query A").click()
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("aria-label"), "Tag of filter 1 of query A")
        self.write("Tag of filter 1 of query A", key)
        if kind != "literal_or":
            self.choose("Kind of filter 1 of query A", kind)
        self.write("Pattern of filter 1 of query A", value)

    def test_only_series_without_other_tags(self):
        start, end = self.step_range()
        self.open(f"job={STEP}&view=table&metric=node_cpu_seconds_total&agg=sum&down=10s-max&by=host")
        self.assertTrue(self.points())
        self.act(lambda: self.query().find_element(By.CSS_SELECTOR, "input.explicit").click())
        self.assertEqual(self.points(), {})  # they have a mode
        self.act(lambda: self.query().find_element(By.CSS_SELECTOR, "input[value=mode]").click())
        begin = start - start % 10000
        self.assert_shows(begin, end, {"metric": "node_cpu_seconds_total", "aggregator": "sum", "downsample": "10s-max",
                                       "by": ["host", "mode"], "explicitTags": True})

    def test_suggestions_by_keyboard(self):
        self.open(f"job={STEP}&metric=node_load1&down=1m-avg")
        field = self.control("Metric of query A")
        self.browser.execute_script("arguments[0].focus()", field)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys("left programs")  # words of what it is about
        option = self.wait_for("[role=option]")
        self.assertIn("node_memory_MemAvailable_bytes", option.text)
        self.assertEqual(field.get_attribute("aria-expanded"), "true")
        field.send_keys(Keys.ARROW_DOWN)
        self.assertEqual(field.get_attribute("aria-activedescendant"), option.get_attribute("id"))
        self.shot("suggestions")
        self.act(lambda: field.send_keys(Keys.ENTER))
        self.assertEqual(field.get_attribute("value"), "node_memory_MemAvailable_bytes")
        self.assertRegex(self.find("table.lines tbody tr").text, r"[\d.]+ GiB")
        self.assertIn("in bytes", self.query().text)
        field.send_keys("x")
        self.wait_for("[role=listbox]:not([hidden])")
        field.send_keys(Keys.ESCAPE)
        self.assertEqual(field.get_attribute("value"), "node_memory_MemAvailable_bytes")
        # A counter is shown as its rate from the first on.
        self.write("Metric of query A", "node_network_receive_bytes_total")
        self.assertEqual(Select(self.control("Rate of query A")).first_selected_option.get_attribute("value"), "rate")
        self.until(lambda: self.query().find_elements(By.CSS_SELECTOR, "input[value=device]"))
        self.control("Add filter to query A").click()
        self.write("Tag of filter 1 of query A", "device")
        pattern = self.control("Pattern of filter 1 of query A")
        pattern.click()
        self.until(lambda: [one.text for one in self.find_all(".filter [role=option]") if one.is_displayed()]
                   == ["eth0", "ib0"])
        pattern.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.act(lambda: pattern.send_keys(Keys.ENTER))
        self.assertIn(("where", "literal_or:device:ib0"), self.parameters())

    def test_several_queries_in_one_plot(self):
        start, end = self.step_range()
        self.open(f"job={STEP}&view=table&metric=node_load1&agg=max&down=1m-avg")
        self.press("Copy query A")
        self.choose("Aggregator of query B", "min")
        one = {"metric": "node_load1", "aggregator": "max", "downsample": "1m-avg"}
        two = {**one, "aggregator": "min"}
        begin = start - start % 60000
        self.assert_shows(begin, end, one, two)
        self.view("Lines")
        self.assertEqual(len(self.find_all("figure.graph canvas")), 1)
        self.act(lambda: [b for b in self.find_all(".explore > button") if b.text == "Add query"][0].click())
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("aria-label"), "Metric of query C")
        self.write("Metric of query C", "node_memory_MemAvailable_bytes")
        self.assertEqual(len(self.find_all("figure.graph canvas")), 2)  # another unit
        self.press("Hide query A")
        self.assertEqual([row.get_attribute("data-line") for row in self.find_all("table.lines tbody tr")],
                         ["B min of node_load1", "C avg of node_memory_MemAvailable_bytes"])
        self.assertIn(("hide", "1"), self.parameters())
        self.press("Hide query A")
        self.press("Remove query A")
        self.assertEqual([one for one in self.parameters() if one[0] in ("metric", "agg")],
                         [("metric", "node_load1"), ("agg", "min"),
                          ("metric", "node_memory_MemAvailable_bytes"), ("agg", "avg")])

    def test_what_is_stacked_adds_up(self):
        self.open(f"job={STEP}&metric=node_cpu_seconds_total&agg=sum&rate=rate&down=30s-max&by=mode")
        self.view("Stacked")
        self.assertIn(("view", "stacked"), self.parameters())
        self.assertIn("stacked", self.find("figure.graph").text)
        tops = self.browser.execute_script("""
            const {stack} = await import('./explore/lines.js');
            return stack([0, 1, 2, 3], [[1, 2, null, 4], [10, undefined, 30, 40], [100, 100, 100, 100]]);""")
        self.assertEqual(tops, [[1, 2, None, 4], [11, 22, 30, 44], [111, 122, 130, 144]])

    def test_the_numbers_of_the_lines_are_those_of_the_points(self):
        start, end = self.step_range()
        self.open(f"job={STEP}&metric=node_load1&agg=none&down=10s-avg")
        expected = self.expected(start - start % 10000, end, {"metric": "node_load1", "aggregator": "none",
                                                             "downsample": "10s-avg"})
        for row in self.find_all("table.lines tbody tr"):
            values = list(expected.pop(row.get_attribute("data-line")).values())
            cells = [float(cell.get_attribute("data-value")) for cell in row.find_elements(By.CSS_SELECTOR, "td[data-value]")]
            self.assertEqual([cells[0], cells[2], cells[3]], [values[-1], min(values), max(values)])
            self.assertAlmostEqual(cells[1], sum(values) / len(values), places=9)
        self.assertEqual(expected, {})

    def test_steps_are_added_and_left_out(self):
        self.open(f"job={STEP}&view=table&metric=node_load1&agg=max&down=1m-avg&by=job")
        field = self.control("Add a step")
        field.click()
        self.until(lambda: [one.text for one in self.find_all(".steps [role=option] b")] == ["4712.0"])
        self.act(lambda: field.send_keys("4712", Keys.ENTER))
        self.assertEqual(set(self.points()), {"A job=4711.0", "A job=4712.0"})
        self.assertEqual([v for k, v in self.parameters() if k == "job"], ["4711.0", "4712.0"])
        self.press("Leave out step 4712.0")
        self.assertEqual(set(self.points()), {"A job=4711.0"})


class RangeTest(Explorer):
    QUERY = "&view=table&metric=node_load1&agg=max&down=2s-avg"
    ASKED = {"metric": "node_load1", "aggregator": "max", "downsample": "2s-avg"}

    def test_the_range_of_time(self):
        start, end = self.step_range()
        self.open(f"job={STEP}{self.QUERY}")
        self.choose("Range", "part")
        self.write("From, seconds since the start", "100")
        self.write("To, seconds since the start", "130.5", Keys.TAB)
        self.assert_shows(start + 100_000, start + 130_500, self.ASKED)
        self.assertEqual(self.parameters()[1:3], [("from", "100"), ("to", "130.5")])
        self.choose("Range", "absolute")  # what is shown stays
        self.assert_shows(start + 100_000, start + 130_500, self.ASKED)
        self.assertEqual([(k, float(v) * 1e3) for k, v in self.parameters()[1:3]],
                         [("start", start + 100_000), ("end", start + 130_500)])
        local = self.browser.execute_script(
            "const d = new Date(arguments[0]); return new Date(d - d.getTimezoneOffset() * 60e3).toISOString().slice(0, 19)",
            start + 110_000)
        self.act(lambda: self.browser.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", self.control("From"), local))
        self.assert_shows((start + 110_000) // 1000 * 1000, start + 130_500, self.ASKED)
        self.choose("Range", "last")
        self.choose("Length", "1h")
        self.assertIn(("last", "1h"), self.parameters())
        self.assert_shows(start - 3600_000, end, self.ASKED)  # the step is not so old
        self.choose("Range", "step")
        self.assert_shows(start - start % 2000, end, self.ASKED)

    def test_zoom_by_buttons_and_back(self):
        start, _ = self.step_range()
        self.open(f"job={STEP}&from=100&to=140{self.QUERY}")
        for label, first, last in (("Zoom in", 110, 130), ("Later", 120, 140), ("Earlier", 110, 130), ("Zoom out", 100, 140)):
            self.press(label)
            self.assertEqual(self.parameters()[1:3], [("from", str(first)), ("to", str(last))])
            self.assert_shows(start + first * 1000, start + last * 1000, self.ASKED)
            self.assertEqual(self.browser.switch_to.active_element.get_attribute("aria-label"), label)
        self.browser.back()
        self.until(lambda: ("from", "110") in self.parameters() and self.turn() > 0 and self.points())
        self.until(lambda: self.points() == self.expected(start + 110_000, start + 130_000, self.ASKED))
        self.browser.forward()
        self.until(lambda: self.turn() > 0 and self.points() == self.expected(start + 100_000, start + 140_000, self.ASKED))

    def test_zoom_by_dragging_is_shared_by_all_graphs(self):
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=none&metric=node_memory_MemTotal_bytes&agg=max&down=none")
        over = self.find("figure.graph .u-over")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
        width = over.size["width"]
        # Where one points is where the others' cursor is.
        ActionChains(self.browser).move_to_element(over).perform()
        lefts = self.browser.execute_script(
            "return [...document.querySelectorAll('.u-cursor-x')].map((one) => one.style.transform)")
        self.assertEqual(len(lefts), 2)
        self.assertEqual(lefts[0], lefts[1])
        self.assertIn("max of node_load1", self.find("#tip").text)
        self.act(lambda: ActionChains(self.browser).move_to_element_with_offset(over, -width // 4, 0).click_and_hold()
                 .move_by_offset(width // 2, 0).release().perform())
        seconds = {k: float(v) for k, v in self.parameters() if k in ("from", "to")}
        self.assertAlmostEqual(seconds["from"], 150, delta=8)
        self.assertAlmostEqual(seconds["to"], 450, delta=8)
        shown = self.browser.execute_script(
            "return document.querySelectorAll('table.lines tbody tr')[0].cells[1].textContent")
        self.assertAlmostEqual(int(shown), seconds["to"] - seconds["from"], delta=2)

    def test_an_address_is_all_there_is(self):
        address = (f"job={STEP}&job=4712.0&from=10&to=250&view=table&metric=node_cpu_seconds_total&agg=sum&rate=rate"
                   "&down=10s-max-zero&by=host&by=mode&where=not_literal_or:mode:idle|iowait&where=wildcard:host:n*"
                   "&metric=node_load1&agg=p95&down=auto-avg&by=host&explicit=1&hide=1&metric=solver.residual&agg=dev&down=none")
        self.open(address)
        self.assertEqual(self.hash(), "#/explore?" + address)
        before = self.points()
        self.assertGreater(len(before), 4)
        self.browser.refresh()
        self.until(lambda: self.turn() > 0 and self.points())
        self.assertEqual(self.points(), before)
        self.assertEqual(self.hash(), "#/explore?" + address)

    def test_a_running_step_is_read_again(self):
        self.open("job=4712.0&last=5m&metric=node_load1&agg=max&down=none")
        before = self.turn()
        self.find("#refresh").click()
        self.until(lambda: self.turn() > before + 1)  # at once, and after some seconds
        self.find("#refresh").click()


class ErrorsTest(Explorer):
    def tearDown(self):
        self.browser.get_log("browser")  # Chromium logs statuses of 4xx itself

    def error(self, letter):
        return self.query(letter).find_element(By.CSS_SELECTOR, ".query-error").text

    def test_the_server_s_words_stand_at_the_query_that_is_wrong(self):
        self.open(f"job={STEP}&view=table&metric=node_load1&agg=max&down=1m-avg&metric=nod&agg=max&down=1m-avg"
                  "&metric=node_load1&agg=max&down=5x-avg&metric=node_load1&agg=max&down=none&where=regexp:host:n[")
        self.assertEqual(self.error("A"), "")
        self.assertEqual(list(self.points()), ["A max of node_load1"])  # the others do not suffer
        self.assertEqual(self.error("B"), "No such name for 'metrics': 'nod'")
        self.assertIn("'5x-avg' is no downsampling", self.error("C"))
        self.assertIn("filter 'n[' of tag 'host'", self.error("D"))
        self.shots_of("errors")
        self.write("Interval of query C", "5m")
        self.assertEqual(self.error("C"), "")

    def test_unknown_steps_and_wrong_ranges(self):
        self.open(f"job={STEP}&job=1.0&metric=node_load1&down=1m-avg")
        self.assertIn("there is no step 1.0", self.find(".bar").text)
        self.assertTrue(self.find_all("table.lines tbody tr"))
        self.open(f"job={STEP}&from=20&to=10&metric=node_load1&down=1m-avg")
        self.assertIn("The end has to lie after the begin", self.find(".bar").text)
        self.open(f"job={STEP}&last=soon&metric=node_load1&down=1m-avg")
        self.assertIn("'soon' is no length of time", self.find(".bar").text)
        self.open(f"job={STEP}&from=5000&to=6000&metric=node_load1&down=1m-avg")
        self.assertIn("No samples in this range", self.find(".results").text)

    def test_what_is_in_the_address_is_text(self):
        self.open(f"job={STEP}&metric=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&agg=%3Cb%3Emax&by=%3Ci%3E&where=literal_or:%3Cu%3E:x")
        self.assertEqual(self.find_all("main img, main select b"), [])
        self.assertIn("No such aggregator: '<b>max'", self.error("A"))


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
        # The keys of the metric's tags come beside the page.
        self.until(lambda: self.query().find_elements(By.CSS_SELECTOR, "input[value=host]"))
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
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
            button.click()
            self.until(lambda button=button: button.text == "Copied")
            self.assertEqual(self.browser.execute_script("return navigator.clipboard.readText()"), self.text(kind))
        self.control("Copy the link to this page").click()
        self.until(lambda: self.browser.execute_script("return navigator.clipboard.readText()")
                   == self.browser.current_url)


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
print("ready", flush=True)
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
        assert cls.program.stdout.readline() == "ready\n"
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

    def test_python_asks_for_what_the_page_shows(self):
        for asked in ("metric=app_value&agg=max&down=none",
                      "metric=app_value&agg=avg&down=200ms-avg-nan&by=host&by=task",
                      "metric=app_steps_total&agg=sum&rate=rate&down=300ms-max&where=wildcard:host:*",
                      "metric=node_cpu_seconds_total&agg=sum&rate=rate&down=500ms-last&by=mode&where=not_literal_or:mode:idle|steal",
                      "metric=app_value&agg=p50&down=500ms-max&where=literal_or:task:0&metric=app_value&agg=none&down=0all-last"):
            self.open(f"from=0.2&to=1.2&view=table&{asked}")
            shown = sorted(json.dumps([float(value) for value in points.values()]) for points in self.points().values())
            self.assertTrue(shown, asked)
            self.program.stdin.write(self.text("python") + "\nend\n")
            self.program.stdin.flush()
            answer = json.loads(self.program.stdout.readline())
            self.assertEqual(sorted(json.dumps([v for _, v in points if v == v]) for points in answer), shown, self.text("python"))
            times = [round(t * 1e3) for points in answer for t, v in points if v == v]
            self.assertEqual(set(times), {int(t) for points in self.points().values() for t in points})


class LooksTest(Explorer):
    PAGE = (f"job={STEP}&metric=node_cpu_seconds_total&agg=sum&rate=rate&down=auto-max&by=mode&where=not_literal_or:mode:idle"
            "&metric=node_memory_MemAvailable_bytes&agg=min&down=auto-avg&by=host")

    def test_everything_has_a_name_and_is_reached_by_keyboard(self):
        self.open(self.PAGE)
        self.assertEqual(self.browser.execute_script(UNNAMED), [])
        wanted = self.browser.execute_script("""
            return [...document.querySelectorAll('main input, main select, main button, main a, main [tabindex="0"]')]
                .filter((one) => one.offsetParent && !one.disabled && one.tabIndex >= 0).length""")
        self.browser.execute_script("document.querySelector('.brand').focus()")
        seen, unmarked = set(), []
        for _ in range(wanted + 12):
            ActionChains(self.browser).send_keys(Keys.TAB).perform()
            active = self.browser.switch_to.active_element
            inside, marked = self.browser.execute_script("""
                const style = getComputedStyle(arguments[0]);
                return [document.querySelector('main').contains(arguments[0]) && arguments[0].id !== 'view',
                        style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2]""", active)
            if inside:
                seen.add(active.id)  # of Selenium
                if not marked:
                    unmarked.append(active.get_attribute("outerHTML"))
        self.assertEqual(len(seen), wanted)
        self.assertEqual(unmarked, [])

    def test_the_cursor_moves_by_keys(self):
        self.open(self.PAGE)
        figure = self.find("figure.graph")
        self.browser.execute_script("arguments[0].focus()", figure)
        figure.send_keys(Keys.END, Keys.ARROW_LEFT)
        self.until(lambda: self.find("#tip").is_displayed())
        self.assertIn("mode=user", self.find("#tip").text)
        figure.send_keys(Keys.ESCAPE)
        self.assertFalse(self.find("#tip").is_displayed())
        self.assertRegex(figure.get_attribute("aria-label"), r"cores: A mode=iowait now [\d.]+ cores")

    def test_it_fits_and_reads_well(self):
        self.open(self.PAGE)
        self.shots_of("explorer")
        self.screen(1280, 1000)
        self.open(self.PAGE + "&view=table")
        self.shots_of("table")
        self.assert_nothing_from_elsewhere()

    def test_a_step_leads_here(self):
        self.browser.get(f"{self.server_url}/#/job/{STEP}")
        self.until(lambda: self.find_all(f'.pages a[href="#/explore?job={STEP}"]'))
        self.find(".pages a").click()
        self.until(lambda: self.turn() > 0)
        self.assertEqual(self.find("[data-step]").get_attribute("data-step"), STEP)


if __name__ == "__main__":
    print("screenshots: " + (SHOTS or "none"))
    unittest.main(argv=sys.argv[:1])
