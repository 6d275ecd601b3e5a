"""What the tests of the explorer and of the page of alarms share: a browser on a server, and its API.

Words of the command line: PAGE_SERVER API_SERVER [SONDE PYTHON_PACKAGE] [--shots DIR]; with --shots also
leaves screenshots in DIR, of three widths, light and dark.
"""

import json
import pathlib
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from contrast import faint  # noqa: E402
from page import SHOTS, Page  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

API_SERVER = sys.argv[2] if len(sys.argv) > 2 else ""
SONDE, PACKAGE = sys.argv[3:5] if len(sys.argv) > 4 else ("", "")
STEP = "4711.0"
WIDTHS = (360, 1280, 2560)
FAINT_BUT = ".sr-only, .skip, svg, .unseen, .u-over, .off, [disabled], option"

# The points that are shown: {"A host=n1": {ms: value}}.
POINTS = """
const table = document.querySelector('table[aria-label=Points]');
if (!table) return {};
const heads = [...table.tHead.rows[0].cells].slice(2).map((cell) => cell.textContent);
const lines = Object.fromEntries(heads.map((head) => [head, {}]));
for (const row of table.tBodies[0].rows) {
  heads.forEach((head, i) => {
    const value = row.cells[i + 2].dataset.value;
    if (value !== '') lines[head][row.dataset.time] = Number(value);
  });
}
return lines;"""

# Controls that a screen reader could not name, and those that are too small to hit.
UNNAMED = """
return [...document.querySelectorAll('main input, main select, main button, main a, header a, header input, [tabindex="0"]')]
  .filter((one) => one.offsetParent && !one.getAttribute('aria-label') && !one.textContent.trim() &&
                   !(one.closest('label') && one.closest('label').textContent.trim()) && !one.title)
  .map((one) => one.outerHTML);"""


class Explorer(Page):
    TOKEN = "browser-test"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.address = cls.address.split()[0]
        cls.server_url, _, cls.token = cls.address.partition("/#token=")
        cls.token = cls.token or cls.TOKEN
        cls.downloads = tempfile.TemporaryDirectory(prefix="sonde-explore-")
        cls.addClassCleanup(cls.downloads.cleanup)
        cls.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {
            "behavior": "allow", "downloadPath": cls.downloads.name})
        cls.browser.get(f"{cls.server_url}/#token={cls.token}")

    def setUp(self):
        self.screen(1280, 1100)

    # --- The server

    def get(self, path, body=None, method=None):
        request = urllib.request.Request(
            self.server_url + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return json.load(error)

    def step_range(self, job=STEP):
        description = self.get(f"/api/v1/profile?job={job}")["job"]
        return description["start"] // 10**6, -(-description["end"] // 10**6)

    def expected(self, start, end, *queries, job=STEP):
        """What the page has to show for queries, each {"metric", "aggregator", "by", ...}."""
        lines = {}
        for number, query in enumerate(queries):
            query = dict(query)
            by = query.pop("by", [])
            filters = [{"type": "wildcard", "tagk": key, "filter": "*", "groupBy": True} for key in by]
            filters.append({"type": "literal_or", "tagk": "job", "filter": job, "groupBy": False})
            filters += [{"type": kind, "tagk": key, "filter": pattern, "groupBy": False}
                        for kind, key, pattern in query.pop("where", [])]
            body = {"start": start, "end": end, "msResolution": True, "queries": [{**query, "filters": filters}]}
            answer = self.get("/api/query?arrays=true&nan=null", body)
            self.assertIsInstance(answer, list, answer)
            for result in answer:
                tags = " ".join(f"{key}={value}" for key, value in result["tags"].items()
                                if key in by or (query["aggregator"] == "none" and key != "job"))
                name = tags or (query["aggregator"] + " of " + query["metric"]
                                + (" per second" if query.get("rate") else ""))
                lines[f"{'ABCDEFGH'[number]} {name}"] = {
                    str(time): value for time, value in result["dps"] if value is not None}
        return lines

    # --- The page

    def turn(self):
        return int(self.browser.execute_script(
            "const e = document.querySelector('.explore'); return e ? e.dataset.turn || 0 : 0"))

    def open(self, parameters=""):
        """The page anew, which goes on to refresh itself once at most."""
        self.browser.get("about:blank")
        self.browser.get(f"{self.server_url}/#/explore{'?' if parameters else ''}{parameters}")
        self.wait_answered(0)
        self.browser.execute_script("document.getElementById('refresh').checked = false")

    def wait_answered(self, turn):
        """Until the results of a later turn than that are shown, and the tags of all metrics: these come beside the
        results and move what is below."""
        self.until(lambda: self.browser.execute_script("""
            const shown = document.querySelector('.explore');
            return shown && !shown.querySelector('[aria-busy=true]') && Number(shown.dataset.turn) > arguments[0];""", turn))

    def act(self, what):
        """Does it and waits until its results are shown."""
        before = self.turn()
        what()
        self.wait_answered(before)

    def points(self):
        return self.browser.execute_script(POINTS)

    def query(self, letter="A"):
        return self.find(f'section.query[data-query="{letter}"]')

    def control(self, label):
        return self.find(f'[aria-label="{label}"]')

    def choose(self, label, value):
        self.act(lambda: Select(self.control(label)).select_by_value(value))

    def write(self, label, text, key=Keys.ENTER):
        field = self.control(label)
        field.click()
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)
        self.act(lambda: field.send_keys(key))

    def press(self, label):
        button = self.control(label)
        self.scroll_to(button)
        self.act(button.click)

    def view(self, name):
        (button,) = [one for one in self.find_all(".views button") if one.text == name]
        self.act(button.click)

    def text(self, kind):
        return self.browser.execute_script(
            f"return document.querySelector('[data-text={kind}] code').textContent")

    def notes(self, kind):
        return self.find(f"[data-text={kind}] ul").text

    def parameters(self):
        return urllib.parse.parse_qsl(self.hash().partition("?")[2], keep_blank_values=True)

    def assert_shows(self, start, end, *queries, job=STEP):
        self.assertEqual(self.points(), self.expected(start, end, *queries, job=job))

    def assert_nothing_from_elsewhere(self):
        names = self.browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertTrue(names)
        for name in names:
            self.assertTrue(name.startswith((self.server_url, "blob:", "data:")), name)

    def shots_of(self, name, again=lambda: None):
        """Screenshots of the whole page, and that it fits each width. With other colours the page is made
        anew: `again` does what is not in its address."""
        for width, dark in [(width, dark) for width in WIDTHS for dark in (False, True)]:
            if SHOTS or (width, dark) in ((360, False), (360, True), (1280, False)):
                self.look(width, dark)
                again()
                self.wait_to_fit(width)
                self.until_equal(lambda: faint(self.browser, FAINT_BUT), [])
                if SHOTS:
                    height = self.browser.execute_script("return document.documentElement.scrollHeight")
                    self.screen(width, max(height, 1000), dark)
                    self.until(lambda: self.browser.execute_script(
                        "return [...document.querySelectorAll('.plot canvas')].every((one) => one.clientWidth <= innerWidth)"))
                    self.browser.save_screenshot(f"{SHOTS}/{name}-{width}-{'dark' if dark else 'light'}.png")
