"""The page of a step when questions fail or are late, when it is drawn again and again, and when its
address names what is not there: no number stands under another one's name.

step_faults_test.py PAGE_SERVER [--shots DIR]. Needs Debian's chromium, chromium-driver and
python3-selenium.
"""

from step_page import STEP, StepPage, digits  # first: it says where page is
from page import Page, main
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

FAULT = "two nodes do not answer"
TABLE = "/heatmap.*columns=1&"
# From now on questions that match fail, or are held until window.release(), which ends all of that or what one
# pattern has begun.
INJECT = """
    const [pattern, fails, fault] = arguments;
    const real = window.realFetch ??= window.fetch;
    window.faults = [...window.faults ?? [], {pattern, fails, held: []}];
    window.asked = [];
    window.release = (ended) => {
      const over = window.faults.filter((one) => !ended || one.pattern === ended);
      window.faults = window.faults.filter((one) => !over.includes(one));
      for (const one of over) one.held.forEach((go) => go());
    };
    window.fetch = (...all) => {
      const one = window.faults.find(({pattern}) => new RegExp(pattern).test(String(all[0])));
      if (!one) return real(...all);
      window.asked.push(String(all[0]));
      if (one.fails) return Promise.resolve(new Response(JSON.stringify({error: {code: 503, message: fault}}), {status: 503}));
      return new Promise((resolve) => one.held.push(resolve)).then(() => real(...all));
    };"""
REFRESH = "document.querySelector('#refresh').dispatchEvent(new Event('change'))"
HEATMAP = "/heatmap.*columns=(?!1&)"


class Faults:
    def refuse(self, pattern):
        self.browser.execute_script(INJECT, pattern, True, FAULT)

    def hold(self, pattern):
        self.browser.execute_script(INJECT, pattern, False, FAULT)

    def release(self, pattern=None):
        self.browser.execute_script("window.release(arguments[0])", pattern)

    def touched(self):
        """The questions that were refused or held."""
        return self.browser.execute_script("return window.asked")

    def saves(self, parent):
        """Whether each of its three buttons can be used."""
        return [one.is_enabled() for one in parent.find_elements(By.TAG_NAME, "button")
                if one.get_property("textContent") in ("PNG", "SVG", "CSV")]

    def scope(self, kind, name):
        self.find(f"#scope option[value={kind}]").click()
        self.find("#scope-name").send_keys(name, Keys.TAB)


