"""The page of one step in headless Chromium: what it came to, its nodes, ranges and scopes, what is
saved. Every number on it is compared with the API's.

step_page_test.py PAGE_SERVER [--shots DIR]. Needs Debian's chromium, chromium-driver and
python3-selenium.
"""

import csv
import io
import os
import re
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import page_test
from contrast import faint
from page_test import Page

SHOTS = page_test.SHOTS or os.environ.get("SONDE_SHOTS") or tempfile.mkdtemp(prefix="sonde-shots-")
page_test.SHOTS = SHOTS
STEP = "4713.0"
SVG = "{http://www.w3.org/2000/svg}"

# Waits for the answer of an endpoint, as the page would ask.
ASK = """const [path, done] = arguments;
         fetch('.' + path).then((answer) => answer.json()).then(done, (e) => done({error: String(e)}));"""
# Whether all that can be seen is drawn.
DRAWN = """const charts = [...document.querySelectorAll('figure[data-metric]')].filter((one) => one.offsetParent);
           return charts.length > 0 && charts.every((one) => one.querySelector('canvas')) &&
                  document.querySelectorAll('.members tbody tr').length > 0 &&
                  document.querySelector('.key span') !== null &&
                  document.querySelector('main [aria-busy=true]') === null;"""
# What is saved lands in window.saved.
CATCH = """window.saved = [];
           URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => window.saved.push(
               {type: blob.type, size: blob.size, text: new TextDecoder().decode(bytes.slice(0, 1e6))}));
               return 'data:,'; };
           HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };"""


