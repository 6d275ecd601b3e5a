"""The page in headless Chromium: what a person sees, clicks and reaches by keyboard.

page_test.py PAGE_SERVER [--shots DIR]: with --shots also leaves screenshots, light, dark and phone.
Needs Debian's chromium, chromium-driver and python3-selenium.
"""

import subprocess
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 30  # seconds
SERVER = sys.argv[1] if len(sys.argv) > 1 else ""
SHOTS = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "--shots" else ""


def start_browser(profile):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--lang=en", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True)
        cls.address = cls.server.stdout.readline().strip()
        cls.profile = tempfile.TemporaryDirectory(prefix="sonde-page-", ignore_cleanup_errors=True)
        cls.browser = start_browser(cls.profile.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.server.communicate("")
        cls.profile.cleanup()

    def setUp(self):
        self.screen(1300, 1000)
        self.browser.get(self.address)
        self.wait_for(".jobs a")

    def tearDown(self):
        # A broken script or a breach of the content policy would be here.
        self.assertEqual([line["message"] for line in self.browser.get_log("browser")], [])

    def screen(self, width, height, dark=False):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def until(self, condition):
        return WebDriverWait(self.browser, PATIENCE, poll_frequency=0.05).until(
            lambda _: condition())

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait_for(self, selector):
        return self.until(lambda: self.find_all(selector))[0]

    def open_job(self, job="4711.0"):
        self.browser.find_element(By.LINK_TEXT, job).click()
        self.until(lambda: self.find_all("figure") and all(
            figure.find_elements(By.CSS_SELECTOR, "canvas") for figure in self.shown_figures()))

    def shown_figures(self):
        return [figure for figure in self.find_all("figure") if figure.is_displayed()]

    def figure(self, metric):
        return self.find(f'figure[data-metric="{metric}"]')

    def shot(self, name):
        if SHOTS:
            self.browser.save_screenshot(f"{SHOTS}/{name}.png")

    def test_the_token_leaves_the_address(self):
        self.assertNotIn("token", self.browser.current_url)
        self.assertEqual(self.browser.execute_script("return document.cookie"), "")  # HttpOnly

    def test_the_list_has_running_and_finished_steps_newest_first(self):
        rows = [row.text for row in self.find_all(".jobs tbody tr")]
        self.assertEqual(len(rows), 2)
        self.assertRegex(rows[0], r"4712\.0 running .* 100 %")
        self.assertRegex(rows[1], r"4711\.0 completed .* 10 min 0 s 98\.3 %")
        self.shot("list")

    def test_a_step_shows_what_it_is_and_what_is_missing(self):
        self.open_job()
        text = self.find("#view").text
        for expected in ("4711.0 lid-cavity", "completed", "./cavity --grid 512", "98.3 %",
                         "n3: no samples for 40 s: link lost", "Cost of Sonde"):
            self.assertIn(expected, text)
        legend = self.figure("node_load1").text
        self.assertIn("samples missing", legend)
        self.assertIn("band: least to most", legend)
        self.shot("job")

    def test_every_group_of_metrics_is_drawn_with_its_unit(self):
        self.open_job()
        groups = [head.text for head in self.find_all("h2")]
        self.assertEqual(groups, ["CPU", "Memory", "Load and pressure", "Network",
                                  "Disks and file systems", "Tasks", "Application"])
        for metric, unit in (("node_cpu_seconds_total", r"[\d.]+ cores"),
                             ("node_memory_MemAvailable_bytes", r"[\d.]+ GiB"),
                             ("node_disk_read_bytes_total", r"MiB/s|B/s"),
                             ("node_pressure_cpu_waiting_seconds_total", r"[\d.]+ %"),
                             ("solver_iterations_total", r"[\d.]+/s")):
            self.assertRegex(self.figure(metric).text, unit)

    def test_the_tip_names_the_nodes_at_the_edges(self):
        self.open_job()
        self.hover("node_load1", 0.6)
        self.assertRegex(self.find("#tip").text, r"mean [\d.]+ least [\d.]+ n3 most [\d.]+ n[124]")
        self.hover("task_resident_memory_bytes", 0.6)
        self.assertRegex(self.find("#tip").text, r"GiB n\d task \d")

    def hover(self, metric, share):
        plot = self.figure(metric).find_element(By.CSS_SELECTOR, ".u-over")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        offset = int(plot.size["width"] * (share - 0.5))
        ActionChains(self.browser).move_to_element_with_offset(plot, offset, 0).perform()
        self.until(lambda: self.find("#tip").is_displayed())

    def test_everything_is_reached_by_keyboard(self):
        body = self.find("body")
        for _ in range(20):
            active = self.browser.switch_to.active_element
            if active.text == "4711.0":
                break
            (active if active.tag_name != "body" else body).send_keys(Keys.TAB)
        self.browser.switch_to.active_element.send_keys(Keys.ENTER)
        self.wait_for("figure canvas")
        self.until(lambda: self.figure("node_load1").find_elements(By.CSS_SELECTOR, "canvas"))
        figure = self.figure("node_load1")
        self.browser.execute_script("arguments[0].focus()", figure)
        figure.send_keys(Keys.END, Keys.ARROW_LEFT)
        self.until(lambda: self.find("#tip").is_displayed())
        figure.send_keys(Keys.ESCAPE)
        self.assertFalse(self.find("#tip").is_displayed())
        self.assertRegex(figure.get_attribute("aria-label"), r"node_load1: .* mean [\d.]+")

    def test_one_line_per_host(self):
        self.open_job()
        self.find("#by-host").click()
        self.until(lambda: "n1\nn2\nn3\nn4" in self.figure("node_cpu_seconds_total").text)
        self.shot("by-host")

    def test_more_metrics_are_loaded_when_asked_for(self):
        self.open_job()
        self.assertEqual(self.find_all('figure[data-metric="node_memory_MemTotal_bytes"]'), [])
        more = self.find("section[aria-label=Memory] details.more summary")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", more)
        more.click()
        self.wait_for('figure[data-metric="node_memory_MemTotal_bytes"] canvas')

    def test_a_running_step_is_read_again(self):
        self.open_job("4712.0")
        self.browser.execute_script("""
            window.reads = 0;
            const read = window.fetch;
            window.fetch = (...all) => { window.reads += 1; return read(...all); };""")
        self.until(lambda: self.browser.execute_script("return window.reads") > 0)

    def test_an_unknown_step_is_said_in_words(self):
        self.browser.get(self.address.split("?")[0] + "#/job/1.0")
        self.until(lambda: "no step 1.0" in self.find("#message").text)
        self.browser.get_log("browser")  # Chromium logs the 404 itself

    def test_it_fits_a_phone_and_the_dark(self):
        self.open_job()
        self.screen(390, 844)
        self.until(lambda: all(f.size["width"] <= 390 for f in self.shown_figures()))
        width = self.browser.execute_script("return document.documentElement.scrollWidth")
        self.assertLessEqual(width, 390)
        self.shot("phone")
        self.screen(1300, 1000, dark=True)
        self.wait_for("figure canvas")
        background = self.browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor")
        self.assertEqual(background, "rgb(18, 22, 28)")
        self.until(lambda: all(figure.find_elements(By.CSS_SELECTOR, "canvas")
                               for figure in self.shown_figures()))
        self.shot("dark")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
