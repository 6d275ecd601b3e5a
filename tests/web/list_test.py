"""The list of steps and the comparison of runs in headless Chromium, over a real archive of some
hundred made steps: every control, every number against the API's, addresses, keyboard, contrast.

list_test.py LIST_SERVER [--shots DIR]: leaves screenshots in DIR, or in a folder that it makes, and
prints where. SONDE_WEB_TESTS="ListTest.test_x ..." runs these alone. Needs what page_test.py needs.
"""

import json
import os
import re
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from contrast import faint
from page_test import Page, SHOTS

COUNT = 312
SHOTS_DIR = SHOTS or tempfile.mkdtemp(prefix="sonde-list-shots-")
SIZES = {"phone": (360, 740), "laptop": (1280, 800), "wall": (2560, 1440)}
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60,
         "h": 3600}

# Controls without a name that a screen reader could say.
NAMELESS = """
return [...document.querySelectorAll('a[href], button, input, select, summary')]
    .filter((one) => one.checkVisibility() && !(one.getAttribute('aria-label') ||
        one.textContent.trim() && one.tagName !== 'SELECT' || (one.labels && one.labels.length)))
    .map((one) => one.outerHTML.slice(0, 120));"""


def amount(text):
    """12 min 5 s, 3.4 GiB, 47 %: as a number."""
    if text.endswith("%"):
        return float(text[:-1].strip())
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+) ([^\d\s]+)", text))


