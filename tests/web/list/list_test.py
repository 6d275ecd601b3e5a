"""The list of steps in headless Chromium, over a real archive of some hundred made steps: every control, every
number against the API's, addresses, keyboard, contrast.

list_test.py LIST_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

import datetime
import re
import sys
import urllib.parse

from archive_page import NAMELESS, ArchivePage, amount  # first: it says where page and contrast are
from contrast import faint
from page import main
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select


class ListTest(ArchivePage):
    COUNT = 312

    def setUp(self):
        self.browser.get("about:blank")
        super().setUp()
        self.expect_list()

    def tell(self, what):
        super().tell(what)
        self.assertEqual(self.server.stdout.readline(), "done\n")

    def filter(self, hash):
        """The list that an address asks for: it stays on the page, unlike others."""
        self.browser.execute_script("location.hash = arguments[0]", hash)

    def ids(self):
        return self.browser.execute_script(
            "return [...document.querySelectorAll('.list td.id')].map((cell) => cell.textContent)")

    def cells(self):
        """The texts of all rows, by class and with the titles of Start."""
        return self.browser.execute_script("""
            return [...document.querySelectorAll('.list tbody tr')].map((row) => Object.fromEntries(
                [...row.cells].map((cell) => [cell.className + (cell.dataset.name === 'Memory' ? '-mem' : ''),
                    cell.className === 'called' ? [cell.querySelector('b').textContent,
                        (cell.querySelector('code') || {}).title || '']
                    : cell.className === 'start' ? cell.querySelector('time').title : cell.textContent])));""")

    def found(self):
        text = self.find(".count").text
        if not re.search(r"\d+ steps?$", text):
            return 0 if text == "No step" else None
        return int(re.search(r"([\d,]+) steps?$", text).group(1).replace(",", ""))

    def expect_list(self, **parameters):
        """The rows are those of the API for these parameters, in its order; of a step that runs numbers
        and place change."""
        answer = None

        def differs():
            nonlocal answer
            answer = self.steps(**parameters)
            ids = [f"{step['job']}.{step['step']}" for step in answer["steps"]]
            shown, told = (self.found(), self.ids()), (answer["found"], ids)
            return shown != told and (shown, told)

        self.until_equal(differs, False)
        return answer

    def control(self, label):
        return self.browser.execute_script("""
            return [...document.querySelectorAll('.filters .field')]
                .find((one) => one.firstChild.textContent === arguments[0]).querySelector('input, select');""",
            label)

    def more(self):
        if self.find(".more-filters").get_attribute("open") is None:
            self.click(".more-filters summary")

    def choose(self, label, value):
        Select(self.control(label)).select_by_value(value)

    def test_every_number_is_the_apis(self):
        for page, extra in ((1, {}), (3, {"sort": "mem"})):
            hash = "#/?" + urllib.parse.urlencode({**extra, "page": page})
            self.filter(hash)
            answer = self.expect_list(limit=50, offset=50 * (page - 1), **extra)
            rows = self.cells()
            self.assertEqual(len(rows), 50)
            for row, step in zip(rows, answer["steps"]):
                summary = step["summary"]
                self.assertEqual(row["state-cell"], step["state"].replace("_", " "))
                self.assertEqual(row["called"][0], step["title"])
                self.assertIn(row["called"][1], (step["command"], ""))
                self.assertEqual((row["user"], row["number nodes"], row["number tasks"]),
                                 (step["user"], str(step["nodes"]), str(step["tasks"])))
                seconds = step["start"] / 1e9
                self.assertEqual(row["start"], self.utc(seconds))
                if step["end"]:  # of one that runs both change until the API is asked
                    length = (step["end"] - step["start"]) / 1e9
                    self.assertAlmostEqual(amount(row["number duration"]), length, delta=0.01 * length + 0.5)
                    self.assertAlmostEqual(amount(row["use"]), 100 * summary["cpu_of_tasks"], delta=0.51)
                memory = summary["memory_peak_bytes"]["value"]
                if memory is None:
                    self.assertEqual(row["use-mem"], "")
                else:
                    self.assertAlmostEqual(amount(row["use-mem"]), memory, delta=0.006 * memory)
                coverage = step["coverage"]
                self.assertAlmostEqual(amount(row["number coverage"]),
                                       100 * coverage["got"] / coverage["expected"], delta=0.06)
                labels = "".join(n + ("=" + v if v else "") for n, v in step["tags"].items())
                if step["figure"]:
                    labels += f"{step['figure']['name']} {step['figure']['value']:.6g} Mcells/s"
                self.assertEqual(row["labels"], labels)

    @staticmethod
    def utc(seconds):
        return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime(
            "%Y-%m-%d %H:%M:%S UTC")

    def test_pages_have_every_step_once_in_the_servers_order(self):
        everything = [f"{s['job']}.{s['step']}" for s in self.steps(limit=1000)["steps"]]
        self.assertGreaterEqual(len(everything), self.COUNT)
        seen = list(self.ids())
        self.assertEqual(self.find(".count").text, f"1 to 50 of {len(everything)} steps")
        for page in range(2, 8):
            self.click(".pager a[aria-label='Next page']")
            self.until_equal(self.ids, everything[50 * (page - 1):50 * page])
            self.assertIn(f"page={page}", self.hash())
            seen += self.ids()
        self.assertEqual(seen, everything)
        self.assertEqual(self.find_all(".pager a[aria-label='Next page']"), [])
        self.assertEqual(self.find(".pager [aria-current]").text, "7")
        self.click(".pager a[aria-label='Page 1']")
        self.until_equal(self.ids, everything[:50])
        # A page that is not there any more is the last.
        self.filter("#/?page=99")
        self.until(lambda: self.hash() == "#/?page=7" and self.ids() == everything[300:])
        self.more()
        self.choose("Rows", "200")
        self.until_equal(self.ids, everything[:200])

    def test_the_search_box_finds_each_kind_of_text(self):
        step = self.steps(limit=1)["steps"][0]
        box = self.control("Search")
        for text in (step["job"], "TRAIN.py", "resnet50", "grace", "node12", "campaign=winter",
                     "ada epochs", "nothing like that"):
            box.clear()
            box.send_keys(text)
            self.expect_list(search=text)
            self.assertIn(urllib.parse.urlencode({"search": text}), self.hash())
        self.assertIn("No step passes these filters", self.find("main").text)
        self.click(".empty a")
        self.expect_list()
        self.assertEqual(self.control("Search").get_attribute("value"), "")

    def test_every_filter_is_the_servers_and_is_taken_away(self):
        self.more()
        for label, name, value in (("State", "state", "out_of_memory"), ("State", "state", "running"),
                                   ("Level", "level", "3")):
            self.choose(label, value)
            self.expect_list(**{name: value})
            self.click(".chips .tag a")
            self.expect_list()
            self.assertEqual(self.control(label).get_attribute("value"), "")
        for label, name, value in (("User", "user", "grace"), ("Partition", "partition", "gpu"),
                                   ("Node", "node", "node7"), ("Tag", "tag", "campaign=summer"),
                                   ("Tag", "tag", "keep")):
            self.control(label).send_keys(value, Keys.ENTER)
            self.expect_list(**{name: value})
            self.assertEqual(self.find(".chips .tag").text, f"{name} {value}\n×")
            self.click(".chips .tag a")
            self.expect_list()

    def test_filters_join_and_all_are_cleared(self):
        self.choose("State", "completed")
        self.expect_list(state="completed")
        self.control("Search").send_keys("ada")
        self.expect_list(state="completed", search="ada")
        self.more()
        self.control("Tag").send_keys("campaign", Keys.ENTER)
        self.expect_list(state="completed", search="ada", tag="campaign")
        self.click_link("Clear all")
        self.expect_list()
        self.assertEqual(self.hash(), "#/")

    def test_times_are_spans_or_moments(self):
        self.choose("Time", "24h")
        self.expect_list(since="24h")
        self.assertEqual(self.hash(), "#/?since=24h")
        self.choose("Time", "7d")
        self.expect_list(since="7d")
        self.choose("Time", "custom")
        self.assertTrue(self.find(".more-filters").get_attribute("open"))
        steps = self.steps(limit=1000)["steps"]
        first, last = steps[40]["start"] // 10**6, steps[10]["start"] // 10**6
        for label, moment in (("From", first), ("To", last)):
            self.browser.execute_script("""
                const time = new Date(arguments[1]);
                const two = (n) => String(n).padStart(2, '0');
                arguments[0].value = `${time.getFullYear()}-${two(time.getMonth() + 1)}-` +
                    `${two(time.getDate())}T${two(time.getHours())}:${two(time.getMinutes())}`;
                arguments[0].dispatchEvent(new Event('change'));""", self.control(label), moment)
        minute = 60_000
        answer = self.expect_list(since=first // minute * minute, until=last // minute * minute)
        self.assertIn(answer["found"], (30, 31))
        self.assertEqual(self.control("Time").get_attribute("value"), "custom")
        self.assertEqual(len(self.find_all(".chips .tag")), 2)
        self.choose("Time", "")
        self.expect_list()

    def test_every_column_sorts_both_ways(self):
        for key in ("time", "use", "mem", "nodes", "tasks", "state", "start"):
            for reverse in (False, True):
                self.click(f"button[data-sort={key}]")
                self.expect_list(sort=key, **({"reverse": "true"} if reverse else {}))
                order = "ascending" if reverse else "descending"
                self.until(lambda: self.find_all(f"th[aria-sort={order}] button[data-sort={key}]"))
                self.assertEqual(len(self.find_all("th[aria-sort]")), 1)
        self.more()
        for key in ("cpu", "energy", "size", "read", "written", "received", "sent"):
            self.choose("Order", key)
            self.expect_list(sort=key)
        self.choose("Order", "time reverse")
        self.expect_list(sort="time", reverse="true")

    def test_tags_are_chips_that_filter(self):
        self.click(".list a.tag")
        tag = self.wait_for(".chips .tag").text.removeprefix("tag ").rstrip("×").strip()
        answer = self.expect_list(tag=tag)
        self.assertLess(answer["found"], self.COUNT)

    ADDRESS = "#/?search=ada&state=completed&since=30d&tag=campaign&sort=use&reverse=true&rows=25&page=2"

    def test_an_address_is_all_there_is_to_a_view(self):
        self.browser.get(self.origin + "/" + self.ADDRESS)
        parameters = {"search": "ada", "state": "completed", "since": "30d", "tag": "campaign",
                      "sort": "use", "reverse": "true", "limit": 25, "offset": 25}
        self.assertTrue(self.expect_list(**parameters)["steps"])
        self.assertEqual(self.control("Search").get_attribute("value"), "ada")
        self.assertEqual(self.control("State").get_attribute("value"), "completed")
        self.assertEqual(self.control("Time").get_attribute("value"), "30d")
        self.assertEqual(self.control("Order").get_attribute("value"), "use reverse")
        self.assertEqual(self.control("Rows").get_attribute("value"), "25")
        before = self.ids()
        self.browser.refresh()
        self.until_equal(self.ids, before)

    def test_back_and_forward_go_through_what_was_shown(self):
        self.choose("State", "failed")
        self.expect_list(state="failed")
        box = self.control("Search")
        for end in range(1, 6):  # one step of the history, however slowly it is typed
            box.send_keys("train"[end - 1])
            self.until(lambda: f"search={'train'[:end]}&" in self.hash())
        self.expect_list(state="failed", search="train")
        self.click(".list td.id a")
        self.wait_for("main h1")
        self.until(lambda: self.hash().startswith("#/job/"))
        self.browser.back()
        self.expect_list(state="failed", search="train")
        self.assertEqual(self.control("Search").get_attribute("value"), "train")
        self.browser.back()
        self.expect_list(state="failed")
        self.assertEqual(self.control("Search").get_attribute("value"), "")
        self.browser.back()
        self.expect_list()
        self.browser.forward()
        self.expect_list(state="failed")

    def test_running_steps_are_live(self):
        self.browser.execute_script("window.here = true")
        (row,) = self.texts(".list tr.live")
        self.assertIn("running", row)
        (duration,), (job,) = self.texts(".list tr.live .duration"), self.texts(".list tr.live td.id")
        self.browser.execute_script("document.querySelector('.list tr.live a').focus()")
        self.until(lambda: self.texts(".list tr.live .duration") != [duration])
        self.assertEqual(self.browser.execute_script("return document.activeElement.textContent"), job)
        self.tell("n")
        self.until_equal(lambda: self.ids()[0], "100000.0")
        self.assertEqual(self.found(), self.COUNT + 1)
        self.assertEqual(len(self.find_all(".list tr.live")), 2)
        self.tell("e")
        self.until_in("completed", lambda: self.texts(".list tbody tr:first-child")[0])
        self.assertEqual(len(self.find_all(".list tr.live")), 1)
        self.assertTrue(self.browser.execute_script("return window.here"), "without a reload")

    def test_a_wrong_address_is_said_and_can_be_mended(self):
        self.expect_refusals(400)
        self.filter("#/?state=dead")
        self.until_in("expected one of running, completed", lambda: self.find("#message").text)
        self.click(".chips .tag a")
        self.expect_list()
        self.until(lambda: not self.find("#message").is_displayed())

    def tab_to(self, wanted, most=120):
        """Has Tab pressed until what has the focus is as wanted: an expression of `one`."""
        for _ in range(most):
            if self.browser.execute_script(f"const one = document.activeElement; return Boolean({wanted})"):
                return
            self.press(Keys.TAB)
        self.fail(f"not reached by keyboard: {wanted}")

    def press(self, *keys):
        """Where the focus is, whatever the page makes anew."""
        ActionChains(self.browser).send_keys(*keys).perform()

    def test_everything_works_by_keyboard_alone(self):
        self.tab_to("one.type === 'search'")
        self.press("ada")
        self.expect_list(search="ada")
        self.tab_to("one.tagName === 'SELECT' && one.textContent.includes('completed')")
        self.press("comp")
        self.expect_list(search="ada", state="completed")
        self.tab_to("one.tagName === 'SUMMARY'")
        self.press(Keys.ENTER)
        self.tab_to("one.placeholder?.startsWith('NAME')")
        self.press("campaign", Keys.ENTER)
        self.expect_list(search="ada", state="completed", tag="campaign")
        self.tab_to("one.textContent === 'Clear all'")
        self.press(Keys.ENTER)
        self.expect_list()
        self.tab_to("one.dataset.sort === 'time'")
        self.press(Keys.ENTER)
        self.expect_list(sort="time")
        # What was focused is still.
        self.assertEqual(self.browser.execute_script("return document.activeElement.dataset.sort"), "time")
        self.press(Keys.ENTER)
        self.expect_list(sort="time", reverse="true")
        # What is focused can be seen.
        self.assertNotEqual(self.browser.execute_script(
            "return getComputedStyle(document.activeElement).outlineStyle"), "none")
        for _ in range(2):
            self.tab_to("one.dataset.pick && !one.checked")
            self.press(Keys.SPACE)
        self.assertEqual(self.texts(".picks a"), ["Compare 2 runs"])
        self.browser.execute_script("document.querySelector('.picks a').focus()")
        self.press(Keys.ENTER)
        self.wait_for("table[aria-label=Runs]")

    def test_the_skip_link_comes_first_and_leads_to_the_content(self):
        self.browser.get(self.origin)
        self.wait_for(".list tbody tr")
        self.browser.execute_script("document.activeElement.blur()")
        first = self.browser.execute_script(
            "return document.querySelector('a[href], button, input, select')")
        self.assertEqual(first.get_attribute("textContent"), "Skip to the content")
        first.send_keys(Keys.ENTER)
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "view")
        self.assertEqual(self.hash(), "")

    def test_controls_have_names_and_texts_have_contrast(self):
        self.more()
        for dark in (False, True):
            self.look(1300, dark)
            self.expect_list()
            self.until_equal(lambda: faint(self.browser, ".sr-only, .skip, svg"), [])
            self.assertEqual(self.browser.execute_script(NAMELESS), [])
        for name in ("header", "main", "nav", "form[role=search]"):
            self.assertTrue(self.find_all(name), name)
        self.assertEqual(len(self.find_all("h1")), 1)

    def test_one_clock_with_its_zone_and_utc_behind_it(self):
        self.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setTimezoneOverride", {"timezoneId": ""})
        self.browser.refresh()
        self.expect_list()
        self.assertEqual(self.find("#zone").text, "Times: Asia/Tokyo (UTC+9)")
        text, title = self.browser.execute_script(
            "const time = document.querySelector('.list time'); return [time.textContent, time.title]")
        self.assertRegex(title, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$")
        shown = [int(n) for n in re.search(r"(\d\d):(\d\d):(\d\d)$", text).groups()]
        utc = [int(n) for n in re.search(r" (\d\d):(\d\d):(\d\d) ", title).groups()]
        shift = (shown[0] * 60 + shown[1]) - (utc[0] * 60 + utc[1])
        self.assertEqual(shift % (24 * 60), 540)

    def test_it_fits_and_can_be_looked_at(self):
        self.filter("#/?state=completed&tag=campaign&sort=time")
        self.expect_list(state="completed", tag="campaign", sort="time")
        self.shots("filtered", ".list tbody tr")
        self.filter("#/")
        self.shots("list", ".list tbody tr")
        self.look(360, dark=True, height=740)  # as it was
        self.more()
        self.wait_to_fit(360)
        self.shot("list-phone-filters")

    def test_nothing_comes_from_elsewhere_and_it_is_light_and_quick(self):
        self.browser.get(self.origin + "/")
        self.expect_list()
        names = self.browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertEqual([one for one in names if not one.startswith(self.origin)], [])
        self.browser.execute_cdp_cmd("Network.clearBrowserCache", {})
        self.browser.get("about:blank")
        self.browser.get(self.origin + "/")
        self.expect_list()
        self.until(lambda: self.browser.execute_script(
            "return performance.getEntriesByName('first-contentful-paint').length"))
        cold = self.browser.execute_script("""
            const resources = performance.getEntriesByType('resource');
            const files = resources.filter((one) => !one.name.includes('/api/'));
            const page = performance.getEntriesByType('navigation')[0];
            return {bytes: files.reduce((sum, one) => sum + one.encodedBodySize, page.encodedBodySize),
                    plain: files.reduce((sum, one) => sum + one.decodedBodySize, page.decodedBodySize),
                    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
                    rows: performance.getEntriesByName('rows')[0].startTime};""")
        print("page: {bytes} bytes over the wire, {plain} unpacked; first paint {paint:.0f} ms, "
              "rows {rows:.0f} ms after the click".format(**cold), file=sys.stderr)
        self.assertLess(cold["bytes"], 250_000)


if __name__ == "__main__":
    main()
