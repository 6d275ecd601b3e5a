"""The page of one step, which the tests of it share: how it is opened, asked and pointed at.

Words of the command line: PAGE_SERVER [--shots DIR].
"""

import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from page import Page  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402

STEP = "4713.0"
# What is saved lands in window.saved.
CATCH = """window.saved = [];
           URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => window.saved.push(
               {type: blob.type, size: blob.size, text: new TextDecoder().decode(bytes.slice(0, 1e6))}));
               return 'data:,'; };
           HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };"""
ASKED = "return performance.getEntriesByType('resource').map((one) => one.name)"


def digits(value):
    """As the page writes numbers (trim in numbers.js)."""
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}".rstrip("0").rstrip(".")


class StepPage(Page):
    ARGUMENTS = ["--nodes", "4"]

    def setUp(self):
        self.screen(1280, 1000)
        self.load(f"/job/{STEP}?x=1")
        self.keep_names()
        self.wait_drawn()

    def open(self, query):
        """The step anew with that query in its address, drawn."""
        self.go(f"#/job/{STEP}?{query}x=1")
        self.wait_drawn()

    def look(self, width, dark=False, height=1000):
        super().look(width, dark, height)
        self.wait_drawn()

    def whole(self, name, width):
        """A screenshot of the upper part of the page, however long."""
        self.browser.execute_script("scrollTo(0, 0)")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 2600, "deviceScaleFactor": 1, "mobile": width < 700})
        self.wait_drawn()
        self.shot(name)

    # --- The server

    def ask(self, path, **parameters):
        return super().ask(path, job=STEP, **parameters)

    def heatmap(self, **more):
        return self.ask("/api/v1/heatmap", **more)

    def asked(self):
        """The addresses of what was answered."""
        return self.browser.execute_script(ASKED)

    def shown(self):
        """What the heatmap asked for last."""
        address = [one for one in self.asked() if "heatmap" in one and "columns=1&" not in one][-1]
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(address).query))
        query.pop("job")
        return query

    def data(self):
        """What the heatmap shows, asked again with what it asked for."""
        return self.heatmap(**self.shown())

    # --- The page

    def state(self):
        fragment = urllib.parse.urlparse(self.browser.current_url).fragment
        return dict(urllib.parse.parse_qsl(fragment.partition("?")[2]))

    def scrolled(self, metric):
        """The figure, where it is seen: plots that are far away are not read again."""
        figure = self.figure(metric)
        self.scroll_to(figure)
        return figure

    def area(self):
        area = self.find(".heat")
        self.scroll_to(area)
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

    def point(self, x, y):
        area, left, top = self.place(x, y)
        return self.tip(ActionChains(self.browser).move_to_element_with_offset(area, left, top))

    def click_tile(self, x, y):
        area, left, top = self.place(x, y)
        ActionChains(self.browser).move_to_element_with_offset(area, left, top).click().perform()

    def drag(self, element, from_x, to_x, y, to_y=None):
        actions = ActionChains(self.browser)
        actions.move_to_element_with_offset(element, from_x, y).click_and_hold()
        actions.move_by_offset((to_x - from_x) // 2, ((to_y or y) - y) // 2)
        actions.move_by_offset(to_x - from_x - (to_x - from_x) // 2,
                               (to_y or y) - y - ((to_y or y) - y) // 2)
        actions.release().perform()

    def saved(self):
        self.until(lambda: self.browser.execute_script("return window.saved.length") > 0)
        return self.browser.execute_script("return window.saved.pop()")

    def tearDown(self):
        here = self.address.split("#")[0]
        self.assertEqual([one for one in self.asked() if not one.startswith((here, "data:"))], [])
        super().tearDown()