class ArchivePage(Page):
    @classmethod
    def setUpClass(cls):
        cls.archive = tempfile.TemporaryDirectory(prefix="sonde-list-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.archive.cleanup)
        cls.ARGUMENTS = [cls.archive.name, str(COUNT)]
        super().setUpClass()
        cls.origin = cls.address.split("/?")[0]
        cls.token = cls.address.split("token=")[1]

    def api(self, **parameters):
        pairs = [(name, one) for name, value in parameters.items()
                 for one in (value if isinstance(value, list) else [value])]
        request = urllib.request.Request(
            self.origin + "/api/v1/steps?" + urllib.parse.urlencode(pairs),
            headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def tell(self, what):
        self.server.stdin.write(what)
        self.server.stdin.flush()
        self.assertEqual(self.server.stdout.readline(), "done\n")

    def open(self, hash):
        self.browser.execute_script("location.hash = arguments[0]", hash)

    def hash(self):
        return self.browser.execute_script("return location.hash")

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
        """The rows are those of the API for these parameters, in its order."""
        answer = self.api(**parameters)
        ids = [f"{step['job']}.{step['step']}" for step in answer["steps"]]
        self.until(lambda: (self.found(), self.ids()) == (answer["found"], ids))
        return answer

    def control(self, label):
        return self.browser.execute_script("""
            return [...document.querySelectorAll('.filters .field')]
                .find((one) => one.firstChild.textContent === arguments[0]).querySelector('input, select');""",
            label)

    def more(self):
        if self.find(".more-filters").get_attribute("open") is None:
            self.find(".more-filters summary").click()

    def choose(self, label, value):
        Select(self.control(label)).select_by_value(value)

    def shots(self, name, ready):
        for size, (width, height) in SIZES.items():
            for dark in (False, True):
                # Another colour scheme has all made anew.
                self.browser.execute_script("""
                    const now = matchMedia('(prefers-color-scheme: dark)').matches;
                    if (now !== arguments[0]) document.querySelector('main > *').dataset.old = '1';""",
                    dark)
                self.screen(width, height, dark)
                self.until(lambda: not self.find_all("[data-old]") and self.find_all(ready))
                self.wait_to_fit(width)
                self.browser.save_screenshot(
                    f"{SHOTS_DIR}/{name}-{size}-{'dark' if dark else 'light'}.png")


class ListTest(ArchivePage):
    def setUp(self):
        self.browser.get("about:blank")
        super().setUp()
        self.expect_list()

    def test_every_number_is_the_apis(self):
        for page, extra in ((1, {}), (3, {"sort": "mem"})):
            hash = "#/?" + urllib.parse.urlencode({**extra, "page": page})
            self.open(hash)
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
                if step["end"]:
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
        import datetime
        return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime(
            "%Y-%m-%d %H:%M:%S UTC")

    def test_pages_have_every_step_once_in_the_servers_order(self):
        everything = [f"{s['job']}.{s['step']}" for s in self.api(limit=1000)["steps"]]
        self.assertEqual(len(everything), COUNT)
        seen = list(self.ids())
        self.assertEqual(self.find(".count").text, f"1 to 50 of {COUNT} steps")
        for page in range(2, 8):
            self.find(".pager a[aria-label='Next page']").click()
            self.until(lambda: self.ids() == everything[50 * (page - 1):50 * page])
            self.assertIn(f"page={page}", self.hash())
            seen += self.ids()
        self.assertEqual(seen, everything)
        self.assertEqual(self.find_all(".pager a[aria-label='Next page']"), [])
        self.assertEqual(self.find(".pager [aria-current]").text, "7")
        self.find(".pager a[aria-label='Page 1']").click()
        self.until(lambda: self.ids() == everything[:50])
        # A page that is not there any more is the last.
        self.open("#/?page=99")
        self.until(lambda: self.hash() == "#/?page=7" and self.ids() == everything[300:])
        self.more()
        self.choose("Rows", "200")
        self.until(lambda: self.ids() == everything[:200])

    def test_the_search_box_finds_each_kind_of_text(self):
        step = self.api(limit=1)["steps"][0]
        box = self.control("Search")
        for text in (step["job"], "TRAIN.py", "resnet50", "grace", "node12", "campaign=winter",
                     "ada epochs", "nothing like that"):
            box.clear()
            box.send_keys(text)
            self.expect_list(search=text)
            self.assertIn(urllib.parse.urlencode({"search": text}), self.hash())
        self.assertIn("No step passes these filters", self.find("main").text)
        self.find(".empty a").click()
        self.expect_list()
        self.assertEqual(self.control("Search").get_attribute("value"), "")

    def test_every_filter_is_the_servers_and_is_taken_away(self):
        self.more()
        for label, name, value in (("State", "state", "out_of_memory"), ("State", "state", "running"),
                                   ("Level", "level", "3")):
            self.choose(label, value)
            self.expect_list(**{name: value})
            self.find(".chips .tag a").click()
            self.expect_list()
            self.assertEqual(self.control(label).get_attribute("value"), "")
        for label, name, value in (("User", "user", "grace"), ("Partition", "partition", "gpu"),
                                   ("Node", "node", "node7"), ("Tag", "tag", "campaign=summer"),
                                   ("Tag", "tag", "keep")):
            self.control(label).send_keys(value, Keys.ENTER)
            self.expect_list(**{name: value})
            self.assertEqual(self.find(".chips .tag").text, f"{name} {value}\n×")
            self.find(".chips .tag a").click()
            self.expect_list()

    def test_filters_join_and_all_are_cleared(self):
        self.choose("State", "completed")
        self.expect_list(state="completed")
        self.control("Search").send_keys("ada")
        self.expect_list(state="completed", search="ada")
        self.more()
        self.control("Tag").send_keys("campaign", Keys.ENTER)
        self.expect_list(state="completed", search="ada", tag="campaign")
        self.browser.find_element(By.LINK_TEXT, "Clear all").click()
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
        steps = self.api(limit=1000)["steps"]
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
                self.find(f"button[data-sort={key}]").click()
                self.expect_list(sort=key, **({"reverse": "true"} if reverse else {}))
                head = self.find(f"button[data-sort={key}]").find_element(By.XPATH, "..")
                self.assertEqual(head.get_attribute("aria-sort"), "ascending" if reverse else "descending")
                self.assertEqual(len(self.find_all("th[aria-sort]")), 1)
        self.more()
        for key in ("cpu", "energy", "size", "read", "written", "received", "sent"):
            self.choose("Order", key)
            self.expect_list(sort=key)
        self.choose("Order", "time reverse")
        self.expect_list(sort="time", reverse="true")

    def test_tags_are_chips_that_filter(self):
        self.browser.find_element(By.CSS_SELECTOR, ".list a.tag").click()
        tag = self.find(".chips .tag").text.removeprefix("tag ").rstrip("×").strip()
        answer = self.expect_list(tag=tag)
        self.assertLess(answer["found"], COUNT)

    ADDRESS = "#/?search=ada&state=completed&since=30d&tag=campaign&sort=use&reverse=true&rows=25&page=2"

    def test_an_address_is_all_there_is_to_a_view(self):
        self.browser.get(self.origin + "/" + self.ADDRESS)
        parameters = {"search": "ada", "state": "completed", "since": "30d", "tag": "campaign",
                      "sort": "use", "reverse": "true", "limit": 25, "offset": 25}
        answer = self.api(**parameters)
        if answer["steps"]:
            self.expect_list(**parameters)
        else:  # then the last page there is
            self.until(lambda: "page=2" not in self.hash())
        self.assertEqual(self.control("Search").get_attribute("value"), "ada")
        self.assertEqual(self.control("State").get_attribute("value"), "completed")
        self.assertEqual(self.control("Time").get_attribute("value"), "30d")
        self.assertEqual(self.control("Order").get_attribute("value"), "use reverse")
        self.assertEqual(self.control("Rows").get_attribute("value"), "25")
        before = self.ids()
        self.browser.refresh()
        self.until(lambda: self.ids() == before)

    def test_back_and_forward_go_through_what_was_shown(self):
        self.choose("State", "failed")
        self.expect_list(state="failed")
        box = self.control("Search")
        for end in range(1, 6):  # one step of the history, however slowly it is typed
            box.send_keys("train"[end - 1])
            self.until(lambda: f"search={'train'[:end]}&" in self.hash())
        self.expect_list(state="failed", search="train")
        self.find(".list td.id a").click()
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
        row = self.find(".list tr.live")
        self.assertIn("running", row.text)
        self.assertEqual(len(self.find_all(".list tr.live")), 1)
        duration = row.find_element(By.CSS_SELECTOR, ".duration").text
        row.find_element(By.TAG_NAME, "a").send_keys("")  # focus
        job = row.find_element(By.CSS_SELECTOR, "td.id").text
        self.browser.execute_script("document.querySelector('.list tr.live a').focus()")
        self.until(lambda: self.browser.execute_script(
            "return document.querySelector('.list tr.live .duration').textContent") != duration)
        self.assertEqual(self.browser.switch_to.active_element.text, job)
        self.tell("n")
        self.until(lambda: self.ids()[0] == "100000.0")
        self.assertEqual(self.found(), COUNT + 1)
        self.assertEqual(len(self.find_all(".list tr.live")), 2)
        self.tell("e")
        self.until(lambda: "completed" in self.find(".list tbody tr:first-child").text)
        self.assertEqual(len(self.find_all(".list tr.live")), 1)
        self.assertTrue(self.browser.execute_script("return window.here"), "without a reload")

    def test_a_wrong_address_is_said_and_can_be_mended(self):
        self.open("#/?state=dead")
        self.until(lambda: "expected one of running, completed" in self.find("#message").text)
        self.find(".chips .tag a").click()
        self.expect_list()
        self.until(lambda: not self.find("#message").is_displayed())
        self.browser.get_log("browser")  # Chromium logs the 400 itself

    def tab_to(self, wanted, most=120):
        for _ in range(most):
            active = self.browser.switch_to.active_element
            if wanted(active):
                return active
            active.send_keys(Keys.TAB)
        self.fail("not reached by keyboard")

    def test_everything_works_by_keyboard_alone(self):
        self.tab_to(lambda one: one.get_attribute("type") == "search").send_keys("ada")
        self.expect_list(search="ada")
        self.tab_to(lambda one: one.tag_name == "select" and "completed" in one.text).send_keys("comp")
        self.expect_list(search="ada", state="completed")
        self.tab_to(lambda one: one.tag_name == "summary").send_keys(Keys.ENTER)
        self.tab_to(lambda one: (one.get_attribute("placeholder") or "").startswith("NAME")).send_keys(
            "campaign", Keys.ENTER)
        self.expect_list(search="ada", state="completed", tag="campaign")
        self.tab_to(lambda one: one.text == "Clear all").send_keys(Keys.ENTER)
        self.expect_list()
        self.tab_to(lambda one: one.get_attribute("data-sort") == "time").send_keys(Keys.ENTER)
        self.expect_list(sort="time")
        # What was focused is still.
        again = self.browser.switch_to.active_element
        self.assertEqual(again.get_attribute("data-sort"), "time")
        again.send_keys(Keys.ENTER)
        self.expect_list(sort="time", reverse="true")
        # What is focused can be seen.
        self.assertNotEqual(self.browser.execute_script(
            "return getComputedStyle(document.activeElement).outlineStyle"), "none")
        for _ in range(2):
            box = self.tab_to(lambda one: one.get_attribute("type") == "checkbox" and
                              one.get_attribute("data-pick") and not one.is_selected())
            box.send_keys(Keys.SPACE)
        link = self.find(".picks a")
        self.assertEqual(link.text, "Compare 2 runs")
        self.browser.execute_script("arguments[0].focus()", link)
        link.send_keys(Keys.ENTER)
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
            self.screen(1300, 1000, dark)
            self.expect_list()
            self.assertEqual(faint(self.browser, ".sr-only, .skip, svg"), [])
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
        time = self.find(".list time")
        self.assertRegex(time.get_attribute("title"), r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$")
        shown = [int(n) for n in re.search(r"(\d\d):(\d\d):(\d\d)$", time.text).groups()]
        utc = [int(n) for n in re.search(r" (\d\d):(\d\d):(\d\d) ", time.get_attribute("title")).groups()]
        shift = (shown[0] * 60 + shown[1]) - (utc[0] * 60 + utc[1])
        self.assertEqual(shift % (24 * 60), 540)

    def test_it_fits_and_can_be_looked_at(self):
        self.open("#/?state=completed&tag=campaign&sort=time")
        self.expect_list(state="completed", tag="campaign", sort="time")
        self.shots("filtered", ".list tbody tr")
        self.open("#/")
        self.shots("list", ".list tbody tr")
        self.screen(360, 740, dark=True)  # as it was
        self.more()
        self.wait_to_fit(360)
        self.browser.save_screenshot(f"{SHOTS_DIR}/list-phone-filters.png")

    def test_nothing_comes_from_elsewhere_and_it_is_light_and_quick(self):
        self.browser.get(self.origin + "/")
        self.expect_list()
        found = self.browser.execute_script("""
            const resources = performance.getEntriesByType('resource');
            const page = performance.getEntriesByType('navigation')[0];
            return {names: resources.map((one) => one.name),
                    bytes: resources.reduce((sum, one) => sum + one.transferSize, page.transferSize),
                    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime};""")
        self.assertEqual([one for one in found["names"] if not one.startswith(self.origin)], [])
        self.browser.execute_cdp_cmd("Network.clearBrowserCache", {})
        self.browser.get("about:blank")
        self.browser.get(self.origin + "/")
        self.expect_list()
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


class CompareTest(ArchivePage):
    def runs(self):
        """Two runs of one command that differ, the first page's."""
        steps = [s for s in self.api(limit=1000, search="lmp")["steps"] if s["end"]]
        return [f"{s['job']}.{s['step']}" for s in steps[:2]]

    def diff(self, runs):
        request = urllib.request.Request(
            self.origin + "/api/v1/diff?profiles=" + ",".join(runs),
            headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def names(self, label):
        return self.browser.execute_script("""
            return [...document.querySelectorAll(`table[aria-label="${arguments[0]}"] tbody tr`)]
                .map((row) => row.cells[1].textContent.replace(/ \\*$/, ''));""", label)

    def test_what_matters_comes_first_and_the_same_is_folded(self):
        runs = self.runs()
        self.open("#/diff?profiles=" + ",".join(runs))
        self.wait_for("table[aria-label=Runs]")
        diff = self.diff(runs)
        weighty = [row for row in diff["rows"] if row["standing"] == "weighty"]
        self.assertTrue(weighty)
        self.assertEqual(sorted([row["weight"] for row in weighty], reverse=True),
                         [row["weight"] for row in weighty])
        shown = self.names("Numbers")
        self.assertEqual(shown[:len(weighty)], [row["name"] for row in weighty])
        same = [row["name"] for row in diff["rows"] if row["standing"] == "same"]
        self.assertFalse(set(same) & set(shown))
        if same:
            fold = self.browser.find_element(By.XPATH, f"//summary[contains(., '{len(same)} number')]")
            fold.click()
            self.until(lambda: self.names("Within noise") == same)
        # The number of each run in its column.
        for row, cells in zip(weighty, self.find_all("table[aria-label=Numbers] tbody tr")):
            texts = [cell.text for cell in cells.find_elements(By.TAG_NAME, "td")]
            for band, text in zip(row["groups"], texts[2:4]):
                if band["mean"] and re.fullmatch(r"[\d. a-zA-Zµ]+", text) and row["unit"] in ("bytes", "seconds"):
                    self.assertAlmostEqual(amount(text), band["mean"], delta=0.006 * band["mean"] + 0.5)
            self.assertAlmostEqual(amount(texts[-1]), 100 * row["weight"], delta=0.5)

    def test_it_fits_has_contrast_and_can_be_looked_at(self):
        self.open("#/diff?profiles=" + ",".join(self.runs()))
        self.wait_for("table[aria-label=Runs]")
        for dark in (False, True):
            self.screen(1300, 1000, dark)
            self.wait_for("table[aria-label=Runs]")
            self.assertEqual(faint(self.browser, ".sr-only, .skip, svg"), [])
            self.assertEqual(self.browser.execute_script(NAMELESS), [])
        self.shots("diff", ".numbers tbody tr")


if __name__ == "__main__":
    print("screenshots in", SHOTS_DIR, file=sys.stderr)
    os.makedirs(SHOTS_DIR, exist_ok=True)
    unittest.main(argv=sys.argv[:1] + os.environ.get("SONDE_WEB_TESTS", "").split())