class StepPage(Page):
    ARGUMENTS = ["--nodes", "4"]

    def setUp(self):
        self.screen(1280, 1000)
        self.browser.get(self.address)
        self.wait_for(".brand")
        self.browser.get_log("browser")
        self.open("")

    def open(self, query):
        """The step with that query in its address, drawn."""
        self.browser.execute_script("location.hash = arguments[0]", f"#/job/{STEP}?{query}x=1")
        self.wait_drawn()

    def wait_drawn(self):
        self.until(lambda: self.browser.execute_script(DRAWN))

    def look(self, width, dark):
        """The page at a width and in a theme, drawn: another theme has all made anew."""
        was = self.browser.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
        self.browser.execute_script("window.before = document.querySelector('.matrix')")
        self.screen(width, 1000, dark)
        if was != dark:
            self.until(lambda: self.browser.execute_script(
                "return document.querySelector('.matrix') !== window.before"))
        self.wait_drawn()

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode({"job": STEP, **parameters})
        return self.browser.execute_async_script(ASK, f"{path}?{query}")

    def heatmap(self, **more):
        return self.ask("/api/v1/heatmap", **more)

    def area(self):
        area = self.find(".heat")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", area)
        return area

    def place(self, x, y):
        """Of a share of the heatmap's tiles, from the middle of the area."""
        area = self.area()
        width, height = area.size["width"], area.size["height"]
        top = self.browser.execute_script(
            "const area = arguments[0]; return area.querySelector('canvas').clientHeight", area)
        left = 84 + x * (width - 84 - 12) - width / 2
        strip = top - 26 - self.rows_height()
        return area, round(left), round(strip + y * self.rows_height() - height / 2)

    def rows_height(self):
        rows = len(self.data()["rows"])
        return max(min(rows * 18, 420), rows, 24)

    def data(self):
        """What the heatmap shows, asked again with what it asked for."""
        return self.heatmap(**self.shown())

    def scrolled(self, metric):
        """The figure, where it is seen: plots that are far away are not read again."""
        figure = self.figure(metric)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", figure)
        return figure

    def shown(self):
        address = self.browser.execute_script(
            "return performance.getEntriesByType('resource').map((one) => one.name)"
            ".filter((one) => one.includes('heatmap') && !one.includes('columns=1&')).at(-1)")
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(address).query))
        query.pop("job")
        return query

    def point(self, x, y):
        area, left, top = self.place(x, y)
        ActionChains(self.browser).move_to_element_with_offset(area, left, top).perform()
        self.until(lambda: self.find("#tip").is_displayed())
        return self.find("#tip").text

    def drag(self, element, from_x, to_x, y, to_y=None):
        actions = ActionChains(self.browser)
        actions.move_to_element_with_offset(element, from_x, y).click_and_hold()
        actions.move_by_offset((to_x - from_x) // 2, ((to_y or y) - y) // 2)
        actions.move_by_offset(to_x - from_x - (to_x - from_x) // 2,
                               (to_y or y) - y - ((to_y or y) - y) // 2)
        actions.release().perform()

    def state(self):
        fragment = urllib.parse.urlparse(self.browser.current_url).fragment
        return dict(urllib.parse.parse_qsl(fragment.partition("?")[2]))

    def tearDown(self):
        resources = self.browser.execute_script(
            "return performance.getEntriesByType('resource').map((one) => one.name)")
        here = self.address.split("?")[0]
        self.assertEqual([one for one in resources if not one.startswith((here, "data:"))], [])
        super().tearDown()


class OneStepTest(StepPage):
    @staticmethod
    def digits(value):
        """As the page writes numbers (trim in numbers.js)."""
        return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}".rstrip("0").rstrip(".")

    def used(self, what):
        return self.find(f'.used[data-what="{what}"]').text

    def test_the_top_says_what_the_step_came_to(self):
        overview = self.ask("/api/v1/overview")
        self.assertEqual(self.find("h1").text, f"{STEP} {overview['title']}")
        summary = overview["summary"]
        self.assertIn(self.digits(summary["cpu_of_tasks"] * 100) + " %", self.used("CPU"))
        # Of one of a node's tasks there is no share of the node.
        self.assertIsNone(summary["memory_of_node"])
        self.assertRegex(self.used("Memory"), f"GiB at most, {summary['memory_peak_bytes']['by']}$")
        profile = self.ask("/api/v1/profile")
        total = {one["metric"]: one["last"] for one in profile["footprint"]}
        time = summary["measured_seconds"] * summary["measured_tasks"]
        self.assertIn(self.digits(total["mpi_seconds_total"] / time * 100) + " % of the tasks", self.used("MPI"))
        waiting = overview["calls"]["mpi_waiting"]
        self.assertGreaterEqual(waiting["seconds"], total["mpi_wait_seconds_total"])
        self.assertIn(self.digits(waiting["seconds"] / time * 100) + " % waiting", self.used("MPI"))
        self.assertRegex(waiting["slowest"], r"task \d on node")
        self.assertIn("the slowest is " + waiting["slowest"], self.used("MPI"))
        self.assertIn("busy", self.used("GPU"))
        self.assertIn("written by the tasks", self.used("I/O"))
        self.assertIn("received", self.used("Network"))
        insight = self.ask("/api/v1/insight", of="hints")
        self.assertIn(insight["hints"][0]["change"], self.find(".hints").text)
        self.assertIn("computing 68 %", self.find(".budget").text)
        self.assertIn("the others waited for rank 2 on node0001 (72 min 0 s of all together).",
                      self.find(".budget [data-what=awaited]").text)
        self.assertIn("rank 2 on node0001", self.find(".stragglers").text)
        self.until(lambda: self.find_all(".periods li"))
        self.assertEqual([one.text for one in self.find_all(".periods li")],
                         ["bytes written: every 10 min 0 s"])
        self.assertEqual([one.text for one in self.find_all(".headline li")], overview["headline"])
        self.assertTrue(overview["headline"])
        self.shot("step-1280")

    def test_the_calls_of_the_program_are_those_of_the_report(self):
        calls = self.ask("/api/v1/overview")["calls"]
        (mpi,) = self.rows("MPI")
        (collective,) = calls["mpi"]
        share = self.digits(collective["seconds"] / calls["task_seconds"] * 100)
        self.assertEqual(mpi[0], "collective")
        self.assertEqual(mpi[3], f"{share} %")
        self.assertIn("GiB", mpi[5])
        self.assertEqual(self.heads("MPI"), ["Class", "Calls", "Time", "Share", "Waiting", "Sent"])
        files = self.rows("Files")
        self.assertEqual([(row[0], row[1]) for row in files],
                         [(one["name"], one["operation"]) for one in calls["files"]])
        self.assertEqual(files[0][0], "lustre /scratch")
        self.assertIn("write", [row[1] for row in files])
        self.assertFalse(self.find_all("section[aria-label=Functions]"), "none were counted")

    def rows(self, section):
        rows = self.find_all(f"section[aria-label={section}] tbody tr")
        return [[cell.get_property("textContent") for cell in row.find_elements(By.TAG_NAME, "td")] for row in rows]

    def heads(self, section):
        return [one.text for one in self.find_all(f"section[aria-label={section}] thead th")]

    def test_the_budget_of_nodes_ranks_and_phases_is_unfolded(self):
        budget = self.ask("/api/v1/insight", of="budget")
        folds = self.find_all(".budget details")
        self.assertEqual([one.find_element(By.TAG_NAME, "summary").text for one in folds],
                         ["2 phases", "4 nodes", "8 ranks"])
        for fold, of in zip(folds, ("phases", "nodes", "ranks")):
            fold.find_element(By.TAG_NAME, "summary").click()
            rows = fold.find_elements(By.CSS_SELECTOR, "[role=listitem]")
            self.assertEqual(len(rows), len(budget[of]))
            for row in rows:
                self.assertRegex(row.text, r"computing [\d.]+ %")
        # The slow one computes less than the others.
        first = folds[1].find_element(By.CSS_SELECTOR, "[role=listitem]")
        slow = min(budget["nodes"], key=lambda one: one["shares"]["computing"])
        self.assertIn(f"{slow['node']}\ncomputing {self.digits(slow['shares']['computing'] * 100)} %", first.text)
        self.assertIn("waiting for GPUs", self.find(".budget").text)  # is not known
        self.assertIn("Parallel efficiency 68 %", self.find(".budget").text)
        # What is unfolded stays so when the head is drawn anew.
        before = self.find(".budget")
        self.find("#refresh").click()
        self.until(lambda: self.find(".budget") != before)
        self.assertEqual([one.get_attribute("open") for one in self.find_all(".budget details")], ["true"] * 3)
        self.find_all(".budget details")[1].find_element(By.TAG_NAME, "button").click()
        self.until(lambda: self.state().get("node") == slow["node"])

    def test_the_roofline_has_the_step_its_phases_and_its_limit(self):
        roofline = self.ask("/api/v1/insight", of="roofline")
        self.until(lambda: self.find_all(".roofline svg"))
        card = self.find(".roofline")
        self.assertEqual(len(card.find_elements(By.CSS_SELECTOR, "svg circle")), 3)
        share = self.digits(roofline["whole"]["share"] * 100)
        self.assertIn("Memory is its limit at 0.6 FLOP per byte", card.text)
        self.assertIn(f"{share} % of what can be reached there", card.text)
        rows = [row.text for row in card.find_elements(By.CSS_SELECTOR, "tbody tr")]
        self.assertEqual(len(rows), 3)
        self.assertRegex(rows[1], r"^A read mesh .* memory")
        self.browser.execute_script(CATCH)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", card)
        card.find_element(By.TAG_NAME, "button").click()
        root, texts = self.saved_svg()
        self.assertIn("FLOP per byte", texts)
        self.assertIn("single precision: 16 TFLOP/s", texts)
        self.assertTrue(any("A read mesh" in one for one in texts), texts)
        self.assertEqual(len(list(root.iter(SVG + "circle"))), 3)
        self.assertTrue(next(root.iter(SVG + "circle")).get("fill").startswith("rgb("))
        # Each point lies below the roof, and where its numbers say.
        below = self.browser.execute_script("""
            const roof = document.querySelector('.roofline polyline:not(.single)').points;
            const [low, ridge] = [roof[0], roof[1]];
            return [...document.querySelectorAll('.roofline circle')].map((one) => {
              const [x, y] = [one.cx.baseVal.value, one.cy.baseVal.value];
              const at = low.y + (ridge.y - low.y) * Math.min((x - low.x) / (ridge.x - low.x), 1);
              return y - at;
            });""")
        self.assertTrue(all(one > 0 for one in below), below)

    def test_energy_has_its_numbers_and_what_is_not_in_it(self):
        energy = self.ask("/api/v1/insight", of="energy")
        self.until(lambda: self.find_all(".energy p"))
        text = self.find(".energy").text
        self.assertIn(f"{self.digits(energy['joules'] / 1e6)} MJ", text)
        self.assertIn(f"{self.digits(energy['mean_watts'] / 1e3)} kW in the mean", text)
        self.assertIn("Not in it: " + "; ".join(energy["missing"]), text)
        self.assertIn("J for one step", text)
        self.find(".energy summary").click()
        self.assertEqual(len(self.find_all(".energy [role=listitem]")), 4)

    def test_without_counters_there_is_a_line_and_no_plot(self):
        self.browser.execute_script("""
            const read = window.fetch;
            window.fetch = async (...all) => {
              const answer = await read(...all);
              const address = String(all[0]);
              if (!/of=(roofline|energy)/.test(address)) return answer;
              const body = await answer.json();
              const changed = address.includes('energy')
                  ? {joules: null, no_energy: 'Energy is measured from level 3 on.'}
                  : {counted: false, roof: null, notes: ['hardware counters are read from level 3 on'],
                     whole: {...body.whole, bottleneck: 'waiting', why: 'the CPUs were idle'}};
              return new Response(JSON.stringify({...body, ...changed}));
            };""")
        self.open("again=2&")
        self.until(lambda: "No energy" in self.find(".budget").text)
        self.assertEqual(self.find_all(".roofline") + self.find_all(".energy"), [])
        self.assertIn("What held it up: The CPUs were idle.", self.find(".budget").text)
        for summary in self.find_all(".budget > details, .not-counted > details"):
            summary.find_element(By.TAG_NAME, "summary").click()
        self.assertIn("Hardware counters are read from level 3 on.", self.find(".budget").text)
        self.assertIn("Energy is measured from level 3 on.", self.find(".budget").text)

    def test_headlines_are_texts(self):
        self.browser.execute_script("""
            const read = window.fetch;
            window.fetch = async (...all) => {
              const answer = await read(...all);
              if (!String(all[0]).includes('/api/v1/overview')) return answer;
              const body = await answer.json();
              return new Response(JSON.stringify({...body, headline: ['waited in MPI 73 % of the time', '<b>x']}));
            };""")
        self.open("again=1&")
        self.until(lambda: self.find_all(".headline li"))
        self.assertEqual(self.find(".headline").text, "waited in MPI 73 % of the time\n<b>x")

    def test_who_had_the_least_is_opened_by_a_click(self):
        least = self.find('.used[data-what="CPU"]').find_elements(By.TAG_NAME, "button")[1]
        profile = self.ask("/api/v1/profile")
        entry = next(one for one in profile["footprint"] if one["metric"] == "task_cpu_seconds_total"
                     and one["tags"]["mode"] == "user")
        owner = entry["min_owner"]
        self.assertEqual(least.text, f"rank {owner['rank']} on {owner['host']}")
        least.click()
        self.until(lambda: self.state().get("rank") == str(owner["rank"]))
        self.assertEqual(self.state()["node"], owner["host"])
        self.assertEqual(self.find("#scope").get_attribute("value"), "rank")
        series = self.ask("/api/v1/series", metric="task_resident_memory_bytes", points=300,
                          host=owner["host"], task=owner["rank"])
        last = series["series"][0]["value"][-1] / 2**30
        self.until(lambda: f"{last:.1f} GiB" in self.scrolled("task_resident_memory_bytes").text)
        self.browser.back()
        self.until(lambda: "node" not in self.state())
        self.wait_drawn()

    def test_a_tile_tells_node_time_and_value(self):
        data = self.data()
        self.assertEqual(data["names"], [f"node{i:04}" for i in range(4)])
        for row, share in ((0, 0.25), (1, 0.75), (3, 0.5)):
            tip = self.point(share, (row + 0.5) / 4)
            self.assertIn(data["names"][row], tip)
            column = int(share * data["columns"])
            near = [data["mean"][row][i] for i in range(column - 2, column + 3)]
            told = re.search(r"mean ([\d.]+) core", tip)
            self.assertIsNotNone(told, tip)
            self.assertTrue(any(abs(float(told[1]) - one) < 0.006 for one in near), (tip, near))
            self.assertRegex(tip, r"\d\d:\d\d:\d\d")
        tip = self.point(0.375, 2.5 / 4)  # node 2 is away
        self.assertIn("nothing measured", tip)
        self.assertIn("nothing measured", self.find(".key").text)

    def scale_of(self, rows, zero=False):
        return self.browser.execute_async_script("""
            const [rows, zero, done] = arguments;
            import('./step/scale.js').then(({scaleOf, colourOf}) => {
              const scale = scaleOf(rows, zero);
              done({...scale, colours: rows.map((row) => row.map((one) => one === null ? null : colourOf(scale, one)))});
            }).catch((error) => done({error: String(error)}));""", rows, zero)

    def test_the_scale_tells_close_values_apart_and_marks_what_is_far(self):
        # One of a thousand nodes is at 90 %, the others between 97 and 99 %.
        rows = [[0.98 + 0.01 * ((7 * node + i) % 21 - 10) / 10 for i in range(10)] for node in range(1000)]
        rows[333] = [0.9] * 10
        rows[500][3] = None
        scale = self.scale_of(rows)
        self.assertAlmostEqual(scale["low"], 0.97, delta=0.001)
        self.assertAlmostEqual(scale["high"], 0.99, delta=0.001)
        self.assertEqual((scale["below"], scale["above"], scale["least"]), (10, 0, 0.9))
        self.assertEqual(set(scale["colours"][333]), {256})
        others = [one for i, row in enumerate(scale["colours"]) if i != 333 for one in row if one is not None]
        self.assertEqual((min(others), max(others)), (0, 255))
        self.assertIsNone(scale["colours"][500][3])
        rows[334] = [1.2] * 10
        self.assertEqual(self.scale_of(rows)["above"], 10)
        # With zero the same are marked above, and below nothing is.
        self.assertEqual([self.scale_of(rows, True)[key] for key in ("low", "below", "above")], [0, 0, 10])
        # Bursts of what is zero else are the scale, and no noise is drawn as if it were much.
        bursts = self.scale_of([[0] * 999 + [4e9]])
        self.assertEqual([bursts[key] for key in ("low", "high", "above")], [0, 4e9, 0])
        even = self.scale_of([[1, 1.0001] * 50])
        self.assertAlmostEqual(even["high"] - even["low"], 0.02, delta=1e-4)
        self.assertEqual([self.scale_of([[0, 0]])[key] for key in ("low", "high")], [0, 1])
        self.assertEqual([self.scale_of([[None]])[key] for key in ("low", "high")], [0, 1])
        self.assertLess(self.scale_of([[-3, 2] * 50])["low"], -2.9)

    def test_the_scale_is_chosen_and_stands_in_the_address(self):
        data = self.heatmap(**self.shown())
        least = min(one for row in data["mean"] for one in row if one is not None)
        self.assertGreater(least, 0.1)
        self.assertNotIn("0 cores", self.find(".key").text)
        self.find("#heat-scale option[value=zero]").click()
        self.until(lambda: self.find(".key").text.startswith("0 cores"))
        self.assertEqual(self.state()["scale"], "zero")
        self.open("scale=zero&")
        self.assertEqual(self.find("#heat-scale").get_attribute("value"), "zero")
        self.assertTrue(self.find(".key").text.startswith("0 cores"), self.find(".key").text)

    def test_a_click_on_a_tile_opens_the_node_and_back_leads_back(self):
        area, left, top = self.place(0.75, 1.5 / 4)
        ActionChains(self.browser).move_to_element_with_offset(area, left, top).click().perform()
        self.until(lambda: self.state().get("node") == "node0001")
        series = self.ask("/api/v1/series", metric="node_load1", points=300, host="node0001")
        last = series["series"][0]["value"][-1]
        self.until(lambda: str(round(last, 2)) in self.scrolled("node_load1").text)
        self.assertIn("chosen-row", self.find(".members tbody").get_attribute("innerHTML"))
        self.browser.back()
        self.until(lambda: "node" not in self.state())

    def test_dragging_zooms_everything_and_a_double_click_resets(self):
        for element in ("heat", "plot"):
            if element == "heat":
                area, left, top = self.place(0.25, 0.5)
                right = self.place(0.5, 0.5)[1]
            else:
                area = self.figure("node_load1").find_element(By.CSS_SELECTOR, ".u-over")
                self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", area)
                width = area.size["width"]
                left, right, top = -width // 4, 0, 0
            self.drag(area, left, right, top)
            self.until(lambda: "range" in self.state())
            start, end = map(float, self.state()["range"].split("~"))
            job = self.ask("/api/v1/profile")["job"]
            self.assertAlmostEqual(start - job["start"] / 1e9, 900, delta=25)
            self.assertAlmostEqual(end - job["start"] / 1e9, 1800, delta=25)
            self.until(lambda: self.plots_show(start, end))
            self.assertIn("15 min", self.find(".controls .range").text)
            if element == "heat":
                self.shot("step-zoomed")
            ActionChains(self.browser).move_to_element(area).double_click().perform()
            self.until(lambda: "range" not in self.state())
            self.until(lambda: self.plots_show(job["start"] / 1e9, job["end"] / 1e9))

    def plots_show(self, start, end):
        """Whether plots near the screen were asked for that range."""
        names = self.browser.execute_script(
            "return performance.getEntriesByType('resource').map((one) => one.name)")
        last = [one for one in names if "/series" in one][-1]
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(last).query))
        if "start" not in query:
            return "range" not in self.state()
        return abs(float(query["start"]) / 1e3 - start) < 1 and abs(float(query["end"]) / 1e3 - end) < 1

    def test_buttons_and_the_list_of_ranges_do_the_same(self):
        self.find('.controls [aria-label="Zoom in"]').click()
        self.until(lambda: "range" in self.state())
        start, end = map(float, self.state()["range"].split("~"))
        self.assertAlmostEqual(end - start, 1800, delta=1)
        self.find('.controls [aria-label="Zoom out"]').click()
        self.until(lambda: "range" not in self.state())
        self.find("#range option[value='300']").click()
        self.until(lambda: "range" in self.state())
        start, end = map(float, self.state()["range"].split("~"))
        self.assertAlmostEqual(end - start, 300, delta=1)

    def cells(self, name):
        heads = [head.text.strip(" \u25be\u25b4") for head in self.find_all(".members thead th")]
        column = heads.index(name)
        return [(row.find_element(By.CSS_SELECTOR, "td button").text,
                 row.find_elements(By.TAG_NAME, "td")[column].get_attribute("data-value"))
                for row in self.find_all(".members tbody tr")]

    def test_the_table_has_the_apis_numbers_the_worst_first(self):
        # The slow one differs most from the others, and in what.
        first = self.find(".members tbody tr")
        self.assertTrue(first.text.startswith("node0001"), first.text)
        heads = [head.text for head in self.find_all(".members thead th")]
        odd = [i for i, cell in enumerate(first.find_elements(By.TAG_NAME, "td"))
               if "odd" in cell.get_attribute("class")]
        self.assertIn(heads.index("CPU"), odd)
        self.assertNotIn(heads.index("GPU"), odd)
        self.find_all(".members thead th button")[-1].click()
        expected = self.heatmap(metric="mpi_wait_seconds_total", columns=1, rows=16384)
        # Of two ranks on each node, in the mean.
        values = {name: row[0] / 2 for name, row in zip(expected["names"], expected["mean"])}
        worst = sorted(values, key=lambda name: -values[name])
        self.assertEqual([(name, float(value)) for name, value in self.cells("MPI wait")],
                         [(name, values[name]) for name in worst])
        self.find_all(".members thead th button")[1].click()  # CPU: the least first
        cpu = self.heatmap(metric="task_cpu_seconds_total", columns=1, rows=16384)
        values = {name: row[0] for name, row in zip(cpu["names"], cpu["mean"])}
        self.until(lambda: self.cells("CPU")[0][0] == "node0001")
        self.assertEqual([(name, float(value)) for name, value in self.cells("CPU")],
                         sorted(values.items(), key=lambda one: one[1]))
        self.assertEqual(self.state()["sort"], "CPU")
        self.assertEqual(self.find_all(".members th")[1].get_attribute("aria-sort"), "ascending")
        self.find_all(".members thead th button")[1].click()
        self.until(lambda: self.state()["sort"] == "-CPU")
        self.assertNotEqual(self.cells("CPU")[0][0], "node0001")
        self.find_all(".members thead th button")[0].click()
        self.until(lambda: [name for name, _ in self.cells("CPU")] == sorted(values))
        self.find("#member-filter").send_keys("0003")
        self.until(lambda: len(self.cells("CPU")) == 1)
        self.find(".members tbody button").click()
        self.until(lambda: self.state().get("node") == "node0003")

    def test_ranks_have_rows_too(self):
        self.find("#heat-by option[value=task]").click()
        self.until(lambda: self.find_all(".members tbody tr")[0].text.startswith("rank"))
        expected = self.heatmap(metric="task_resident_memory_bytes", by="task", columns=1, rows=16384)
        values = {f"rank {name}": row[0] for name, row in zip(expected["names"], expected["max"])}
        self.assertEqual({name: float(value) for name, value in self.cells("Memory, peak")}, values)
        self.assertIn("rank 0", self.point(0.1, 0.05))
        self.shot("step-ranks")

    def test_inside_a_node_are_its_cores_gpus_and_devices(self):
        self.assertFalse(self.find(".inside").is_displayed())
        self.assertNotIn("cpu", self.find("#heat-by").get_attribute("innerHTML"))
        self.open("node=node0002&")
        words = [one.text for one in self.find_all(".inside button")]
        self.assertEqual(words, ["cores", "GPUs", "disks", "network interfaces", "all nodes"])
        self.find(".inside button").click()
        self.until(lambda: self.state().get("by") == "cpu" and self.shown().get("by") == "cpu")
        shown = self.shown()
        self.assertEqual((shown["host"], shown["metric"]), ("node0002", "node_cpu_core_seconds_total"))
        self.assertEqual(self.find(".matrix h2").text, "node0002: cores")
        data = self.data()
        self.assertEqual(data["names"], [str(i) for i in range(12)])
        self.assertEqual(self.browser.switch_to.active_element.text, "cores")
        self.until(lambda: "12 cores of node0002" in self.find(".heat").get_attribute("aria-label"))
        tip = self.point(0.75, 10.5 / 12)
        self.assertIn("core 10", tip)
        told = float(re.search(r"mean ([\d.]+) %", tip)[1])
        self.assertAlmostEqual(told, data["mean"][10][int(0.75 * data["columns"])] * 100, delta=0.6)
        self.assertIn("nothing measured", self.point(0.375, 10.5 / 12))  # node 2 is away
        self.shot("step-cores")
        # A core has no page of its own.
        area, left, top = self.place(0.75, 0.5)
        ActionChains(self.browser).move_to_element_with_offset(area, left, top).click().perform()
        self.find(".inside button:nth-of-type(3)").click()
        self.until(lambda: self.shown()["metric"] == "node_disk_written_bytes_total")
        self.assertEqual(self.state()["node"], "node0002")
        self.assertEqual(self.data()["names"], [f"loop{i}" for i in range(8)] + ["nvme0n1"])
        self.find("#heat-by option[value=host]").click()
        self.until(lambda: "by" not in self.state())
        self.until(lambda: self.shown()["by"] == "host")
        self.find(".inside button:last-child").click()
        self.until(lambda: "node" not in self.state())
        self.assertFalse(self.find(".inside").is_displayed())

    def test_the_address_leads_to_the_same_view(self):
        job = self.ask("/api/v1/profile")["job"]
        start = job["start"] / 1e9 + 600
        self.open(f"range={start:.0f}~{start + 600:.0f}&node=node0002&metric=node_load1&shade=max&")
        self.assertEqual(self.find("#scope").get_attribute("value"), "node")
        self.assertEqual(self.find("#scope-name").get_attribute("value"), "node0002")
        self.assertEqual(self.find("#heat-metric").get_attribute("value"), "node_load1")
        self.assertEqual(self.find("#heat-shade").get_attribute("value"), "max")
        shown = self.shown()
        self.assertEqual(shown["metric"], "node_load1")
        self.assertAlmostEqual(float(shown["start"]) / 1e3, start, delta=1)
        self.assertIn("10 min", self.find(".controls .range").text)

    def test_a_scope_is_chosen_by_name(self):
        self.find("#scope option[value=node]").click()
        name = self.find("#scope-name")
        name.send_keys("nonsense", Keys.ENTER)
        self.until(lambda: "wrong" in name.get_attribute("class"))
        name.clear()
        name.send_keys("node0003", Keys.TAB)
        self.until(lambda: self.state().get("node") == "node0003")
        self.find("#scope option[value=rank]").click()
        self.find("#scope-name").send_keys("5", Keys.TAB)
        self.until(lambda: self.state().get("rank") == "5")
        self.assertEqual(self.state()["node"], "node0002")  # where it is
        self.find("#scope option[value='']").click()
        self.until(lambda: "rank" not in self.state() and "node" not in self.state())

    def saved_svg(self):
        saved = self.saved()
        self.assertEqual(saved["type"], "image/svg+xml")
        with open(os.path.join(SHOTS, self.id().split(".")[-1] + f"-{len(saved['text'])}.svg"), "w") as file:
            file.write(saved["text"])
        root = xml.etree.ElementTree.fromstring(saved["text"])
        self.assertEqual(root.tag, SVG + "svg")
        # Nothing of the page or of others is needed to show it.
        self.assertNotRegex(saved["text"], r"var\(|href|<script|<image")
        return root, [one.text for one in root.iter(SVG + "text")]

    def test_a_plot_is_saved_as_lines_with_its_axes(self):
        self.browser.execute_script(CATCH)
        figure = self.scrolled("node_load1")
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        next(one for one in figure.find_elements(By.CSS_SELECTOR, ".panel button") if one.text == "SVG").click()
        root, texts = self.saved_svg()
        self.assertIn(f"{STEP}: Load average over 1 minute", texts)
        self.assertIn("mean", texts)
        self.assertIn("time steps", [one.text for one in root.iter(SVG + "title")])
        series = self.ask("/api/v1/series", metric="node_load1", points=300)["series"][0]
        # The line of the means goes through the values, by the marks of the axis.
        marks = [(float(one.text), float(one.get("y")) - 4) for one in root.iter(SVG + "text")
                 if one.get("text-anchor") == "end"]
        self.assertGreater(len(marks), 2)
        (low, at_low), (high, at_high) = marks[0], marks[-1]
        line = next(one for one in root.iter(SVG + "path") if one.get("stroke-width") == "2").get("d")
        places = [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", line)]
        self.assertEqual(len(places), len(series["value"]))
        for y, value in zip(places, series["value"]):
            self.assertAlmostEqual(y, at_low + (value - low) / (high - low) * (at_high - at_low), delta=0.6)

    def test_stacked_and_many_lines_are_saved_too(self):
        self.browser.execute_script(CATCH)
        figure = self.scrolled("node_cpu_seconds_total")
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        next(one for one in figure.find_elements(By.CSS_SELECTOR, ".panel button") if one.text == "SVG").click()
        root, texts = self.saved_svg()
        legend = [one.text for one in figure.find_elements(By.CSS_SELECTOR, ".legend li")]
        for name in legend[:2]:
            self.assertIn(name, texts)
        areas = [one for one in root.iter(SVG + "path") if one.get("fill") != "none"]
        self.assertEqual(len(areas), len([one for one in root.iter(SVG + "path") if one.get("fill") == "none"]))

    def test_a_heatmap_is_saved_as_tiles_with_its_scale(self):
        self.browser.execute_script(CATCH)
        button = next(one for one in self.find_all(".matrix > .tools button") if one.text == "SVG")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        root, texts = self.saved_svg()
        data = self.data()
        for name in data["names"]:
            self.assertIn(name, texts)
        scale = [one.text for one in self.find_all(".key > span")][:2]
        self.assertEqual([one for one in texts if one in scale], scale)
        self.assertTrue(any(re.fullmatch(r"\d\d:\d\d", one) for one in texts), texts)
        tiles = [one for one in root.iter(SVG + "path") if one.get("shape-rendering")]
        self.assertLessEqual(len(tiles), 259)
        missing = sum(one is None for row in data["mean"] for one in row)
        area = {one.get("fill"): sum(float(h) * float(v) for h, v in
                                     re.findall(r"h([\d.]+)v([\d.]+)", one.get("d"))) for one in tiles}
        share = area["url(#missing)"] / sum(area.values())
        self.assertAlmostEqual(share, missing / (data["columns"] * len(data["rows"])), delta=0.001)

    def test_titles_are_words_and_what_does_nothing_is_folded(self):
        overview = self.ask("/api/v1/overview")
        titles = {one["metric"]: one for one in overview["metrics"]}
        caption = self.figure("node_cpu_seconds_total").find_element(By.CSS_SELECTOR, "figcaption b")
        self.assertEqual(caption.text, titles["node_cpu_seconds_total"]["title"])
        self.assertEqual(caption.text, "CPU time by mode")
        for group, count in (("Memory", 2), ("Network", 2)):
            still = self.find(f"section[aria-label={group}] details.still")
            self.assertIn(f"{count} metric", still.text)
            self.assertIn("without a change", still.text)
        still = self.find("section[aria-label=Memory] details.still")
        self.browser.execute_script("arguments[0].open = true", still)
        self.assertIn("256 GiB", still.text)
        disk = self.figure("node_disk_written_bytes_total")
        self.assertIn("8 idle", disk.text)
        self.assertNotIn("loop0", disk.text)
        button = disk.find_element(By.CSS_SELECTOR, ".legend button")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", disk)
        button.click()
        self.until(lambda: "loop7" in disk.text)
        more = self.find("section[aria-label=Memory] details.more:not(.still) summary")
        self.assertEqual(more.text, "1 more metric")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", more)
        more.click()
        self.wait_for('figure[data-metric="node_memory_Dirty_bytes"] canvas')

    def saved(self):
        self.until(lambda: self.browser.execute_script("return window.saved.length") > 0)
        return self.browser.execute_script("return window.saved.pop()")

    def test_what_is_shown_can_be_saved(self):
        self.browser.execute_script(CATCH)
        figure = self.figure("node_load1")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", figure)
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        self.assertIn("node_load1", figure.find_element(By.CSS_SELECTOR, ".panel").text)
        self.shot("step-menu")
        buttons = {one.text: one for one in figure.find_elements(By.CSS_SELECTOR, ".panel button")}
        buttons["CSV"].click()
        rows = list(csv.reader(io.StringIO(self.saved()["text"])))
        series = self.ask("/api/v1/series", metric="node_load1", points=300)["series"][0]
        self.assertEqual(rows[0], ["time", "mean", "mean min", "mean max"])
        self.assertEqual([float(row[1]) for row in rows[1:] if row[1]], series["value"])
        self.assertEqual([float(row[3]) for row in rows[1:] if row[1]], series["max"])
        buttons["PNG"].click()
        self.assertEqual(self.saved()["type"], "image/png")
        heat = {one.text: one for one in self.find_all(".matrix > .tools button")}
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", heat["CSV"])
        heat["CSV"].click()
        rows = list(csv.reader(io.StringIO(self.saved()["text"])))
        data = self.data()
        self.assertEqual(len(rows), 5)
        self.assertEqual([float(one) if one else None for one in rows[2][2:]], data["mean"][1])
        heat["PNG"].click()
        self.assertEqual(self.saved()["type"], "image/png")
        self.find(".members .tools button").click()
        rows = list(csv.reader(io.StringIO(self.saved()["text"])))
        self.assertEqual(len(rows), 5)
        self.assertEqual(self.browser.execute_script("return window.savedName"), f"{STEP}-nodes.csv")

    def test_the_heatmap_shows_any_metric(self):
        self.find("#heat-metric option[value=node_cpu_seconds_total]").click()
        self.until(lambda: self.shown()["metric"] == "node_cpu_seconds_total")
        self.assertEqual(self.shown()["tags"], "mode=not_literal_or(idle|iowait)")
        self.find("#heat-shade option[value=max]").click()
        self.until(lambda: "the most" in self.find(".heatmap .words").text)
        figure = self.figure("node_load1")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", figure)
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        figure.find_element(By.CSS_SELECTOR, ".panel button").click()
        self.until(lambda: self.state().get("metric") == "node_load1")

    def test_the_cursor_is_the_same_in_all_plots(self):
        self.point(0.5, 0.5)
        tops = self.browser.execute_script("""
            return [...document.querySelectorAll('figure[data-metric] .u-cursor-x')]
                .map((one) => one.style.transform);""")
        self.assertGreater(len([one for one in tops if one and "-10px" not in one]), 3)
        self.hover(self.figure("node_load1"), 0.5)
        self.assertTrue(self.find(".heat .marker").get_attribute("hidden") is None)

    def test_alarms_and_phases_are_on_the_plots(self):
        tip = self.hover(self.figure("node_load1"), 2000 / 3600)
        self.assertIn("straggler: it computes far less", tip)
        self.assertIn("time steps", tip)

    def test_times_say_whose_they_are_once(self):
        zones = self.find_all(".zone")
        self.assertEqual(len(zones), 1)
        zone = self.browser.execute_script("return Intl.DateTimeFormat().resolvedOptions().timeZone")
        self.assertIn(zone, zones[0].text)

    def test_everything_is_reached_by_keyboard_and_has_a_name(self):
        area = self.area()
        self.browser.execute_script("arguments[0].focus()", area)
        area.send_keys(Keys.ARROW_DOWN, Keys.END)
        self.until(lambda: self.find("#tip").is_displayed())
        self.assertIn("node0001", self.find(".heatmap .words").text)
        area.send_keys(Keys.ENTER)
        self.until(lambda: self.state().get("node") == "node0001")
        figure = self.figure("node_load1")
        self.browser.execute_script("arguments[0].focus()", figure)
        figure.send_keys("+")
        self.until(lambda: "range" in self.state())
        figure.send_keys("0")
        self.until(lambda: "range" not in self.state())
        nameless = self.browser.execute_script("""
            return [...document.querySelectorAll('button, select, input, summary, a, [tabindex="0"]')]
              .filter((one) => one.offsetParent && !one.textContent.trim() &&
                               !one.getAttribute('aria-label') && !one.closest('label') && !one.labels?.length)
              .map((one) => one.outerHTML);""")
        self.assertEqual(nameless, [])
        hidden = self.browser.execute_script("""
            return [...document.querySelectorAll('button, select, input, summary, a[href]')]
              .filter((one) => one.offsetParent && one.tabIndex < 0).map((one) => one.outerHTML);""")
        self.assertEqual(hidden, [])

    def test_text_has_contrast_in_both_themes(self):
        for dark in (False, True):
            self.look(1280, dark)
            self.assertEqual(faint(self.browser, ".sr-only, .skip, svg, option"), [], f"dark: {dark}")

    def test_it_fits_every_screen(self):
        for width in (360, 1280, 2560):
            for dark in (False, True):
                self.look(width, dark)
                self.wait_to_fit(width)
                name = f"step-{width}-{'dark' if dark else 'light'}"
                self.whole(name, width)

    def whole(self, name, width):
        """A screenshot of the upper part of the page, however long."""
        self.browser.execute_script("scrollTo(0, 0)")
        self.screen_height(width, 2600)
        self.shot(name)

    def screen_height(self, width, height):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        self.until(lambda: self.browser.execute_script(DRAWN))


class ManyNodesTest(StepPage):
    ARGUMENTS = ["--nodes", "1000"]

    # Milliseconds from having an answer to having its tiles on the canvas, and what a frame takes
    # while a part is drawn larger and larger.
    MEASURE = """
        const [path, done] = arguments;
        (async () => {
          const {Heatmap} = await import('./step/heatmap.js');
          const text = await (await fetch('.' + path)).text();
          const map = new Heatmap({cursor() {}, zoom() {}, open() {}, reset() {}});
          document.querySelector('main').prepend(map.figure);
          const begin = performance.now();
          for (let i = 0; i < 5; ++i) map.draw(JSON.parse(text), 'mean', false, null);
          map.canvas.getContext('2d').getImageData(100, 20, 1, 1);  // it is really painted
          const draw = (performance.now() - begin) / 5;
          const frames = [];
          let last = performance.now();
          for (let i = 1; i <= 60; ++i) {
            map.view = {left: i * 2, width: map.tiles.width - i * 4, top: i, height: map.tiles.height - 2 * i};
            map.render();
            await new Promise(requestAnimationFrame);
            frames.push(performance.now() - last);
            last = performance.now();
          }
          map.destroy();
          map.figure.remove();
          frames.sort((a, b) => a - b);
          done({draw, frame: frames[30], slow: frames[57], bytes: text.length});
        })().catch((error) => done({error: String(error)}));"""

    def test_a_thousand_nodes(self):
        data = self.data()
        self.assertEqual(len(data["names"]), 1000)
        self.assertLess(len(data["rows"]), 1000)
        slow = next(i for i, (first, count) in enumerate(data["rows"]) if first <= 333 < first + count)
        # A row is a pixel high, and the pointer is at whole ones.
        tips = [self.point(0.9, (slow + 0.5 + off) / len(data["rows"])) for off in (0, -1, 1)]
        tip = next((one for one in tips if "least" in one and "node0333" in one), str(tips))
        self.assertRegex(tip, r"node\d{4} to node\d{4} \(\d\)")
        self.assertRegex(tip, r"least [\d.]+ cores? node0333")
        self.assertIn("200 more of 1000 nodes", self.find(".members").text)
        self.figures("1,000 nodes")
        for width, dark in ((360, False), (1280, False), (1280, True), (2560, True)):
            self.look(width, dark)
            self.wait_to_fit(width)
            self.browser.execute_script("scrollTo(0, 0)")
            OneStepTest.whole(self, f"thousand-{width}-{'dark' if dark else 'light'}", width)

    screen_height = OneStepTest.screen_height

    def figures(self, name):
        query = urllib.parse.urlencode({"job": STEP, "metric": "node_load1", "columns": 300, "rows": 420})
        took = self.browser.execute_async_script(self.MEASURE, f"/api/v1/heatmap?{query}")
        self.assertNotIn("error", took)
        print(f"{name}: drawn in {took['draw']:.1f} ms from {took['bytes'] / 1e6:.1f} MB, "
              f"a frame of a zoom {took['frame']:.1f} ms, 95 % within {took['slow']:.1f} ms")
        return took

    def test_rows_are_zoomed_too(self):
        area, left, top = self.place(0.5, 0.2)
        right, bottom = self.place(0.75, 0.6)[1:]
        self.drag(area, left, right, top, bottom)
        self.until(lambda: "rows" in self.state())
        first, end = map(int, self.state()["rows"].split("~"))
        self.assertAlmostEqual(first, 200, delta=8)
        self.assertAlmostEqual(end, 600, delta=8)
        self.until(lambda: self.shown().get("first") == str(first))


class VeryManyNodesTest(ManyNodesTest):
    ARGUMENTS = ["--nodes", "10000"]

    def setUp(self):
        self.screen(1280, 1000)
        self.browser.get(self.address)
        self.wait_for(".brand")

    def test_a_thousand_nodes(self):
        took = self.figures("10,000 nodes")
        self.assertLess(took["bytes"], 8_000_000)

    test_rows_are_zoomed_too = None


class LiveTest(Page):
    # A tick of 50 gauges, drawn beside 50 plots that are there already.
    TICK = """
        const [done] = arguments;
        (async () => {
          const {Live} = await import('./live.js');
          const charts = [];
          const series = [];
          for (let i = 0; i < 50; ++i) {
            const metric = {metric: 'made_' + i, type: 'gauge'};
            const label = document.querySelector('main').appendChild(document.createElement('span'));
            charts.push({metric, showNow(value) { label.textContent = value.toFixed(2); }});
            series.push({metric: 'made_' + i, mean: i});
          }
          window.EventSource = class { addEventListener() {} close() {} };
          const live = new Live('4712.0', () => charts, () => {}, () => {});
          const times = [];
          for (let i = 0; i < 50; ++i) {
            const begin = performance.now();
            live.onTick({series: series.map((one) => ({...one, mean: one.mean + i}))});
            document.body.offsetHeight;  // with the layout
            times.push(performance.now() - begin);
          }
          live.close();
          times.sort((a, b) => a - b);
          done({median: times[25], most: times[49]});
        })().catch((error) => done({error: String(error)}));"""

    def test_a_tick_takes_little(self):
        self.open_job("4712.0")
        took = self.browser.execute_async_script(self.TICK)
        self.assertNotIn("error", took)
        print(f"a tick of 50 series: {took['median']:.2f} ms, at most {took['most']:.2f} ms")
        self.assertGreater(took["most"], 0)


if __name__ == "__main__":
    print("screenshots in", SHOTS)
    unittest.main(argv=[sys.argv[0], *os.environ.get("SONDE_WEB_TESTS", "").split()])
