"""The page in headless Chromium: what a person sees, clicks and reaches by keyboard.

page_test.py PAGE_SERVER [--shots DIR]: with --shots also leaves screenshots, light, dark and phone.
Needs Debian's chromium, chromium-driver and python3-selenium.
"""

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from page import Page, main


class PageTest(Page):
    def test_days_of_a_time_axis_are_whole_where_the_clock_is_changed(self):
        override = "Emulation.setTimezoneOverride"
        self.browser.execute_cdp_cmd(override, {"timezoneId": "Europe/Berlin"})
        self.addCleanup(self.browser.execute_cdp_cmd, override, {"timezoneId": ""})
        days = self.browser.execute_async_script("""
            const done = arguments[0], from = Date.UTC(2026, 9, 23, 12) / 1000;
            import('./numbers.js').then(({times, wholeTimes}) =>
                done(times(wholeTimes(from, from + 5 * 86400, 86400), 86400)));""")
        self.assertEqual(days, [f"Oct {day}" for day in range(24, 29)])

    def test_the_token_leaves_the_address(self):
        self.assertNotIn("token", self.browser.current_url)
        self.assertNotIn("token", self.browser.execute_script("return document.referrer + document.cookie"))

    def test_the_list_has_running_and_finished_steps_newest_first(self):
        rows = self.texts(".jobs tbody tr")
        self.assertEqual(len(rows), 2)
        self.assertEqual(self.find_all(".damage"), [])
        self.assertRegex(rows[0], r"4712\.0 running.* 100 %")
        self.assertRegex(rows[1], r"4711\.0 completed.* 10 min 0 s.*98\.3 %")
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
        self.assertIn("cell_updates 245.052 Mcells/s", self.texts(".jobs tbody tr")[1])
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
        for _ in range(40):
            if self.browser.execute_script("return document.activeElement.textContent") == "4711.0":
                break
            ActionChains(self.browser).send_keys(Keys.TAB).perform()
        ActionChains(self.browser).send_keys(Keys.ENTER).perform()
        self.wait_drawn()
        figure = self.figure("node_load1")
        self.browser.execute_script("arguments[0].focus()", figure)
        figure.send_keys(Keys.END, Keys.ARROW_LEFT)
        self.until(lambda: self.find("#tip").is_displayed())
        figure.send_keys(Keys.ESCAPE)
        self.until(lambda: not self.find("#tip").is_displayed())
        self.assertRegex(figure.get_attribute("aria-label"), r"Load average over one minute \(node_load1\): .* mean [\d.]+")

    def test_one_line_per_host(self):
        self.open_job()
        self.click("#by-host")
        self.until(lambda: "n1\nn2\nn3\nn4" in self.figure("node_cpu_seconds_total").text)
        self.shot("by-host")

    def test_what_never_changes_is_a_line_and_no_plot(self):
        self.open_job()
        self.assertEqual(self.find_all('figure[data-metric="node_memory_MemTotal_bytes"]'), [])
        more = self.find("section[aria-label=Memory] details.still")
        self.assertIn("1 metric without a change", more.text)
        self.scroll_to(more)
        more.find_element(By.TAG_NAME, "summary").click()
        self.assertIn("64 GiB", more.text)

    COUNT_READS = """
        window.reads = 0;
        const read = window.fetch;
        window.fetch = (...all) => { window.reads += 1; return read(...all); };"""

    def reads(self):
        return self.browser.execute_script("return window.reads")

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
        self.browser.execute_script("""
            const real = window.fetch;
            window.fetch = (path, ...all) => path.startsWith('./api/live') ? Promise.reject(new TypeError()) : real(path, ...all);""")
        self.open_job("4712.0")
        self.browser.execute_script(self.COUNT_READS)
        self.until(lambda: self.reads() > 0)

    def test_an_unknown_step_is_said_in_words(self):
        self.expect_refusals(404)
        self.go("#/job/1.0")
        self.until_in("no step 1.0", lambda: self.find("#message").text)

    def test_an_address_that_is_encoded_wrongly_is_that_of_no_step(self):
        self.expect_refusals(400, 404)
        for job in ("50%", "%E0%A4%A.0"):  # a job and a step
            self.go("#/job/" + job)
            self.until_in(f"no step {job}", lambda: self.find("#message").text)
        # The page goes on to work.
        self.go("#/job/4711.0")
        self.wait_drawn()
        self.assertIn("4711.0 lid-cavity", self.find("#view").text)
        self.assertFalse(self.find("#message").is_displayed())

    def test_it_fits_a_phone_and_the_dark(self):
        self.open_job()
        self.look(390, height=844)
        self.shot("phone")
        self.look(1300, dark=True)
        self.wait_drawn()
        background = self.browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor")
        self.assertEqual(background, "rgb(18, 22, 28)")
        self.shot("dark")


class CrowdedTest(Page):
    ARGUMENTS = ["--crowded"]

    def test_what_cannot_be_read_is_said_above_the_list(self):
        (damage,) = self.texts(".damage")
        self.assertIn("Some of the archive cannot be read. The rest is shown.", damage)
        self.assertNotIn("4713", damage)
        self.click(".damage summary")
        self.until_in("the summary of lab.4713.0.1", lambda: self.find(".damage").text)
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
        self.look(390, height=844)
        self.shot("crowded-phone")


class HeadTest(Page):
    ARGUMENTS = ["--head"]

    def setUp(self):
        self.screen(1300, 1000)
        self.load()
        self.wait_for("section[aria-label=Step]")

    def test_a_head_shows_its_step_at_once(self):
        self.assertIn("#/job/4712.0", self.browser.current_url)
        self.click(".brand")
        self.until(lambda: "#/job/4712.0" in self.browser.current_url)
        self.wait_for("section[aria-label=Step]")


class EndTest(Page):
    def test_the_end_of_a_step_is_seen_at_once(self):
        self.open_job("4712.0")
        self.browser.execute_script(PageTest.COUNT_READS)
        self.tell("e")
        self.until(lambda: self.browser.execute_script("return window.reads") > 0)


if __name__ == "__main__":
    main()
