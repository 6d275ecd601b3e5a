"""A browser on a server of made steps: what all tests of the pages share.

Words of the command line: SERVER ... [--shots DIR]; with --shots a test also leaves screenshots in DIR. With
SONDE_WEB_TESTS="Class.test ..." in the environment it runs these tests alone.
"""

import functools
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import (ElementClickInterceptedException, StaleElementReferenceException,
                                        TimeoutException)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 30  # seconds
# What was waited for in vain once is not late but broken: the other tests of a class shall not wait that long for the
# same, or all of them together wait beyond any limit.
PATIENCE_THEN = 2
SHOTS = sys.argv.pop(sys.argv.index("--shots") + 1) if "--shots" in sys.argv else os.environ.get("SONDE_SHOTS", "")
if "--shots" in sys.argv:
    sys.argv.remove("--shots")
SERVER = sys.argv[1] if len(sys.argv) > 1 else ""

# Asks an endpoint, as the page would.
ASK = """const [path, done] = arguments;
         import('./session.js').then(({ask}) => ask(path)).then((answer) => answer.json()).then(done, (e) => done({error: String(e)}));"""
# What is shown is marked; another page, and other colours, have all made anew.
MARK = "document.querySelectorAll('#view > *').forEach((one) => { one.dataset.old = '1'; });"
MADE_ANEW = "return !document.querySelector('#view > [data-old]') && !document.querySelector('#view > .empty');"
# Whether all figures that can be seen are drawn, and nothing is asked for any more that would move what is below.
DRAWN = """
    const figures = [...document.querySelectorAll('#view figure')].filter((one) => one.offsetParent);
    const matrix = document.querySelector('.matrix');
    return figures.length > 0 && figures.every((one) => one.querySelector('canvas')) &&
           (!matrix || matrix.querySelector('.key span') !== null && matrix.querySelector('tbody tr') !== null) &&
           document.querySelector('main [aria-busy=true]') === null &&
           document.querySelector('#view > .empty') === null;"""


def start_browser(profile):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--lang=en", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


@functools.cache
def browser():
    """One for all classes of a file: each start takes two seconds of a processor."""
    profile = tempfile.TemporaryDirectory(prefix="sonde-page-", ignore_cleanup_errors=True)
    unittest.addModuleCleanup(profile.cleanup)
    started = start_browser(profile.name)
    unittest.addModuleCleanup(started.quit)
    started.set_page_load_timeout(PATIENCE)
    started.set_script_timeout(PATIENCE)
    return started


def forget(started):
    """What a class has left there; what pages store themselves is of its server's address."""
    started.get("about:blank")
    started.execute_cdp_cmd("Network.clearBrowserCookies", {})
    started.get_log("browser")


