"""The page of alarms (#/alarms) in headless Chromium: rules added, tried and removed, what was raised.

alarms_test.py PAGE_SERVER API_SERVER [--shots DIR]. Needs Debian's chromium, chromium-driver and
python3-selenium.
"""

import re
import urllib.parse

from explorer_page import API_SERVER, STEP, UNNAMED, Explorer  # first: it says where page is
from page import main
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select


class AlarmsTest(Explorer):
    SERVER = API_SERVER
    TOKEN = "api-test"
    RUNNING = "4712.0"

    def open(self, job=RUNNING):
        self.browser.get("about:blank")
        self.browser.get(f"{self.server_url}/#/alarms?job={job}")
        self.wait_for(".alarm-page h1")
        if self.find("#refresh").is_selected():
            self.find("#refresh").click()

    def setUp(self):
        super().setUp()
        for rules in self.get(f"/alarms/list?job={self.RUNNING}").values():
            for name in {rule["name"] for rule in rules}:
                self.get("/alarms/del", {"name": name, "target": self.RUNNING})

    def rules(self):
        return self.texts("table.rules tbody tr")

    def fill(self, name, rule):
        for field, text in (("name", name), ("rule", rule)):
            control = self.find(f"input[name={field}]")
            control.clear()
            control.send_keys(text)

    def press(self, text):
        (button,) = [one for one in self.find_all(".rule-form button") if one.text == text]
        self.scroll_to(button)
        button.click()

    def test_a_rule_is_put_together_added_shown_and_removed(self):
        self.open()
        self.assertIn("No rules", self.find(".alarm-page").text)
        field = self.control("Metric of the rule")
        field.send_keys("node_load1")
        self.wait_for("[role=option]")
        field.send_keys(Keys.ENTER)
        self.assertIn("Load average over one minute. A gauge, a plain number.", self.find(".rule-form").text)
        Select(self.find("select[name=who]")).select_by_value("max")
        self.find("input[name=bound]").send_keys("33")
        Select(self.find("select[name=severity]")).select_by_value("critical")
        self.find("input[name=message]").send_keys("too much: {value}")
        rule = self.find("input[name=rule]")
        self.assertEqual(rule.get_attribute("value"), 'node_load1 max > 33 critical message "too much: {value}"')
        self.find("input[name=name]").send_keys("hot")
        self.press("Add rule")
        self.until(lambda: self.rules())
        (shown,) = self.rules()
        (known,) = self.get(f"/alarms/list?job={self.RUNNING}")[self.RUNNING]
        self.assertEqual((known["name"], known["active"], known["node"], known["rank"]), ("hot", True, "n1", 3))
        self.assertRegex(shown, rf"hot raised for .* too much: 50 {known['value']} task 3 on n1 "
                                rf"{re.escape(known['rule'])} critical Remove")
        self.assertIn("The head watches hot now", self.find(".rule-form").text)
        self.fill("quiet", "node_load1 < 1 for 5s info")
        self.press("Add rule")
        self.until(lambda: len(self.rules()) == 2)
        self.assertTrue(self.rules()[0].startswith("hot raised"))  # first what is raised
        self.assertIn("2 rules, 1 raised", self.find(".alarm-page").text)
        self.shots_of("alarms")
        self.look(1280, height=1100)
        self.open()
        self.wait_for('[aria-label="Remove the rule hot"]')
        # In one go, since the list may be made anew in between.
        self.browser.execute_script("""document.querySelector('[aria-label="Remove the rule hot"]').click()""")
        self.until(lambda: len(self.rules()) == 1)
        self.assertEqual([rule["name"] for rule in self.get(f"/alarms/list?job={self.RUNNING}")[self.RUNNING]], ["quiet"])

    def test_the_server_says_what_is_wrong_with_a_rule(self):
        self.open()
        for name, rule in (("hot", "node_load1 >"), ("a:b", "node_load1 > 1"), ("", "node_load1 > 1")):
            expected = self.get("/alarms/add", {"name": name, "target": self.RUNNING, "rule": rule})["error"]["message"]
            self.fill(name, rule)
            self.press("Add rule")
            self.until(lambda words=expected: self.find(".rule-form [role=alert]").text == words)
        self.assertEqual(self.rules(), [])
        self.browser.get_log("browser")  # Chromium logs statuses of 4xx itself

    def test_what_was_raised_is_told_with_node_and_task(self):
        self.open(STEP)
        rows = [row.text for row in self.find_all("section[aria-label=Alarms] tbody tr")]
        self.assertRegex(rows[0], r"^straggler it computes far less than the others: 0.31 s/s task 3 on n2 .*, until the end$")
        self.assertRegex(rows[1], r"^memory_soon .* n3 .* 12 s$")
        self.assertEqual(self.find_all("table.rules"), [])  # it has ended
        self.assertFalse([one for one in self.find_all(".rule-form button") if one.text == "Add rule"])

    def test_a_rule_is_tried_on_a_step(self):
        self.open(STEP)
        rule = "node_network_receive_bytes_total{device=ib0} any rate > 320M for 5s"
        self.fill("fast", rule)
        self.press("Try it on this step")
        self.until(lambda: self.find_all(".verdict"))
        answer = self.get("/api/v1/alarms/try?" + urllib.parse.urlencode({"job": STEP, "rule": rule, "name": "fast"}))
        self.assertGreater(answer["raised"], 3)
        times = f"It would have been raised {answer['raised']} times, for "
        self.assertTrue(self.find(".verdict").text.startswith(times), self.find(".verdict").text)
        rows = self.find_all("section[aria-label=Trial] tbody tr")
        self.assertEqual(len(rows), answer["raised"])
        newest = answer["alarms"][-1]
        self.assertIn(newest["text"], rows[0].text)
        self.assertIn(newest["by"]["host"], rows[0].text)

        def again():
            if not self.find_all(".verdict"):
                self.wait_for(".rule-form")
                self.fill("fast", rule)
                self.press("Try it on this step")
                self.wait_for(".verdict")
        self.shots_of("trial", again)
        self.look(1280, height=1100)
        again()
        self.fill("calm", "node_load1 max > 1000")
        self.press("Try it on this step")
        self.until(lambda: self.find_all(".verdict"))
        self.assertIn("It would not have been raised: looked at 600 ticks.", self.find(".verdict").text)
        self.fill("none", "nothing_total > 1")
        self.press("Try it on this step")
        self.until(lambda: self.find_all(".verdict"))
        self.assertIn("The step has no metric nothing_total.", self.find(".verdict").text)

    def test_the_answer_to_a_rule_is_not_shown_below_another(self):
        self.open(STEP)
        for rule, shown in (("node_load1 max > 1000", ".verdict"), ("node_load1 >", ".rule-form [role=alert]")):
            self.fill("calm", rule)
            self.browser.execute_script("""
                const ask = window.fetch;
                window.fetch = async (...words) => {
                  window.fetch = ask;
                  await new Promise((go) => { window.letGo = go; });
                  return ask(...words);
                };""")
            self.press("Try it on this step")
            self.until(lambda: self.browser.execute_script("return Boolean(window.letGo)"))
            self.find("input[name=rule]").send_keys("1 for 5s")
            self.browser.execute_script("window.letGo(); delete window.letGo")
            button = next(one for one in self.find_all(".rule-form button") if one.text == "Try it on this step")
            self.until(button.is_enabled)
            self.assertFalse([one for one in self.find_all(shown) if one.is_displayed()], rule)
            self.assertEqual(self.browser.switch_to.active_element.get_attribute("name"), "rule")
        self.browser.get_log("browser")  # Chromium logs statuses of 4xx itself

    def test_everything_has_a_name_and_nothing_comes_from_elsewhere(self):
        self.open()
        self.assertEqual(self.browser.execute_script(UNNAMED), [])
        self.assert_nothing_from_elsewhere()

    def test_another_step(self):
        self.open()
        field = self.control("Another step")
        field.send_keys(STEP)
        self.wait_for("[role=option]")
        field.send_keys(Keys.ENTER)
        self.until(lambda: STEP in self.find(".alarm-page h1").text)
        self.assertEqual(self.hash(), f"#/alarms?job={STEP}")


if __name__ == "__main__":
    main()
