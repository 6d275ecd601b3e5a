"""The range of time and the scope of a step's page in headless Chromium: by dragging, by controls, by the address.

range_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

import urllib.parse

from step_page import StepPage  # first: it says where page is
from page import main
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


class RangeTest(StepPage):
    def test_dragging_zooms_everything_and_a_double_click_resets(self):
        for element in ("heat", "plot"):
            if element == "heat":
                area, left, top = self.place(0.25, 0.5)
                right = self.place(0.5, 0.5)[1]
            else:
                area = self.figure("node_load1").find_element(By.CSS_SELECTOR, ".u-over")
                self.scroll_to(area)
                width = area.size["width"]
                left, right, top = -width // 4, 0, 0
            self.drag(area, left, right, top)
            self.until(lambda: "range" in self.state())
            start, end = map(float, self.state()["range"].split("~"))
            job = self.ask("/api/v1/profile")["job"]
            self.assertAlmostEqual(start - job["start"] / 1e9, 900, delta=25)
            self.assertAlmostEqual(end - job["start"] / 1e9, 1800, delta=25)
            self.until(lambda: self.plots_show(start, end))
            self.assertIn("15 min", self.find(".controls .range").text)
            if element == "heat":
                self.shot("step-zoomed")
            ActionChains(self.browser).move_to_element(area).double_click().perform()
            self.until(lambda: "range" not in self.state())
            self.until(lambda: self.plots_show(job["start"] / 1e9, job["end"] / 1e9))

    def plots_show(self, start, end):
        """Whether plots near the screen were asked for that range."""
        last = [one for one in self.asked() if "/series" in one][-1]
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(last).query))
        if "start" not in query:
            return "range" not in self.state()
        return abs(float(query["start"]) / 1e3 - start) < 1 and abs(float(query["end"]) / 1e3 - end) < 1

    def test_buttons_and_the_list_of_ranges_do_the_same(self):
        self.find('.controls [aria-label="Zoom in"]').click()
        self.until(lambda: "range" in self.state())
        start, end = map(float, self.state()["range"].split("~"))
        self.assertAlmostEqual(end - start, 1800, delta=1)
        self.find('.controls [aria-label="Zoom out"]').click()
        self.until(lambda: "range" not in self.state())
        self.find("#range option[value='300']").click()
        self.until(lambda: "range" in self.state())
        start, end = map(float, self.state()["range"].split("~"))
        self.assertAlmostEqual(end - start, 300, delta=1)

    def test_the_address_leads_to_the_same_view(self):
        job = self.ask("/api/v1/profile")["job"]
        start = job["start"] / 1e9 + 600
        self.open(f"range={start:.0f}~{start + 600:.0f}&node=node0002&metric=node_load1&shade=max&")
        self.assertEqual(self.find("#scope").get_attribute("value"), "node")
        self.assertEqual(self.find("#scope-name").get_attribute("value"), "node0002")
        self.assertEqual(self.find("#heat-metric").get_attribute("value"), "node_load1")
        self.assertEqual(self.find("#heat-shade").get_attribute("value"), "max")
        shown = self.shown()
        self.assertEqual(shown["metric"], "node_load1")
        self.assertAlmostEqual(float(shown["start"]) / 1e3, start, delta=1)
        self.assertIn("10 min", self.find(".controls .range").text)

    def test_a_scope_is_chosen_by_name(self):
        self.find("#scope option[value=node]").click()
        name = self.find("#scope-name")
        name.send_keys("nonsense", Keys.ENTER)
        self.until(lambda: "wrong" in name.get_attribute("class"))
        name.clear()
        name.send_keys("node0003", Keys.TAB)
        self.until(lambda: self.state().get("node") == "node0003")
        self.find("#scope option[value=rank]").click()
        self.find("#scope-name").send_keys("5", Keys.TAB)
        self.until(lambda: self.state().get("rank") == "5")
        self.assertEqual(self.state()["node"], "node0002")  # where it is
        self.find("#scope option[value='']").click()
        self.until(lambda: "rank" not in self.state() and "node" not in self.state())


if __name__ == "__main__":
    main()