class QuestionsFailTest(Faults, StepPage):
    def test_a_heatmap_that_is_not_there_is_not_that_of_another_metric(self):
        tools = self.find(".matrix > .tools:not(.inside)")
        self.until(lambda: self.saves(tools) == [True] * 3)
        self.refuse(HEATMAP)
        self.find("#heat-metric option[value=node_load1]").click()
        self.until(lambda: FAULT in self.find(".heatmap .words").text)
        self.assertEqual(self.find(".key").text, "")
        self.assertEqual(self.find(".heat canvas").size["height"], 0)
        self.assertEqual(self.saves(tools), [False] * 3)
        self.shot("heatmap-failed")
        self.release()
        self.find("#heat-shade option[value=max]").click()
        self.until(lambda: self.saves(tools) == [True] * 3)
        # The same question again: the old answer is one, too.
        self.refuse(HEATMAP)

        def again():
            # One that is on its way for the table is not asked a second time.
            self.find(f"#heat-shade option[value={'max' if self.state()['shade'] == 'min' else 'min'}]").click()
            return f"Not read again: {FAULT}" in self.find(".heatmap .words").text
        self.until(again)
        self.assertNotEqual(self.find(".key").text, "")
        self.assertEqual(self.saves(tools), [True] * 3)

    def test_a_heatmap_is_asked_for_again_while_the_table_is_still_read(self):
        tools = self.find(".matrix > .tools:not(.inside)")
        self.hold(TABLE)
        self.refuse(HEATMAP)
        self.find("#heat-metric option[value=node_load1]").click()
        self.until_in(FAULT, lambda: self.find(".heatmap .words").text)
        self.release(HEATMAP)
        self.find("#heat-shade option[value=max]").click()
        self.until(lambda: self.saves(tools) == [True] * 3)
        self.release()

    def test_plots_that_are_not_there_are_not_those_of_another_scope(self):
        figure = self.scrolled("node_load1")
        self.until(lambda: self.saves(figure) == [True] * 3)
        self.refuse("/series")
        self.scope("node", "node0003")
        self.until(lambda: FAULT in self.scrolled("node_load1").text)
        self.assertEqual(figure.find_elements(By.TAG_NAME, "canvas"), [])
        self.assertEqual(figure.find_element(By.CSS_SELECTOR, "figcaption span").text, "")
        self.assertEqual(self.saves(figure), [False] * 3)
        self.shot("plots-failed")

    def test_what_is_still_asked_for_is_not_saved(self):
        figure = self.scrolled("node_load1")
        tools = self.find(".matrix > .tools:not(.inside)")
        self.until(lambda: self.saves(figure) + self.saves(tools) == [True] * 6)
        self.hold("/series|" + HEATMAP)
        self.find("#range option[value='300']").click()
        self.until(lambda: any("/series" in one for one in self.touched()))
        self.assertEqual(figure.get_attribute("aria-busy"), "true")
        self.assertEqual(self.find(".heatmap").get_attribute("aria-busy"), "true")
        self.assertEqual(self.saves(figure) + self.saves(tools), [False] * 6)
        self.shot("asked-for")
        self.release()
        self.until(lambda: self.saves(figure) + self.saves(tools) == [True] * 6)
        self.assertEqual(figure.get_attribute("aria-busy"), "false")

    def test_the_table_of_another_range_is_not_kept(self):
        first = self.find(".members tbody tr").text
        self.refuse(TABLE)
        self.find("#range option[value='300']").click()
        self.until(lambda: FAULT in self.find(".members").text)
        self.assertEqual(self.find_all(".members tbody tr"), [], first)
        self.assertFalse(self.find(".members .tools button").is_enabled())

    def test_faults_of_the_page_are_not_told_as_a_lost_tunnel(self):
        told = self.browser.execute_async_script("""
            const [done] = arguments;
            (async () => {
              const {explain, getJson} = await import('./server.js');
              const failing = async (answer) => {
                window.fetch = answer;
                return getJson('/api/v1/profile').catch(explain);
              };
              const own = explain(new TypeError('x is undefined'));
              const gone = await failing(() => Promise.reject(new TypeError('Failed to fetch')));
              const proxy = await failing(async () => new Response('<html>', {status: 502, statusText: 'Bad Gateway'}));
              done({own, gone, proxy});
            })().catch((error) => done({error: String(error)}));""")
        self.assertNotIn("error", told)
        self.assertEqual(told["own"], "The page has a fault: x is undefined")
        self.assertIn("the tunnel is gone", told["gone"])
        self.assertIn("502 Bad Gateway", told["proxy"])


