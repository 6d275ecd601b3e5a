"""Links from other origins to the page, such as Grafana's, in headless Chromium: they lead to the page with its data
where its user is logged in, and else to how to log in.

link_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

import http.server
import threading

from page import Page, main

STEP = "4711.0"


class Wiki(http.server.BaseHTTPRequestHandler):
    """A page with two links to a step: in this tab, and in a new one as Grafana does it."""

    def log_message(self, *_args):
        pass

    def do_GET(self):
        to = f"{self.server.sonde}/#/job/{STEP}"
        body = (f'<!doctype html><link rel="icon" href="data:,"><title>Wiki</title><a href="{to}">here</a> '
                f'<a href="{to}" target="_blank" rel="noopener">new</a> '
                f'<a href="{self.server.sonde}/#token=browser-test/job/{STEP}">token</a>').encode()
        self.server.heard.append(str(self.headers))
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class LinkTest(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wiki = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wiki)
        cls.wiki.sonde, cls.wiki.heard = cls.address.split("/#")[0], []
        thread = threading.Thread(target=cls.wiki.serve_forever)
        thread.start()
        cls.addClassCleanup(cls.wiki.server_close)
        cls.addClassCleanup(thread.join)
        cls.addClassCleanup(cls.wiki.shutdown)

    def follow(self, host, link):
        """In the tab that has the page then, or in a new one beside it."""
        self.browser.get(f"http://{host}:{self.wiki.server_port}/")
        before = set(self.browser.window_handles)
        self.click_link(link)
        if link == "new":
            self.until(lambda: len(self.browser.window_handles) == len(before) + 1)
            self.browser.switch_to.window((set(self.browser.window_handles) - before).pop())
        self.until(lambda: self.browser.current_url.startswith(self.wiki.sonde))

    def tearDown(self):
        """One tab, as it was found."""
        for other in self.browser.window_handles[1:]:
            self.browser.switch_to.window(other)
            self.browser.close()
        self.browser.switch_to.window(self.browser.window_handles[0])
        super().tearDown()

    def open_beside(self):
        """The page with the token, in a tab that stays."""
        before = set(self.browser.window_handles)
        self.browser.switch_to.new_window("tab")
        self.load()
        self.wait_for(".jobs a")
        self.browser.switch_to.window(before.pop())

    def test_they_lead_to_the_data_of_who_is_logged_in(self):
        # Another port is the same site, and the other name of the machine is another one.
        for host in ("127.0.0.1", "localhost"):
            for link in ("here", "token"):
                with self.subTest(host=host, link=link):
                    self.follow(host, link)
                    self.shows_the_step()
                    self.browser.refresh()
                    self.wait_drawn()

    def test_in_a_new_tab_they_lead_there_as_long_as_another_tab_has_the_page(self):
        self.expect_refusals(401)  # until the other tab has told the token
        self.open_beside()
        self.follow("127.0.0.1", "new")
        self.shows_the_step()
        self.browser.refresh()
        self.shows_the_step()

    def test_they_say_how_to_log_in_to_who_is_not(self):
        self.expect_refusals(401)
        self.forget_token()
        for host in ("127.0.0.1", "localhost"):
            for link in ("here", "new"):
                with self.subTest(host=host, link=link):
                    self.follow(host, link)
                    self.until_in("sonde url", lambda: self.find("#message").text)
                    self.assertEqual(self.find_all("main *"), [])
        for width, dark in ((1400, False), (1400, True), (390, False)):
            self.screen(width, 600, dark)
            self.shot(f"not-logged-in-{width}{'-dark' if dark else ''}")

    def test_who_is_told_so_and_opens_the_address_sees_the_step(self):
        self.expect_refusals(401)
        self.forget_token()
        self.follow("127.0.0.1", "here")
        self.until_in("sonde url", lambda: self.find("#message").text)
        # The address of the same page: nothing is loaded anew.
        self.browser.get(self.address + f"/job/{STEP}")
        self.shows_the_step()
        self.assertNotIn("token", self.browser.current_url)

    def test_no_other_port_of_the_host_hears_the_token(self):
        """Whoever listens there, when the server has ended, or beside it."""
        token = self.address.partition("#token=")[2]
        self.go(f"#/job/{STEP}")
        self.wait_drawn()
        self.wiki.heard.clear()
        for host in ("127.0.0.1", "localhost"):
            self.browser.get(f"http://{host}:{self.wiki.server_port}/")
            kept = self.browser.execute_script("return JSON.stringify(sessionStorage) + JSON.stringify(localStorage) + document.cookie")
            self.assertNotIn(token, kept)
        self.assertTrue(self.wiki.heard)
        self.assertEqual([heard for heard in self.wiki.heard if token in heard], [])
        self.assertEqual(self.browser.execute_cdp_cmd("Network.getAllCookies", {})["cookies"], [])

    def shows_the_step(self):
        self.until_in(STEP, lambda: self.find("main h1").text)
        self.wait_drawn()

    def forget_token(self):
        self.browser.execute_script("sessionStorage.clear()")
        self.browser.get("about:blank")


if __name__ == "__main__":
    main()
