"""The page of a step's tree (#/tree) in headless Chromium, for 4, 100, 10,000 and 100,000 nodes: what it says of nodes
and links, subtrees, search, keyboard, and what changes while the step runs.

tree_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from contrast import faint
from page import Page, main

STEP = "4714.0"
PAINTED = "return document.querySelector('.cells canvas').toDataURL()"


class TreePage(Page):
    NODES = 100

    @classmethod
    def setUpClass(cls):
        cls.ARGUMENTS = ["--tree", str(cls.NODES)]
        super().setUpClass()
        cls.browser.get(cls.address)  # and the token

    def setUp(self):
        self.screen(1400, 1000)
        self.open()

    def open(self, query=""):
        self.browser.get("about:blank")
        self.browser.get(f"{self.address.split('#')[0]}#/tree?job={STEP}{query}")
        self.wait_for(".tree-page h1")
        self.until(lambda: not self.find_all("#view > .empty"))

    # The page of a running step is made anew every few seconds: each of these is read at one moment.

    def legend(self):
        return self.browser.execute_script("""
            return Object.fromEntries([...document.querySelectorAll('.legend li')].map(
                (one) => [one.dataset.status, parseInt(one.textContent)]));""")

    def rows(self, name):
        return self.texts(f'table[aria-label="{name}"] tbody tr')

    def fact(self, name):
        return self.browser.execute_script("""
            return [...document.querySelectorAll('.tree-page .facts > div')]
                .find((one) => one.firstChild.textContent === arguments[0]).lastChild.textContent;""", name)

    def levels(self):
        return self.texts(".level h3")

    def look_at(self, name):
        for width, dark in ((1400, False), (1400, True), (390, False), (390, True)):
            self.look(width, dark)
            self.wait_for(".cells canvas")
            self.until(lambda: self.browser.execute_script(
                "return [...document.querySelectorAll('.cells canvas')].every((one) => one.clientWidth === one.parentNode.clientWidth)"))
            self.until_equal(lambda: faint(self.browser, ".sr-only, .skip, option"), [])
            self.shot(f"tree-{name}-{width}-{'dark' if dark else 'light'}")


class SmallTreeTest(TreePage):
    NODES = 4

    def test_every_node_has_its_name(self):
        answer = self.ask("/api/v1/tree", job=STEP)
        self.assertEqual(self.fact("Head"), answer["head"])
        self.assertEqual(self.fact("Nodes"), "4")
        self.assertEqual(self.levels(), ["Level 1: 4 nodes"])
        shown = self.rows("Sending to the head")
        self.assertEqual([row.split()[0] for row in shown], [node["host"] for node in answer["nodes"]])
        self.look_at("4")


class TreeTest(TreePage):
    def test_nodes_links_and_troubles_are_told(self):
        answer = self.ask("/api/v1/tree", job=STEP)
        self.assertEqual(self.legend()["good"], 96)
        self.assertEqual({name: n for name, n in self.legend().items() if name != "good"},
                         {"late": 1, "silent": 1, "away": 1, "lost": 1})
        self.assertEqual(self.fact("Links"), "16 over sockets, 83 over tcp")  # the lost one has none
        self.assertEqual(self.levels(), ["Level 1: 16 nodes, 84 below", "Level 2: 84 nodes"])
        rows = self.rows("Not as it should be")
        self.assertEqual([row.split()[0] for row in rows], ["node00100", "node00051", "node00034", "node00001"])
        for row, word in zip(rows, ("lost", "away", "silent", "late"), strict=True):
            self.assertIn(word, row)
        self.assertIn(answer["nodes"][99]["note"], rows[0])
        # 16 children: 17,000 bytes a second, as the server made them.
        self.until(lambda: self.rows("Sending to the head"))
        self.assertRegex(self.rows("Sending to the head")[1], r"^node00002 in time 0 ticks sockets 16 16\.6 KiB/s$")
        self.look_at("100")

    def test_a_subtree_is_opened_and_left(self):
        self.click('a[href$="open=node00002"]')
        self.until(lambda: self.find(".way").text.endswith("node00002"))
        self.assertEqual(self.levels(), ["Level 2: 16 nodes"])
        self.assertEqual([row.split()[0] for row in self.rows("Sending to node00002")],
                         [f"node{n:05}" for n in range(33, 49)])
        self.click(".way a")
        self.until(lambda: len(self.levels()) == 2)

    def test_a_host_is_searched(self):
        self.find(".tools input").send_keys("00042")
        self.until(lambda: "1 host: node00042" in self.find(".tree-page [role=status]").text)
        self.find(".tools input").send_keys(Keys.ENTER)
        self.until(lambda: self.find(".way [aria-current]").text == "node00042")
        self.assertEqual(self.texts(".way")[0].split()[-1], "node00042")
        self.until_in("Nobody sends to this node.", lambda: self.find(".tree-page").text)
        self.find(".tools input").send_keys("9999")
        self.until(lambda: "No host has" in self.find(".tree-page [role=status]").text)

    def test_the_keyboard_goes_from_cell_to_cell(self):
        cells = self.find(".cells")
        self.browser.execute_script("arguments[0].focus()", cells)
        cells.send_keys(Keys.ARROW_RIGHT)
        self.until(lambda: "node00002" in self.find("#tip").text)
        self.until_in("sends to the head over sockets", lambda: self.find("#tip").text)
        cells.send_keys(Keys.ENTER)
        self.until(lambda: self.find(".way").text.endswith("node00002"))

    def test_colours_are_of_what_is_chosen(self):
        before = self.browser.execute_script(PAINTED)
        Select(self.find(".tools select")).select_by_value("sent")
        self.until(lambda: self.browser.execute_script(PAINTED) != before)

    def test_an_unknown_step_is_said_in_words(self):
        self.expect_refusals(404)
        self.go("#/tree?job=1.0")
        self.until_in("no step 1.0", lambda: self.find("#message").text)


class RunningTreeTest(TreePage):
    def test_it_follows_the_step_to_its_end(self):
        self.assertEqual(self.legend()["lost"], 1)
        focused = "return document.activeElement.getAttribute('href')"
        self.browser.execute_script("document.querySelector('table[aria-label=\"Sending to the head\"] a').focus()")
        before = self.browser.execute_script(focused)
        self.tell("t")
        self.until(lambda: self.legend().get("lost") == 2)
        self.assertIn("node00001", before)
        self.assertEqual(self.browser.execute_script(focused), before)
        self.tell("e")
        self.until(lambda: "This step has ended, and its tree with it" in self.find(".tree-page").text)
        self.assertEqual(self.find_all(".cells:not([hidden] *)"), [])


class LargeTreeTest(TreePage):
    NODES = 10_000

    def test_ten_thousand_nodes_are_cells(self):
        self.assertEqual(self.levels(), ["Level 1: 16 nodes, 9984 below", "Level 2: 256 nodes, 9728 below",
                                         "Level 3: 4096 nodes, 5632 below", "Level 4: 5632 nodes"])
        self.assertEqual(self.legend()["good"], 9_996)
        self.assertLess(self.browser.execute_script("return document.querySelectorAll('.tree-page *').length"), 2_000)
        height = self.browser.execute_script("return document.querySelectorAll('.cells')[3].clientHeight")
        self.assertTrue(100 < height < 700, height)
        self.look_at("10000")
        self.look(1400)
        self.click('a[href$="open=node00002"]')
        self.until(lambda: self.levels() and self.levels()[0].startswith("Level 2: 16 nodes, "))
        self.look_at("10000-subtree")


class HugeTreeTest(TreePage):
    NODES = 100_000

    def test_a_hundred_thousand_nodes_are_cells(self):
        self.assertEqual(self.levels(), ["Level 1: 16 nodes, 99984 below", "Level 2: 256 nodes, 99728 below",
                                         "Level 3: 4096 nodes, 95632 below", "Level 4: 65536 nodes, 30096 below",
                                         "Level 5: 30096 nodes"])
        self.assertEqual(self.legend(), {"good": 99_996, "late": 1, "silent": 1, "away": 1, "lost": 1})
        self.assertEqual(len(self.rows("Not as it should be")), 4)
        self.assertLess(self.browser.execute_script("return document.querySelectorAll('.tree-page *').length"), 2_000)
        # A canvas that is too large for the browser would stay empty.
        for width in (1400, 390):
            self.look(width)
            self.until(lambda: self.browser.execute_script("""
                const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
                return [...document.querySelectorAll('.cells canvas')].every((one) => {
                  copy.clearRect(0, 0, 9, 9);
                  copy.drawImage(one, 0, Math.floor(one.height * 0.98) - 9, 9, 9, 0, 0, 9, 9);
                  return one.height <= 16384 && copy.getImageData(0, 0, 9, 9).data.some((value) => value !== 0);
                });"""))
        Select(self.find(".tools select")).select_by_value("late")
        self.find(".tools input").send_keys("99999")
        self.until(lambda: "1 host: node99999" in self.find(".tree-page [role=status]").text)
        self.look_at("100000")
        self.look(1400)
        self.click('a[href$="open=node00002"]')
        self.until(lambda: self.levels() and self.levels()[0].startswith("Level 2: 16 nodes, "))


if __name__ == "__main__":
    main()
