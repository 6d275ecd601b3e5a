"""Every page against axe-core's rules (WCAG 2.1 A and AA, best practices), narrow and wide, in dark colours by the
rules about colours, and all of its controls by keyboard alone.

accessibility_test.py PAGE_SERVER API_SERVER LIST_SERVER [--shots DIR]
axe-core is a package of npm, which scripts/prepare fetches; without it the tests that need it are skipped.
Needs what page_test.py needs.
"""

import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

from page import Page, main  # takes --shots out of the words of the command line
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import made  # noqa: E402  (of tests/, for which the path had to be set)

# All of them; and those that look at colours, for the same page in others.
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
OF_COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
PAGE_SERVER, API_SERVER, LIST_SERVER = (*sys.argv[1:4], *[""] * 3)[:3]

# What each page is called, its server, its address, and what is there when it is complete; None: its figures.
FINISHED, RUNNING, NODES = "4711.0", "4712.0", "4713.0"
PAGES = {
    "list": ("list", "#/", ".list tbody tr"),
    "filters": ("list", "#/?state=failed&tag=campaign", ".chips .tag"),
    "job": ("page", "#/job/4711", ".jobs tbody tr"),
    "finished": ("page", f"#/job/{FINISHED}", None),
    "running": ("page", f"#/job/{RUNNING}", None),
    "nodes": ("nodes", f"#/job/{NODES}", None),
    "explorer": ("page", f"#/explore?job={FINISHED}&metric=node_load1&by=host", ".explore canvas"),
    "empty explorer": ("page", "#/explore", ".explore"),
    "alarms": ("api", f"#/alarms?job={RUNNING}", ".alarm-page h1"),
    "tree": ("tree", "#/tree?job=4714.0", ".cells canvas"),
    "ended tree": ("page", f"#/tree?job={FINISHED}", ".tree-page h1"),
    "diff": ("page", f"#/diff?profiles={FINISHED},{RUNNING}", "table[aria-label=Runs]"),
}
VIOLATIONS = """
const [rules, done] = arguments;
axe.run(document, {runOnly: rules, resultTypes: ['violations']}).then(
    (found) => done(found.violations.flatMap((rule) => rule.nodes.map(
        (node) => rule.id + ': ' + node.target.join(' ') + ': ' + node.failureSummary.split('\\n').slice(1).join(';')))),
    (error) => done([String(error)]));"""
# What is measured is one state of the page: it gets no answers until it goes on.
STILL = """
const ask = window.fetch, still = new Promise((go) => { window.goOn = go; });
window.fetch = async (...all) => { await still; return ask(...all); };"""
GO_ON = "window.goOn();"
OPENED = "document.querySelectorAll('main details:not(.menu)').forEach((one) => { one.open = true; });"
# Notes what gets the focus, and what of it one cannot see that it has it.
NOTES_FOCUS = """
window.reached = new Set();
window.unmarked = [];
document.addEventListener('focusin', ({target}) => {
    const style = getComputedStyle(target);
    window.reached.add(target);
    if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 1) {
        window.unmarked.push(target.outerHTML.slice(0, 150));
    }
});"""
# Tab has to reach every control that is there, also one that was made anew since; of radio buttons of one name the
# browser stops at one. Gives those that are left.
LEFT = """
return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((one) => one.checkVisibility({visibilityProperty: true}) && !one.disabled && one.tabIndex >= 0 &&
                     !(one.type === 'radio' && !one.checked) && !window.reached.has(one))
    .map((one) => one.outerHTML.slice(0, 150));"""


class Served:
    """A server of made steps; its address with the token."""

    def __init__(self, *words, token=""):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[0]
        if token:
            self.address += f"/#token={token}"

    def end(self):
        self.process.communicate("")


class AccessibilityTest(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        archive = tempfile.TemporaryDirectory(prefix="sonde-axe-", ignore_cleanup_errors=True)
        cls.addClassCleanup(archive.cleanup)
        others = {"nodes": Served(PAGE_SERVER, "--nodes", "4"), "tree": Served(PAGE_SERVER, "--tree", "100"),
                  "api": Served(API_SERVER, token="api-test"), "list": Served(LIST_SERVER, archive.name, "60")}
        for one in others.values():
            cls.addClassCleanup(one.end)
        cls.addresses = {"page": cls.address, **{name: one.address for name, one in others.items()}}
        for address in cls.addresses.values():
            cls.browser.get(address)  # and the token

    def setUp(self):
        self.screen(1400, 1000)

    def axe(self):
        """Its script."""
        place = made.place("axe-core")
        if place is None:
            self.skipTest(made.why("axe-core"))
        return (place / "axe.min.js").read_text()

    def open(self, page):
        server, where, complete = PAGES[page]
        self.browser.get("about:blank")
        self.browser.get(urllib.parse.urljoin(self.addresses[server], "/" + where))
        self.wait_complete(complete)

    def wait_complete(self, complete):
        if complete is None:
            return self.wait_drawn()
        self.wait_for(complete)
        self.until(lambda: not self.find_all("#view > .empty, main [aria-busy=true]"))

    def broken(self, rules):
        self.browser.execute_script(STILL + OPENED)
        return self.browser.execute_async_script(VIOLATIONS, rules)

    def test_no_rule_is_broken(self):
        axe = self.axe()
        for page, width in [(page, width) for page in PAGES for width in (1400, 390)]:
            with self.subTest(page, width=width):
                self.screen(width, 1000)
                self.open(page)
                self.wait_to_fit(width)
                self.browser.execute_script(axe)
                self.assertEqual(self.broken(RULES), [])
                self.shot(f"axe-{page}-{width}-light")
                self.browser.execute_script(GO_ON)
                self.look(width, dark=True)
                self.wait_complete(PAGES[page][2])
                self.assertEqual(self.broken(OF_COLOURS), [], "in dark colours")
                self.shot(f"axe-{page}-{width}-dark")

    def test_a_broken_rule_is_found(self):
        axe = self.axe()
        self.open("job")
        self.browser.execute_script(axe)
        self.browser.execute_script("""
            document.querySelector('main').append(Object.assign(document.createElement('button'), {id: 'mute'}));""")
        found = self.broken(RULES)
        self.assertTrue([one for one in found if one.startswith("button-name: #mute")], found)

    def test_tab_reaches_every_control_and_marks_it(self):
        for page in PAGES:
            with self.subTest(page):
                self.open(page)
                self.browser.execute_script(STILL + "document.activeElement.blur();" + NOTES_FOCUS)
                left = self.browser.execute_script(LEFT)
                for _ in range(3 * len(left) // 20 + 2):
                    ActionChains(self.browser).send_keys(Keys.TAB * 20).perform()
                    left = self.browser.execute_script(LEFT)
                    if not left:
                        break
                self.assertEqual((left, self.browser.execute_script("return window.unmarked")), ([], []))


if __name__ == "__main__":
    main()