class Page(unittest.TestCase):
    SERVER = SERVER
    ARGUMENTS = []
    patience = PATIENCE  # of all tests of a class
    refused = ()

    @classmethod
    def setUpClass(cls):
        Page.patience = PATIENCE
        cls.server = subprocess.Popen([cls.SERVER, *cls.ARGUMENTS], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.server.communicate, "")
        cls.address = cls.server.stdout.readline().strip()
        cls.browser = browser()
        forget(cls.browser)

    def setUp(self):
        self.screen(1300, 1000)
        self.load()
        self.wait_for(".jobs a")

    def tearDown(self):
        if self.refused:
            # The page may ask more than once, and is told of the first refusal: the others end with it.
            self.browser.get("about:blank")
        told = [line["message"] for line in self.browser.get_log("browser")]
        expected = [f"the server responded with a status of {status} " for status in self.refused]
        # A broken script or a breach of the content policy would be here.
        self.assertEqual([one for one in told if not any(text in one for text in expected)], [])

    def expect_refusals(self, *statuses):
        """The test has the server refuse something: Chromium logs statuses of 4xx itself."""
        self.refused = statuses

    # --- Waiting

    def until(self, condition, ignored=()):
        # The page may make anew what was just found.
        wait = WebDriverWait(self.browser, Page.patience, poll_frequency=0.1,
                             ignored_exceptions=[StaleElementReferenceException, *ignored])
        try:
            return wait.until(lambda _: condition())
        except TimeoutException:
            Page.patience = PATIENCE_THEN
            raise

    def until_equal(self, get, expected):
        """Waits until `get()` is what is expected, and else says what it is."""
        try:
            self.until(lambda: get() == expected)
        except TimeoutException:
            self.assertEqual(get(), expected)

    def until_in(self, part, get):
        try:
            self.until(lambda: part in get())
        except TimeoutException:
            self.assertIn(part, get())

    def wait_for(self, selector):
        return self.until(lambda: self.find_all(selector))[0]

    def wait_drawn(self):
        self.until(lambda: self.browser.execute_script(DRAWN))

    def wait_to_fit(self, width):
        """Plots are drawn anew, one after the other, when the window's width has changed."""
        self.until(lambda: self.browser.execute_script(
            "return document.documentElement.scrollWidth") <= width)

    # --- What is there

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        """The texts of all of them at one moment, as far as they can be seen."""
        return self.browser.execute_script("""
            return [...document.querySelectorAll(arguments[0])]
                .map((one) => one.innerText.replace(/\\s+/g, ' ').trim());""", selector)

    def figure(self, metric):
        return self.find(f'figure[data-metric="{metric}"]')

    def shown_figures(self):
        return [figure for figure in self.find_all("figure") if figure.is_displayed()]

    def hash(self):
        return self.browser.execute_script("return location.hash")

    def keep_names(self):
        """Of all that the page asks for: by itself the browser keeps the first 250."""
        self.browser.execute_script("performance.setResourceTimingBufferSize(10000)")

    # --- What is done

    def ask(self, path, **parameters):
        return self.browser.execute_async_script(ASK, f"{path}?{urllib.parse.urlencode(parameters)}")

    def tell(self, what):
        """What the server's standard input is for."""
        self.server.stdin.write(what)
        self.server.stdin.flush()

    def load(self, page="/"):
        """From the server, as who opens the address that it printed; what tests have changed in the page goes."""
        self.browser.get("about:blank")
        self.browser.get(self.address + page)

    def go(self, hash):
        """To another page by its address; of the one before nothing is left then."""
        self.assertNotEqual(self.hash(), hash)
        self.browser.execute_script(MARK + "location.hash = arguments[0]", hash)
        self.until(lambda: self.browser.execute_script(MADE_ANEW))

    def open_job(self, job="4711.0"):
        self.click_link(job)
        self.wait_drawn()

    def click(self, selector):
        """Also where the page makes it anew at that moment."""
        self.click_it(lambda: self.find_all(selector))

    def click_link(self, text):
        self.click_it(lambda: self.browser.find_elements(By.LINK_TEXT, text))

    def click_it(self, get):
        """The first of what `get()` finds."""
        self.until(lambda: (found := get()) and found[0].click() is None, [ElementClickInterceptedException])

    def scroll_to(self, element):
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)

    def tip(self, pointer):
        """What the tip says where these actions lead the pointer, and not what it has said before."""
        self.browser.execute_script("document.getElementById('tip').hidden = true")
        pointer.perform()
        return self.until(lambda: self.find("#tip").text)

    def hover(self, figure, share):
        plot = figure.find_element(By.CSS_SELECTOR, ".u-over")
        self.scroll_to(plot)
        offset = int(plot.size["width"] * (share - 0.5))
        return self.tip(ActionChains(self.browser).move_to_element_with_offset(plot, offset, 0))

    # --- How it looks

    def screen(self, width, height, dark=False):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def look(self, width, dark=False, height=1000):
        """The page in another window, complete."""
        self.browser.execute_script(
            "if (matchMedia('(prefers-color-scheme: dark)').matches !== arguments[0]) {" + MARK + "}", dark)
        self.screen(width, height, dark)
        self.until(lambda: self.browser.execute_script(MADE_ANEW))
        self.wait_to_fit(width)

    def shot(self, name):
        if SHOTS:
            self.browser.save_screenshot(f"{SHOTS}/{name}.png")


def main():
    if SHOTS:
        os.makedirs(SHOTS, exist_ok=True)
        print("screenshots in", SHOTS, file=sys.stderr)
    unittest.main(argv=[sys.argv[0], *os.environ.get("SONDE_WEB_TESTS", "").split()])
