"""Two runs beside each other in headless Chromium, over a real archive of some hundred made steps.

compare_test.py LIST_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

import re

from archive_page import NAMELESS, ArchivePage, amount  # first: it says where contrast and page are
from contrast import faint
from page import main
from selenium.webdriver.common.by import By


class CompareTest(ArchivePage):
    COUNT = 312

    def runs(self):
        """Two runs of one command that differ, the first page's."""
        steps = [s for s in self.steps(limit=1000, search="lmp")["steps"] if s["end"]]
        return [f"{s['job']}.{s['step']}" for s in steps[:2]]

    def diff(self, runs):
        return self.api("/api/v1/diff", ("profiles", ",".join(runs)))

    def names(self, label):
        return self.browser.execute_script("""
            return [...document.querySelectorAll(`table[aria-label="${arguments[0]}"] tbody tr`)]
                .map((row) => row.cells[1].textContent.replace(/ \\*$/, ''));""", label)

    def test_what_matters_comes_first_and_the_same_is_folded(self):
        runs = self.runs()
        self.open("#/diff?profiles=" + ",".join(runs), "table[aria-label=Runs]")
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
        self.open("#/diff?profiles=" + ",".join(self.runs()), "table[aria-label=Runs]")
        for dark in (False, True):
            self.look(1300, dark)
            self.wait_for("table[aria-label=Runs]")
            self.until_equal(lambda: faint(self.browser, ".sr-only, .skip, svg"), [])
            self.assertEqual(self.browser.execute_script(NAMELESS), [])
        self.shots("diff", ".numbers tbody tr")


if __name__ == "__main__":
    main()