class AddressTest(Faults, StepPage):
    def open_undrawn(self, query):
        self.go(f"#/job/{STEP}?{query}")

    def nothing_is_drawn(self, text):
        self.until(lambda: text in self.find(".controls").text)
        self.until(lambda: all(text in one.text for one in self.find_all("figure[data-metric]") if one.is_displayed()))
        self.assertEqual(self.find_all("figure[data-metric] canvas"), [])

    def test_a_rank_of_the_address_is_looked_for(self):
        for wrong in ("", "&node=node0000"):  # it is on node0002
            self.open("rank=5&" + wrong[1:] + "&")
            self.assertEqual(self.state()["node"], "node0002")
            self.assertEqual(self.find("#scope-name").get_attribute("value"), "5")
            self.until(lambda: "node0002" in self.find(".inside").text)
            series = self.ask("/api/v1/series", metric="node_load1", points=300, host="node0002")
            last = series["series"][0]["value"][-1]
            self.until(lambda: str(round(last, 2)) in self.scrolled("node_load1").text)

    def test_a_rank_or_node_that_is_not_there_has_no_numbers(self):
        for query, text in (("rank=99", "There is no rank 99 in this step."),
                            ("rank=constructor", "There is no rank constructor in this step."),
                            ("node=nowhere", "There is no node nowhere in this step.")):
            self.open_undrawn(query)
            self.nothing_is_drawn(text)
        self.shot("no-such-rank")
        # The way back is there.
        self.find("#scope option[value='']").click()
        self.wait_drawn()
        self.assertNotIn("There is no", self.find(".controls").text)

    def test_a_rank_whose_node_is_not_found_has_no_numbers(self):
        self.refuse("/heatmap.*by=task.*columns=1&rows=1&")
        self.open_undrawn("rank=5")
        self.nothing_is_drawn(FAULT)

    def test_unknown_values_are_the_defaults(self):
        words = "shade=constructor&scale=toString&by=constructor&sort=__proto__&metric=constructor"
        self.open(f"{words}&range=1~Infinity&rows=0.5~3.5&")
        self.assertEqual([self.find(f"#heat-{one}").get_attribute("value") for one in ("shade", "by", "scale")],
                         ["mean", "host", ""])
        self.assertRegex(self.find(".key").text, r"[\d.]+ cores")
        self.assertIn("the mean", self.find(".heatmap .words").text)
        self.assertEqual(len(self.find_all(".members tbody tr")), 4)
        self.open("rows=50~90&")
        self.assertEqual(len(self.data()["rows"]), 4)

    def test_a_nodes_share_of_time_is_that_of_its_ranks(self):
        self.open("metric=mpi_seconds_total&")
        self.until(lambda: self.shown().get("metric") == "mpi_seconds_total")
        data = self.data()
        column = int(0.9 * data["columns"])
        self.assertGreater(data["mean"][0][column], 0.4)
        tip = self.point(0.9, 0.5 / 4)
        percent = lambda value: digits(value / 2 * 100) + " %"
        near = ["mean " + percent(data["mean"][0][i]) for i in range(column - 2, column + 3)]
        self.assertTrue(any(one in tip for one in near), (tip, near))
        self.assertIn("in the mean of its ranks", self.find(".heatmap .words").text)
        self.shot("heatmap-of-ranks")
        # And so are the lines of nodes.
        self.browser.execute_script("document.querySelector('#by-host').click()")
        series = self.ask("/api/v1/series", metric="mpi_seconds_total", points=300, by="host")
        label = lambda: self.scrolled("mpi_seconds_total").get_attribute("aria-label")
        told = ", ".join(one["tags"]["host"] + " " + percent(one["value"][-1]) for one in series["series"])
        self.until(lambda: label().endswith(told))
        self.assertIn("in the mean of a node\u2019s ranks", self.figure("mpi_seconds_total").text)

    def test_views_that_are_left_are_given_back(self):
        def nodes():
            self.browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
            return self.browser.execute_cdp_cmd("Memory.getDOMCounters", {})["nodes"]

        def visit(i):
            self.open(f"visit={i}&")
        for i in range(2):
            visit(i)
        before = nodes()
        for i in range(2, 10):
            visit(i)
        # Each of the views has some 1,700.
        self.until(lambda: nodes() < before + 1700)


class LinesTest(Faults, StepPage):
    ARGUMENTS = ["--nodes", "100"]

    def test_lines_of_a_node_are_put_together_by_the_reduction(self):
        lines = self.browser.execute_async_script("""
            const [done] = arguments;
            import('./lines.js').then(({perHost, farthest}) => {
              const line = (host, sensor, value) => ({tags: {host, sensor}, value, count: null});
              const sensors = [line('n1', 'a', [50, null]), line('n1', 'b', [52, null]), line('n1', 'c', [42, 40]),
                               line('n2', 'a', [60, null])];
              const by = (reduction) => perHost(sensors, reduction).map((one) => one.value);
              const many = Array.from({length: 100}, (_, i) => ({label: i, value: [i === 70 ? null : i === 7 ? 900 : 10 + i / 100]}));
              done({sum: by('sum'), mean: by('mean'), min: by('min'), max: by('max'), other: by('constructor'),
                    farthest: farthest(many, 64).map((one) => one.label)});
            }).catch((error) => done({error: String(error)}));""")
        self.assertEqual(lines["sum"], [[144, 40], [60, None]])
        self.assertEqual(lines["mean"], [[48, 40], [60, None]])
        self.assertEqual(lines["other"], lines["mean"])
        self.assertEqual(lines["min"], [[42, 40], [60, None]])
        self.assertEqual(lines["max"], [[52, 40], [60, None]])
        self.assertEqual(len(lines["farthest"]), 64)
        self.assertEqual(lines["farthest"][0], 7)
        self.assertNotIn(50, lines["farthest"])
        self.assertNotIn(70, lines["farthest"])

    def test_fewer_lines_than_nodes_are_said(self):
        self.browser.execute_script("document.querySelector('#by-host').click()")
        self.until(lambda: "64 of 100 nodes: those that differ most from the median"
                   in self.scrolled("task_resident_memory_bytes").text)
        self.shot("lines-of-nodes")


