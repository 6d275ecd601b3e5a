"""The page of one step in headless Chromium: what it came to, its plots, and how it is read. Every number on it is
compared with the API's.

step_page_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

from step_page import STEP, StepPage, digits  # first: it says where page and contrast are
from contrast import faint
from page import MADE_ANEW, MARK, Page, main
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


class OneStepTest(StepPage):
    def used(self, what):
        return self.find(f'.used[data-what="{what}"]').text

    def test_the_top_says_what_the_step_came_to(self):
        overview = self.ask("/api/v1/overview")
        self.assertEqual(self.find("h1").text, f"{STEP} {overview['title']}")
        summary = overview["summary"]
        self.assertIn(digits(summary["cpu_of_tasks"] * 100) + " %", self.used("CPU"))
        # Of one of a node's tasks there is no share of the node.
        self.assertIsNone(summary["memory_of_node"])
        self.assertRegex(self.used("Memory"), f"GiB at most, {summary['memory_peak_bytes']['by']}$")
        profile = self.ask("/api/v1/profile")
        total = {one["metric"]: one["last"] for one in profile["footprint"]}
        time = summary["measured_seconds"] * summary["measured_tasks"]
        self.assertIn(digits(total["mpi_seconds_total"] / time * 100) + " % of the tasks", self.used("MPI"))
        waiting = overview["calls"]["mpi_waiting"]
        self.assertGreaterEqual(waiting["seconds"], total["mpi_wait_seconds_total"])
        self.assertIn(digits(waiting["seconds"] / time * 100) + " % waiting", self.used("MPI"))
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
        share = digits(collective["seconds"] / calls["task_seconds"] * 100)
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
        self.assertIn(f"{slow['node']}\ncomputing {digits(slow['shares']['computing'] * 100)} %", first.text)
        self.assertIn("waiting for GPUs", self.find(".budget").text)  # is not known
        self.assertIn("Parallel efficiency 68 %", self.find(".budget").text)
        # What is unfolded stays so when the head is drawn anew.
        before = self.find(".budget")
        self.find("#refresh").click()
        self.until(lambda: self.find(".budget") != before)
        self.wait_drawn()
        self.assertEqual([one.get_attribute("open") for one in self.find_all(".budget details")], ["true"] * 3)
        self.find_all(".budget details")[1].find_element(By.TAG_NAME, "button").click()
        self.until(lambda: self.state().get("node") == slow["node"])

    def test_energy_has_its_numbers_and_what_is_not_in_it(self):
        energy = self.ask("/api/v1/insight", of="energy")
        self.until(lambda: self.find_all(".energy p"))
        text = self.find(".energy").text
        self.assertIn(f"{digits(energy['joules'] / 1e6)} MJ", text)
        self.assertIn(f"{digits(energy['mean_watts'] / 1e3)} kW in the mean", text)
        self.assertIn("Not in it: " + "; ".join(energy["missing"]), text)
        self.assertIn("J for one step", text)
        self.click(".energy summary")
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
        self.browser.execute_script(MARK)
        self.browser.back()
        self.until(lambda: "node" not in self.state() and self.browser.execute_script(MADE_ANEW))
        self.wait_drawn()

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
        self.scroll_to(disk)
        button.click()
        self.until(lambda: "loop7" in disk.text)
        more = self.find("section[aria-label=Memory] details.more:not(.still) summary")
        self.assertEqual(more.text, "1 more metric")
        self.scroll_to(more)
        more.click()
        self.wait_for('figure[data-metric="node_memory_Dirty_bytes"] canvas')

    def test_the_cursor_is_the_same_in_all_plots(self):
        self.point(0.5, 0.5)
        self.until(lambda: self.browser.execute_script("""
            return [...document.querySelectorAll('figure[data-metric] .u-cursor-x')]
                .map((one) => one.style.transform).filter((one) => one && !one.includes('-10px')).length;""") > 3)
        self.hover(self.figure("node_load1"), 0.5)
        self.until(lambda: self.find(".heat .marker").get_attribute("hidden") is None)

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
        self.until_in("node0001", lambda: self.find(".heatmap .words").text)
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
            self.until_equal(lambda: faint(self.browser, ".sr-only, .skip, svg, option"), [])

    def test_it_fits_every_screen(self):
        for width in (360, 1280, 2560):
            for dark in (False, True):
                self.look(width, dark)
                name = f"step-{width}-{'dark' if dark else 'light'}"
                self.whole(name, width)


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
          window.fetch = () => new Promise(() => {});
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
    main()
