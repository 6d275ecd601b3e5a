"""A job with its steps, and runs beside each other, in headless Chromium.

steps_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from contrast import faint
from page import Page, main


class StepsTest(Page):
    def tags(self):
        return self.browser.execute_script(
            "return [...document.querySelectorAll('div.tags .tag')].map((tag) => tag.firstChild.data)")

    def test_a_job_shows_its_steps_together(self):
        self.open_job()
        self.click("#crumb a")
        self.wait_for("section[aria-label=Job]")
        self.assertIn("2 completed", self.find("section[aria-label=Job]").text)
        rows = self.texts(".jobs tbody tr")
        self.assertEqual(len(rows), 2)
        self.assertRegex(rows[0], r"4711\.0 completed .*campaign=winter")
        self.assertRegex(rows[1], r"4711\.batch completed")
        self.shot("steps")

    def test_tags_are_added_and_taken_away(self):
        self.open_job()
        self.assertEqual(self.tags(), ["campaign=winter"])
        self.find(".tags input").send_keys("series=night", Keys.ENTER)
        self.until(lambda: self.tags() == ["campaign=winter", "series=night"])
        self.shot("tags")
        self.click("button[aria-label='Take the tag series away']")
        self.until(lambda: self.tags() == ["campaign=winter"])

    def test_a_running_step_has_tags_that_only_it_was_given(self):
        self.open_job("4712.0")
        self.assertEqual(self.find_all(".tags form"), [])

    def test_ticked_runs_are_compared_with_the_first_of_them(self):
        self.assertEqual(len(self.find_all(".jobs input")), 1)  # the other runs
        self.assertIn("Tick runs", self.find(".picks").text)
        self.go("#/job/4711")
        self.wait_for("section[aria-label=Job]")
        batch, step = self.find_all(".jobs input")[::-1]
        batch.click()
        self.assertIn("Tick another run", self.find(".picks").text)
        step.click()
        self.click(".picks a")
        self.wait_for("table.numbers")
        self.assertEqual([row.text.split()[:2] for row in self.find_all(".runs tbody tr")],
                         [["A", "4711.batch"], ["B", "4711.0"]])

    def test_a_jobs_steps_lie_on_one_line_of_time(self):
        self.go("#/job/4711")
        self.wait_for(".steps-line .bar")
        steps = self.ask("/api/v1/steps", job="4711")["steps"]
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
        self.until_in("lid-cavity", lambda: self.find("#tip").text)
        active = self.browser.switch_to.active_element
        self.assertEqual(active.get_attribute("data-step"), "4711.0")
        active.send_keys(Keys.ENTER)
        self.until(lambda: self.browser.current_url.endswith("#/job/4711.0"))

    def test_states_on_the_line_of_time_can_be_read(self):
        for dark in (False, True):
            self.screen(1300, 1000, dark)
            self.load()
            self.wait_for(".jobs a")
            self.go("#/job/4711")
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
        self.look(390, dark=True, height=900)

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
        self.load("/diff?profiles=4711.0,4710.0,4709.0")
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
        self.wait_drawn()
        self.assertEqual(len(self.shown_figures()), 2)
        tip = self.hover(self.figure("task_resident_memory_bytes"), 0.95)
        self.assertRegex(tip, r"A\s+no samples")  # it was over by then
        self.assertRegex(tip, r"C\s+[\d.]+ GiB")
        self.shot("diff")
        for name, width, dark in (("diff-dark", 1300, True), ("diff-phone", 390, False)):
            self.look(width, dark)
            self.wait_drawn()
            self.shot(name)

    def test_runs_are_aligned_by_a_phase_that_is_chosen(self):
        self.go("#/diff?profiles=4711.0,4710.0")
        self.wait_for("table.numbers")
        self.click("#align option[value='phase:time loop']")
        self.until(lambda: "align=phase" in self.browser.current_url)
        self.until(lambda: self.browser.execute_script(
            "const align = document.getElementById('align'); return align && align.value") ==
                   "phase:time loop")


if __name__ == "__main__":
    main()
