"""What is saved of a step's page in headless Chromium: plots, heatmaps and the roofline as SVG, PNG and CSV, with
the API's numbers.

saving_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

import csv
import io
import pathlib
import re
import xml.etree.ElementTree

from step_page import CATCH, STEP, StepPage, digits  # first: it says where page is
from page import SHOTS, main
from selenium.webdriver.common.by import By

SVG = "{http://www.w3.org/2000/svg}"


class SavingTest(StepPage):
    def saved_svg(self):
        saved = self.saved()
        self.assertEqual(saved["type"], "image/svg+xml")
        if SHOTS:
            pathlib.Path(SHOTS, f"{self.id().split('.')[-1]}-{len(saved['text'])}.svg").write_text(saved["text"])
        root = xml.etree.ElementTree.fromstring(saved["text"])
        self.assertEqual(root.tag, SVG + "svg")
        # Nothing of the page or of others is needed to show it.
        self.assertNotRegex(saved["text"], r"var\(|href|<script|<image")
        return root, [one.text for one in root.iter(SVG + "text")]

    def test_the_roofline_has_the_step_its_phases_and_its_limit(self):
        roofline = self.ask("/api/v1/insight", of="roofline")
        self.until(lambda: self.find_all(".roofline svg"))
        card = self.find(".roofline")
        self.assertEqual(len(card.find_elements(By.CSS_SELECTOR, "svg circle")), 3)
        share = digits(roofline["whole"]["share"] * 100)
        self.assertIn("Memory is its limit at 0.6 FLOP per byte", card.text)
        self.assertIn(f"{share} % of what can be reached there", card.text)
        rows = [row.text for row in card.find_elements(By.CSS_SELECTOR, "tbody tr")]
        self.assertEqual(len(rows), 3)
        self.assertRegex(rows[1], r"^A read mesh .* memory")
        self.browser.execute_script(CATCH)
        self.scroll_to(card)
        card.find_element(By.TAG_NAME, "button").click()
        root, texts = self.saved_svg()
        self.assertIn("FLOP per byte", texts)
        self.assertIn("single precision: 16 TFLOP/s", texts)
        self.assertTrue(any("A read mesh" in one for one in texts), texts)
        self.assertEqual(len(list(root.iter(SVG + "circle"))), 3)
        self.assertTrue(next(root.iter(SVG + "circle")).get("fill").startswith("rgb("))
        # Each point lies below the roof, and where its numbers say.
        below = self.browser.execute_script("""
            const roof = document.querySelector('.roofline polyline:not(.single)').points;
            const [low, ridge] = [roof[0], roof[1]];
            return [...document.querySelectorAll('.roofline circle')].map((one) => {
              const [x, y] = [one.cx.baseVal.value, one.cy.baseVal.value];
              const at = low.y + (ridge.y - low.y) * Math.min((x - low.x) / (ridge.x - low.x), 1);
              return y - at;
            });""")
        self.assertTrue(all(one > 0 for one in below), below)

    def test_a_plot_is_saved_as_lines_with_its_axes(self):
        self.browser.execute_script(CATCH)
        figure = self.scrolled("node_load1")
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        next(one for one in figure.find_elements(By.CSS_SELECTOR, ".panel button") if one.text == "SVG").click()
        root, texts = self.saved_svg()
        self.assertIn(f"{STEP}: Load average over 1 minute", texts)
        self.assertIn("mean", texts)
        self.assertIn("time steps", [one.text for one in root.iter(SVG + "title")])
        series = self.ask("/api/v1/series", metric="node_load1", points=300)["series"][0]
        # The line of the means goes through the values, by the marks of the axis.
        marks = [(float(one.text), float(one.get("y")) - 4) for one in root.iter(SVG + "text")
                 if one.get("text-anchor") == "end"]
        self.assertGreater(len(marks), 2)
        (low, at_low), (high, at_high) = marks[0], marks[-1]
        line = next(one for one in root.iter(SVG + "path") if one.get("stroke-width") == "2").get("d")
        places = [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", line)]
        self.assertEqual(len(places), len(series["value"]))
        for y, value in zip(places, series["value"]):
            self.assertAlmostEqual(y, at_low + (value - low) / (high - low) * (at_high - at_low), delta=0.6)

    def test_stacked_and_many_lines_are_saved_too(self):
        self.browser.execute_script(CATCH)
        figure = self.scrolled("node_cpu_seconds_total")
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        next(one for one in figure.find_elements(By.CSS_SELECTOR, ".panel button") if one.text == "SVG").click()
        root, texts = self.saved_svg()
        legend = [one.text for one in figure.find_elements(By.CSS_SELECTOR, ".legend li")]
        for name in legend[:2]:
            self.assertIn(name, texts)
        areas = [one for one in root.iter(SVG + "path") if one.get("fill") != "none"]
        self.assertEqual(len(areas), len([one for one in root.iter(SVG + "path") if one.get("fill") == "none"]))

    def test_a_heatmap_is_saved_as_tiles_with_its_scale(self):
        self.browser.execute_script(CATCH)
        button = next(one for one in self.find_all(".matrix > .tools button") if one.text == "SVG")
        self.scroll_to(button)
        button.click()
        root, texts = self.saved_svg()
        data = self.data()
        for name in data["names"]:
            self.assertIn(name, texts)
        scale = [one.text for one in self.find_all(".key > span")][:2]
        self.assertEqual([one for one in texts if one in scale], scale)
        self.assertTrue(any(re.fullmatch(r"\d\d:\d\d", one) for one in texts), texts)
        tiles = [one for one in root.iter(SVG + "path") if one.get("shape-rendering")]
        self.assertLessEqual(len(tiles), 259)
        missing = sum(one is None for row in data["mean"] for one in row)
        area = {one.get("fill"): sum(float(h) * float(v) for h, v in
                                     re.findall(r"h([\d.]+)v([\d.]+)", one.get("d"))) for one in tiles}
        share = area["url(#missing)"] / sum(area.values())
        self.assertAlmostEqual(share, missing / (data["columns"] * len(data["rows"])), delta=0.001)

    def test_what_is_shown_can_be_saved(self):
        self.browser.execute_script(CATCH)
        figure = self.figure("node_load1")
        self.scroll_to(figure)
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        self.assertIn("node_load1", figure.find_element(By.CSS_SELECTOR, ".panel").text)
        self.shot("step-menu")
        buttons = {one.text: one for one in figure.find_elements(By.CSS_SELECTOR, ".panel button")}
        buttons["CSV"].click()
        rows = list(csv.reader(io.StringIO(self.saved()["text"])))
        series = self.ask("/api/v1/series", metric="node_load1", points=300)["series"][0]
        self.assertEqual(rows[0], ["time", "mean", "mean min", "mean max"])
        self.assertEqual([float(row[1]) for row in rows[1:] if row[1]], series["value"])
        self.assertEqual([float(row[3]) for row in rows[1:] if row[1]], series["max"])
        buttons["PNG"].click()
        self.assertEqual(self.saved()["type"], "image/png")
        heat = {one.text: one for one in self.find_all(".matrix > .tools button")}
        self.scroll_to(heat["CSV"])
        heat["CSV"].click()
        rows = list(csv.reader(io.StringIO(self.saved()["text"])))
        data = self.data()
        self.assertEqual(len(rows), 5)
        self.assertEqual([float(one) if one else None for one in rows[2][2:]], data["mean"][1])
        heat["PNG"].click()
        self.assertEqual(self.saved()["type"], "image/png")
        self.find(".members .tools button").click()
        rows = list(csv.reader(io.StringIO(self.saved()["text"])))
        self.assertEqual(len(rows), 5)
        self.assertEqual(self.browser.execute_script("return window.savedName"), f"{STEP}-nodes.csv")


if __name__ == "__main__":
    main()