class ManyRanksTest(Faults, StepPage):
    ARGUMENTS = ["--nodes", "4", "4200"]

    def setUp(self):
        self.screen(1280, 1000)
        self.load()
        self.wait_for(".brand")

    def test_each_row_of_the_table_is_of_the_rank_it_names(self):
        profile = self.ask("/api/v1/profile")
        end = profile["job"]["end"] / 1e9
        self.hold("/series")  # plots of so many ranks take long
        self.browser.execute_script("location.hash = arguments[0]",
                                    f"#/job/{STEP}?by=task&range={end - 60:.0f}~{end:.0f}")
        self.until(lambda: "of 16800 ranks" in self.find(".members").text)
        shown = self.shown()
        for rank in ("16799", "8399"):  # the last one is in the second answer
            box = self.find("#member-filter")
            box.clear()
            box.send_keys(rank)
            self.until(lambda: len(self.find_all(".members tbody tr")) == 1)
            row = self.find(".members tbody tr")
            one = self.heatmap(metric="task_resident_memory_bytes", by="task", columns=1, rows=1, first=rank,
                               count=1, start=shown["start"], end=shown["end"])
            self.assertEqual(one["names"], [rank])
            self.assertIn(f"rank {rank} {one['task_hosts'][0]}", row.text)
            values = [cell.get_attribute("data-value") for cell in row.find_elements(By.TAG_NAME, "td")]
            self.assertEqual(float(values[2]), one["max"][0][0])
        self.shot("many-ranks")


class RunningTest(Faults, Page):
    LATER = "const real = Date.now; Date.now = () => real() + 16000 * ++window.later; window.later = 0;"

    def test_a_picture_that_could_not_be_read_again_stays_and_says_so(self):
        self.open_job("4712.0")
        figure = self.figure("node_load1")
        self.scroll_to(figure)
        self.refuse("/series")
        self.browser.execute_script(REFRESH)
        self.until(lambda: f"not read again: {FAULT}" in figure.text)
        self.assertTrue(figure.find_elements(By.TAG_NAME, "canvas"))
        self.release()
        self.browser.execute_script(REFRESH)
        self.until(lambda: "not read again" not in figure.text)

    def test_a_tick_of_the_step_is_not_written_on_a_part_of_it(self):
        # When the page has taken it.
        self.browser.execute_script("""
            const real = window.fetch;
            window.ticks = 0;
            window.fetch = async (path, ...all) => {
              const answer = await real(path, ...all);
              if (!path.startsWith('./api/live')) return answer;
              const [own, pages] = answer.body.tee();
              import('./events.js').then(async ({eventsOf}) => {
                for await (const {kind} of eventsOf(new Response(own))) {
                  if (kind === 'tick') setTimeout(() => { window.ticks += 1; });
                }
              }).catch(() => {});  // the page has left the step
              return new Response(pages);
            };""")
        self.go("#/job/4712.0?node=n1")
        self.wait_drawn()
        now = self.figure("node_load1").find_element(By.CSS_SELECTOR, "figcaption span")
        self.hold("/series")  # nothing but a tick changes it
        before = now.text
        told = self.browser.execute_script("return window.ticks")

        def ticked():
            self.tell("t")
            return self.browser.execute_script("return window.ticks") > told + 2
        self.until(ticked)
        self.assertEqual(now.text, before)
        self.release()

    def test_a_question_that_takes_long_is_not_asked_again_meanwhile(self):
        self.hold(HEATMAP)
        self.browser.execute_script(self.LATER)
        self.go("#/job/4712.0")
        self.until(lambda: len(self.touched()) > 0)
        for _ in range(3):
            reads = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/overview')).length"
            before = self.browser.execute_script(reads)
            self.browser.execute_script(REFRESH)
            self.until(lambda: self.browser.execute_script(reads) > before)
            # Whatever has the answer now is drawn and asked on.
            self.until(lambda: self.browser.execute_async_script("setTimeout(arguments[0], 0, true)"))
        self.assertEqual(len(self.touched()), 1)
        self.release()
        self.until(lambda: self.find_all(".members tbody tr") and self.find(".key").text)

    def test_the_focus_stays_when_a_running_step_is_drawn_again(self):
        self.open_job("4712.0")
        self.browser.execute_script(self.LATER)
        # `fresh`: whether another element has come into the place of the one with the focus.
        fresh = "return !window.focused.isConnected"
        for selector in (".in-short button", ".members tbody button", ".members th button"):
            self.until(lambda: self.find_all(selector))
            name = self.browser.execute_script("""
                window.focused = document.querySelector(arguments[0]);
                window.focused.focus();
                return document.activeElement.textContent;""", selector)

            def drawn():
                self.browser.execute_script(REFRESH)
                return self.browser.execute_script(fresh)
            self.until(drawn)
            self.until(lambda: self.browser.execute_script("return document.activeElement.textContent") == name)
            self.assertNotEqual(name, "")


if __name__ == "__main__":
    main()
