"""The explorer (#/explore) in headless Chromium: every control, and every number beside the API's.

explore_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

from explorer_page import STEP, UNNAMED, Explorer  # first: it says where page is
from page import main
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
        self.until_equal(self.points, self.expected(start + 110_000, start + 130_000, self.ASKED))
        self.assertIn(("from", "110"), self.parameters())
        self.browser.forward()
        self.until_equal(self.points, self.expected(start + 100_000, start + 140_000, self.ASKED))

    def test_zoom_by_dragging_is_shared_by_all_graphs(self):
        self.open(f"job={STEP}&metric=node_load1&agg=max&down=none&metric=node_memory_MemTotal_bytes&agg=max&down=none")
        over = self.find("figure.graph .u-over")
        self.scroll_to(over)
        width = over.size["width"]
        # Where one points is where the others' cursor is.
        self.assertIn("max of node_load1", self.tip(ActionChains(self.browser).move_to_element(over)))
        lefts = self.browser.execute_script(
            "return [...document.querySelectorAll('.u-cursor-x')].map((one) => one.style.transform)")
        self.assertEqual(len(lefts), 2)
        self.assertEqual(lefts[0], lefts[1])
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
        self.wait_answered(0)
        self.assertEqual(self.points(), before)
        self.assertEqual(self.hash(), "#/explore?" + address)

    def test_a_running_step_is_read_again(self):
        self.open("job=4712.0&last=5m&metric=node_load1&agg=max&down=none")
        before = self.turn()
        self.find("#refresh").click()
        self.wait_answered(before + 1)  # at once, and after some seconds
        self.find("#refresh").click()


class ErrorsTest(Explorer):
    refused = (400, 404)

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
        self.until(lambda: not self.find("#tip").is_displayed())
        self.assertRegex(figure.get_attribute("aria-label"), r"cores: A mode=iowait now [\d.]+ cores")

    def test_it_fits_and_reads_well(self):
        self.open(self.PAGE)
        self.shots_of("explorer")
        self.look(1280)
        self.open(self.PAGE + "&view=table")
        self.shots_of("table")
        self.assert_nothing_from_elsewhere()

    def test_a_step_leads_here(self):
        self.browser.get("about:blank")
        self.browser.get(f"{self.server_url}/#/job/{STEP}")
        self.click(f'.pages a[href="#/explore?job={STEP}"]')
        self.wait_answered(0)
        self.assertEqual(self.find("[data-step]").get_attribute("data-step"), STEP)


if __name__ == "__main__":
    main()
