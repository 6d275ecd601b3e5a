"""The page in headless Chromium: what a person sees, clicks and reaches by keyboard.

page_test.py PAGE_SERVER [--shots DIR]: with --shots also leaves screenshots, light, dark and phone.
Needs Debian's chromium, chromium-driver and python3-selenium.
"""

import subprocess
import sys
import tempfile
import unittest

from contrast import faint
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 30  # seconds
# What was waited for in vain once is not late but broken: the other tests shall not wait that long
# for the same, or all of them together wait beyond any limit.
PATIENCE_THEN = 2
SERVER = sys.argv[1] if len(sys.argv) > 1 else ""
SHOTS = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "--shots" else ""


def start_browser(profile):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--lang=en", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class Page(unittest.TestCase):
    ARGUMENTS = []
    patience = PATIENCE  # of all

    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([SERVER, *cls.ARGUMENTS], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.server.communicate, "")
        cls.address = cls.server.stdout.readline().strip()
        cls.profile = tempfile.TemporaryDirectory(prefix="sonde-page-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.profile.cleanup)
        cls.browser = start_browser(cls.profile.name)
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_page_load_timeout(PATIENCE)
        cls.browser.set_script_timeout(PATIENCE)

    def setUp(self):
        self.screen(1300, 1000)
        self.browser.get(self.address)
        self.wait_for(".jobs a")

    def tearDown(self):
        # A broken script or a breach of the content policy would be here.
        self.assertEqual([line["message"] for line in self.browser.get_log("browser")], [])

    def screen(self, width, height, dark=False):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def wait_to_fit(self, width):
        """Plots are drawn anew, one after the other, when the window's width has changed."""
        self.until(lambda: self.browser.execute_script(
            "return document.documentElement.scrollWidth") <= width)

    def until(self, condition):
        # The page may make anew what was just found.
        wait = WebDriverWait(self.browser, Page.patience, poll_frequency=0.05,
                             ignored_exceptions=[StaleElementReferenceException])
        try:
            return wait.until(lambda _: condition())
        except TimeoutException:
            Page.patience = PATIENCE_THEN
            raise

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait_for(self, selector):
        return self.until(lambda: self.find_all(selector))[0]

    def open_job(self, job="4711.0"):
        self.browser.find_element(By.LINK_TEXT, job).click()
        self.until(lambda: self.find_all("figure") and all(
            figure.find_elements(By.CSS_SELECTOR, "canvas") for figure in self.shown_figures()))

    def shown_figures(self):
        return [figure for figure in self.find_all("figure") if figure.is_displayed()]

    def figure(self, metric):
        return self.find(f'figure[data-metric="{metric}"]')

    def shot(self, name):
        if SHOTS:
            self.browser.save_screenshot(f"{SHOTS}/{name}.png")

    def hover(self, figure, share):
        plot = figure.find_element(By.CSS_SELECTOR, ".u-over")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        offset = int(plot.size["width"] * (share - 0.5))
        ActionChains(self.browser).move_to_element_with_offset(plot, offset, 0).perform()
        self.until(lambda: self.find("#tip").is_displayed())
        return self.find("#tip").text


class PageTest(Page):
    def test_the_token_leaves_the_address(self):
        self.assertNotIn("token", self.browser.current_url)
        self.assertEqual(self.browser.execute_script("return document.cookie"), "")  # HttpOnly

    def test_the_list_has_running_and_finished_steps_newest_first(self):
        rows = [row.text for row in self.find_all(".jobs tbody tr")]
        self.assertEqual(len(rows), 2)
        self.assertEqual(self.find_all(".damage"), [])
        self.assertRegex(rows[0], r"(?s)4712\.0 running.*\n100 %")
        self.assertRegex(rows[1], r"(?s)4711\.0 completed.* 10 min 0 s.*98\.3 %")
        self.shot("list")

    def test_a_step_shows_what_it_is_and_what_is_missing(self):
        self.open_job()
        text = self.find("#view").text
        for expected in ("4711.0 lid-cavity", "completed", "./cavity --grid 512", "98.3 %",
                         "n3: no samples for 40 s: link lost", "Cost of Sonde"):
            self.assertIn(expected, text)
        legend = self.figure("node_load1").text
        self.assertIn("samples missing", legend)
        for metric in ("node_load1", "node_cpu_seconds_total"):  # n3 is away
            self.assertIn("of 3 of 4 nodes", self.hover(self.figure(metric), 220 / 600))
        self.shot("nodes")
        self.assertIn("band: least to most", legend)
        self.shot("job")

    def test_points_of_fewer_nodes_than_there_are_say_so_quietly(self):
        self.open_job("4712.0")
        figure = self.figure("node_cpu_seconds_total")
        self.assertIn("of 1 of 2 nodes", self.hover(figure, 10 / 300))
        self.shot("fewer-nodes")
        self.assertNotIn("of 2 nodes", self.hover(figure, 0.5))
        self.assertNotIn("samples missing", figure.text)

    def test_every_group_of_metrics_is_drawn_with_its_unit(self):
        self.open_job()
        groups = [head.text for head in self.find_all("h2")]
        self.assertEqual(groups, ["In short", "Alarms", "Nodes", "Phases and remarks", "CPU", "Memory", "Load and pressure", "Network",
                                  "Disks and file systems", "Tasks", "Application", "Histograms"])
        for metric, unit in (("node_cpu_seconds_total", r"[\d.]+ cores"),
                             ("node_memory_MemAvailable_bytes", r"[\d.]+ GiB"),
                             ("node_disk_read_bytes_total", r"MiB/s|B/s"),
                             ("node_pressure_cpu_waiting_seconds_total", r"[\d.]+ %"),
                             ("solver_iterations_total", r"[\d.]+/s")):
            self.assertRegex(self.figure(metric).text, unit)

    def test_the_tip_names_the_nodes_at_the_edges(self):
        self.open_job()
        self.assertRegex(self.hover(self.figure("node_load1"), 0.6),
                         r"mean [\d.]+ least [\d.]+ n3 most [\d.]+ n[124]")
        self.assertRegex(self.hover(self.figure("task_resident_memory_bytes"), 0.6),
                         r"GiB n\d task \d")

    def test_figures_of_merit_are_in_the_list_and_above_the_step(self):
        self.assertIn("cell_updates 245.052 Mcells/s", self.find(".jobs tbody tr:nth-child(2)").text)
        self.open_job()
        self.assertEqual(self.find(".figures").text,
                         "cell_updates\n245.052 Mcells/s\nresidual\n0.000128698")

    def test_phases_and_remarks_stand_in_a_timeline(self):
        self.open_job()
        lanes = [lane.text.split("\n") for lane in self.find_all(".lane:not(.axis)")]
        self.assertEqual(lanes, [["setup", "8 times, 22 s, 3.7 %"],
                                 ["time loop", "8 times, 9 min 6 s, 91.0 %"],
                                 ["implicit solve", "32 times, 3 min 0 s, 30.0 %"],
                                 ["output", "8 times, 26 s, 4.3 %"], ["Remarks", "3 remarks"]])
        self.assertEqual(len(self.find_all(".lane:nth-child(3) .track i")), 4)
        remarks = [row.text for row in self.find_all(".remarks tbody tr")]
        self.assertEqual(remarks, ["11 s mesh read: 512 x 512 1 n1 task 1",
                                   "2 min 30 s checkpoint 1 8 n1 task 1",
                                   "5 min 0 s checkpoint 2 8 n1 task 1"])

    def test_alarms_name_node_and_task(self):
        self.open_job()
        rows = [row.text for row in self.find_all(".alarms tbody tr")]
        self.assertEqual(len(rows), 2)
        self.assertRegex(rows[0], r"^straggler it computes far less than the others: 0.31 s/s "
                                  r"task 3 on n2 .*, until the end$")
        self.assertRegex(rows[1], r"^memory_soon memory runs out .* is left n3 .* 12 s$")
        self.assertEqual(self.find_all(".alarms tr.active"), [])
        self.shot("alarms")

    def test_an_alarm_that_is_raised_now_stands_first(self):
        self.open_job("4712.0")
        self.assertRegex(self.find(".alarms tr.active").text, r"^straggler .* so far$")

    def test_phases_and_remarks_are_on_every_plot(self):
        self.open_job()
        # Where the strip of the phases is, above what the lines are drawn in.
        for figure in self.find_all("figure[data-metric]"):
            strip = self.browser.execute_script("""
                const canvas = arguments[0].querySelector('canvas');
                return canvas.getContext('2d').getImageData(canvas.width / 2, 13, 1, 1).data[3];""",
                figure)
            self.assertGreater(strip, 0, figure.get_attribute("data-metric"))
        tip = self.hover(self.figure("node_load1"), 0.5)
        self.assertIn("time loop: 9 min 6 s", tip)
        self.assertIn("checkpoint 2 (8 times)", tip)
        self.assertNotIn("setup", tip)

    def test_a_phase_that_is_not_over_lasts_until_now(self):
        self.open_job("4712.0")
        self.assertRegex(self.find(".lane:nth-child(2)").text, r"time loop\n4 times, 4 min \d+ s")
        self.assertIn("time loop: for 4 min", self.hover(self.figure("node_load1"), 0.5))

    def test_a_histogram_is_drawn_and_said_in_words(self):
        self.open_job()
        figure = self.find('figure[data-histogram="halo_wait_seconds"]')
        self.assertRegex(figure.text, "Half of them up to 542 µs, 90 % up to 4.33 ms, "
                                      "99 % up to 28.1 ms; mean 2.19 ms, from 0 s to 48.6 ms")
        self.assertRegex(self.hover(figure, 0.3), r"244 µs to 305 µs\n580 values, 2.9 %")

    def test_everything_is_reached_by_keyboard(self):
        body = self.find("body")
        for _ in range(40):
            active = self.browser.switch_to.active_element
            if active.text == "4711.0":
                break
            (active if active.tag_name != "body" else body).send_keys(Keys.TAB)
        self.browser.switch_to.active_element.send_keys(Keys.ENTER)
        self.wait_for("figure canvas")
        self.until(lambda: self.figure("node_load1").find_elements(By.CSS_SELECTOR, "canvas"))
        figure = self.figure("node_load1")
        self.browser.execute_script("arguments[0].focus()", figure)
        figure.send_keys(Keys.END, Keys.ARROW_LEFT)
        self.until(lambda: self.find("#tip").is_displayed())
        figure.send_keys(Keys.ESCAPE)
        self.assertFalse(self.find("#tip").is_displayed())
        self.assertRegex(figure.get_attribute("aria-label"), r"Load average over one minute \(node_load1\): .* mean [\d.]+")

    def test_one_line_per_host(self):
        self.open_job()
        self.find("#by-host").click()
        self.until(lambda: "n1\nn2\nn3\nn4" in self.figure("node_cpu_seconds_total").text)
        self.shot("by-host")

    def test_what_never_changes_is_a_line_and_no_plot(self):
        self.open_job()
        self.assertEqual(self.find_all('figure[data-metric="node_memory_MemTotal_bytes"]'), [])
        more = self.find("section[aria-label=Memory] details.still")
        self.assertIn("1 metric without a change", more.text)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", more)
        more.find_element(By.TAG_NAME, "summary").click()
        self.assertIn("64 GiB", more.text)

    COUNT_READS = """
        window.reads = 0;
        const read = window.fetch;
        window.fetch = (...all) => { window.reads += 1; return read(...all); };"""

    def reads(self):
        return self.browser.execute_script("return window.reads")

    def tell(self, what):
        self.server.stdin.write(what)
        self.server.stdin.flush()

    def test_a_running_step_is_told_as_it_happens(self):
        self.open_job("4712.0")
        now = self.figure("node_load1").find_element(By.CSS_SELECTOR, "figcaption span")
        before = now.text
        self.browser.execute_script(self.COUNT_READS)

        def changed():
            self.tell("t")
            return now.text != before
        self.until(changed)
        self.shot("live")
        # The charts follow.
        self.until(lambda: self.reads() > 0)

    def test_where_there_are_no_events_it_is_read_at_intervals(self):
        self.browser.execute_script("window.EventSource = undefined")
        self.open_job("4712.0")
        self.browser.execute_script(self.COUNT_READS)
        self.until(lambda: self.reads() > 0)

    def test_an_unknown_step_is_said_in_words(self):
        self.browser.get(self.address.split("?")[0] + "#/job/1.0")
        self.until(lambda: "no step 1.0" in self.find("#message").text)
        self.browser.get_log("browser")  # Chromium logs the 404 itself

    def test_it_fits_a_phone_and_the_dark(self):
        self.open_job()
        self.screen(390, 844)
        self.wait_to_fit(390)
        self.shot("phone")
        self.screen(1300, 1000, dark=True)
        self.wait_for("figure canvas")
        background = self.browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor")
        self.assertEqual(background, "rgb(18, 22, 28)")
        self.until(lambda: all(figure.find_elements(By.CSS_SELECTOR, "canvas")
                               for figure in self.shown_figures()))
        self.shot("dark")


class StepsTest(Page):
    DRAWN = """const shown = [...document.querySelectorAll('figure')].filter((one) => one.offsetParent);
               return shown.length > 0 && shown.every((one) => one.querySelector('canvas'));"""

    def open(self, hash):
        self.browser.execute_script("location.hash = arguments[0]", hash)

    def tags(self):
        return self.browser.execute_script(
            "return [...document.querySelectorAll('div.tags .tag')].map((tag) => tag.firstChild.data)")

    def test_a_job_shows_its_steps_together(self):
        self.open_job()
        self.find("#crumb a").click()
        self.wait_for("section[aria-label=Job]")
        self.assertIn("2 completed", self.find("section[aria-label=Job]").text)
        rows = [row.text for row in self.find_all(".jobs tbody tr")]
        self.assertEqual(len(rows), 2)
        self.assertRegex(rows[0], r"(?s)4711\.0 completed .*campaign=winter")
        self.assertRegex(rows[1], r"4711\.batch completed")
        self.shot("steps")

    def test_tags_are_added_and_taken_away(self):
        self.open_job()
        self.assertEqual(self.tags(), ["campaign=winter"])
        self.find(".tags input").send_keys("series=night", Keys.ENTER)
        self.until(lambda: self.tags() == ["campaign=winter", "series=night"])
        self.shot("tags")
        self.find("button[aria-label='Take the tag series away']").click()
        self.until(lambda: self.tags() == ["campaign=winter"])

    def test_a_running_step_has_tags_that_only_it_was_given(self):
        self.open_job("4712.0")
        self.assertEqual(self.find_all(".tags form"), [])

    def test_ticked_runs_are_compared_with_the_first_of_them(self):
        self.assertEqual(len(self.find_all(".jobs input")), 1)  # the other runs
        self.assertIn("Tick runs", self.find(".picks").text)
        self.open("#/job/4711")
        self.wait_for("section[aria-label=Job]")
        batch, step = self.find_all(".jobs input")[::-1]
        batch.click()
        self.assertIn("Tick another run", self.find(".picks").text)
        step.click()
        self.find(".picks a").click()
        self.wait_for("table.numbers")
        self.assertEqual([row.text.split()[:2] for row in self.find_all(".runs tbody tr")],
                         [["A", "4711.batch"], ["B", "4711.0"]])

    def test_a_jobs_steps_lie_on_one_line_of_time(self):
        self.open("#/job/4711")
        self.wait_for(".steps-line .bar")
        steps = self.browser.execute_async_script("""
            const [done] = arguments;
            fetch('./api/v1/steps?job=4711').then((answer) => answer.json()).then((all) => done(all.steps));""")
        begin = min(step["start"] for step in steps)
        whole = max(step["end"] for step in steps) - begin
        rows = self.find_all(".steps-line .row")
        self.assertEqual([row.get_attribute("class") for row in rows], ["row outer", "row"])
        width = rows[0].size["width"]
        for row, name in zip(rows, ("batch", "0")):
            step = next(one for one in steps if one["step"] == name)
            bar, = row.find_elements(By.CSS_SELECTOR, ".bar")
            self.assertEqual(bar.get_attribute("data-step"), "4711." + name)
            self.assertIn("completed", bar.get_attribute("aria-label"))
            self.assertAlmostEqual(bar.location["x"] - row.location["x"],
                                   (step["start"] - begin) / whole * width, delta=3)
            self.assertAlmostEqual(bar.size["width"], (step["end"] - step["start"]) / whole * width, delta=3)
        # One bar by Tab, the others by arrows; Enter opens.
        reached = self.find_all(".steps-line .bar[tabindex='0']")
        self.assertEqual(len(reached), 1)
        self.browser.execute_script("arguments[0].focus()", reached[0])
        reached[0].send_keys(Keys.ARROW_DOWN)
        self.assertIn("lid-cavity", self.find("#tip").text)
        active = self.browser.switch_to.active_element
        self.assertEqual(active.get_attribute("data-step"), "4711.0")
        active.send_keys(Keys.ENTER)
        self.until(lambda: self.browser.current_url.endswith("#/job/4711.0"))

    def test_states_on_the_line_of_time_can_be_read(self):
        for dark in (False, True):
            self.screen(1300, 1000, dark)
            self.browser.get(self.address)
            self.wait_for(".jobs a")
            self.open("#/job/4711")
            self.wait_for(".steps-line")
            self.browser.execute_async_script("""
                const [done] = arguments;
                import('./list/timeline.js').then(({timelineOf}) => {
                  const states = ['completed', 'failed', 'out_of_memory', 'cancelled', 'timeout', 'preempted',
                                  'node_fail', 'lost', 'unknown', 'running'];
                  document.querySelector('.steps-line').replaceWith(timelineOf(states.map((state, i) => ({
                    job: '77', step: String(i), state, title: 'solve', nodes: 1, tasks: 1, start: 1e18,
                    end: 1e18 + 3600e9}))));
                  done();
                });""")
            self.assertEqual(len(self.find_all(".steps-line .row")), 10)
            self.assertEqual(len({one.text for one in self.find_all(".steps-line .legend li")}), 10)
            self.assertEqual(faint(self.browser, ".sr-only, .skip, svg, option"), [], f"dark: {dark}")
            self.shot(f"states-{'dark' if dark else 'light'}")
        self.screen(390, 900, True)
        self.wait_to_fit(390)

    def test_a_thousand_steps_have_bounded_rows_without_overlaps(self):
        plan = self.browser.execute_async_script("""
            const [done] = arguments;
            import('./list/timeline.js').then(({layOut, timelineOf}) => {
              const made = (n, apart, long) => Array.from({length: n}, (_, i) => ({
                job: '77', step: i ? String(i) : 'batch', state: i % 7 ? 'completed' : 'failed', title: 'solve',
                nodes: 1, tasks: 1, start: 1e18 + i * apart * 1e9, end: i === 1 ? 0 : 1e18 + (i * apart + long) * 1e9}));
              const told = (steps) => {
                const {begin, end, rows, outer, left} = layOut(steps, 1e9 + 5000);
                const overlaps = rows.flatMap((row) => row.filter((bar, i) => i && bar.begin < row[i - 1].end));
                return {begin, end, rows: rows.length, bars: rows.flat().length, outer, left, overlaps: overlaps.length};
              };
              const words = timelineOf(made(1000, 1, 3000)).querySelector('.words').textContent;
              done({one: told(made(1, 1, 10)), many: told(made(1000, 5, 4)), much: told(made(3000, 1, 3000)), words});
            }).catch((error) => done({error: String(error)}));""")
        self.assertNotIn("error", plan)
        self.assertEqual((plan["one"]["rows"], plan["one"]["bars"], plan["one"]["left"]), (1, 1, 0))
        self.assertEqual((plan["many"]["bars"], plan["many"]["left"], plan["many"]["outer"]), (1000, 0, 1))
        self.assertLess(plan["many"]["rows"], 10)
        self.assertEqual(plan["many"]["end"], 1e9 + 5000, "one still runs")
        self.assertEqual(plan["much"]["rows"], 40)
        self.assertEqual(plan["much"]["left"], 3000 - plan["much"]["bars"])
        self.assertGreater(plan["much"]["bars"], 39)
        for one in plan.values():
            self.assertEqual(one["overlaps"] if isinstance(one, dict) else 0, 0)
        self.assertRegex(plan["words"], r"^\d+ steps left out here")

    def test_runs_beside_each_other(self):
        self.browser.get(self.address.split("?")[0] + "diff?profiles=4711.0,4710.0,4709.0")
        self.wait_for("table.numbers")
        self.assertIn("#/diff?profiles=4711.0,4710.0,4709.0", self.browser.current_url)
        self.assertIn("4 numbers of 7 differ beyond noise", self.find(".title").text)
        table = self.find("table[aria-label=Numbers]")
        marked = [row.text for row in table.find_elements(By.CSS_SELECTOR, "tr.differs")]
        self.assertEqual(len(marked), 4)
        self.assertRegex(marked[0], r"time duration \* 10 min 0 s 12 min 0 s 14 min 24 s "
                                    r"\+20 % ± 4\.17 % \+44 % ± 3\.47 %")
        self.assertIn("node_load1", table.text)
        self.assertNotIn("node_procs_running", table.text)  # within noise
        self.until(lambda: all(figure.find_elements(By.CSS_SELECTOR, "canvas")
                               for figure in self.shown_figures()))
        self.assertEqual(len(self.shown_figures()), 2)
        tip = self.hover(self.figure("task_resident_memory_bytes"), 0.95)
        self.assertRegex(tip, r"A\s+no samples")  # it was over by then
        self.assertRegex(tip, r"C\s+[\d.]+ GiB")
        self.shot("diff")
        for name, width, dark in (("diff-dark", 1300, True), ("diff-phone", 390, False)):
            self.screen(width, 1000, dark)
            # In one go, since another colour scheme has all made anew.
            self.until(lambda: self.browser.execute_script(self.DRAWN))
            self.wait_to_fit(width)
            self.shot(name)

    def test_runs_are_aligned_by_a_phase_that_is_chosen(self):
        self.open("#/diff?profiles=4711.0,4710.0")
        self.wait_for("table.numbers")
        self.find("#align option[value='phase:time loop']").click()
        self.until(lambda: "align=phase" in self.browser.current_url)
        self.until(lambda: self.browser.execute_script(
            "const align = document.getElementById('align'); return align && align.value") ==
                   "phase:time loop")


class CrowdedTest(Page):
    ARGUMENTS = ["--crowded"]

    def test_what_cannot_be_read_is_said_above_the_list(self):
        damage = self.find(".damage")
        self.assertIn("Some of the archive cannot be read. The rest is shown.", damage.text)
        self.assertNotIn("4713", damage.text)
        damage.find_element(By.TAG_NAME, "summary").click()
        self.until(lambda: "the summary of lab.4713.0.1" in self.find(".damage").text)
        self.assertEqual(len(self.find_all(".jobs tbody tr")), 2)
        self.shot("damage")

    def test_very_many_phases_and_remarks_leave_the_page_readable(self):
        self.open_job()
        self.assertEqual(len(self.find_all(".lane:not(.axis)")), 31)
        self.assertEqual(self.find("details.more summary").text, "200 remarks")
        self.assertFalse(self.find(".remarks").is_displayed())
        self.assertLess(self.find(".timeline").size["height"], 500)
        tip = self.hover(self.figure("node_load1"), 0.5)
        self.assertIn("residual check", tip)
        self.assertLess(self.find("#tip").size["height"], 250)
        self.shot("crowded")
        self.screen(390, 844)
        self.wait_to_fit(390)
        self.shot("crowded-phone")


class HeadTest(Page):
    ARGUMENTS = ["--head"]

    def setUp(self):
        self.screen(1300, 1000)
        self.browser.get(self.address)
        self.wait_for("section[aria-label=Step]")

    def test_a_head_shows_its_step_at_once(self):
        self.assertIn("#/job/4712.0", self.browser.current_url)
        self.find(".brand").click()
        self.until(lambda: "#/job/4712.0" in self.browser.current_url)
        self.wait_for("section[aria-label=Step]")


class EndTest(Page):
    def test_the_end_of_a_step_is_seen_at_once(self):
        self.open_job("4712.0")
        self.browser.execute_script(PageTest.COUNT_READS)
        self.server.stdin.write("e")
        self.server.stdin.flush()
        self.until(lambda: self.browser.execute_script("return window.reads") > 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
