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
                f'<a href="{self.server.sonde}/?token=of-an-earlier-step#/job/{STEP}">old</a> '
                f'<a href="{self.server.sonde}/?token=browser-test#/job/{STEP}">token</a>').encode()
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
        cls.wiki.sonde = cls.address.split("/?")[0]
        thread = threading.Thread(target=cls.wiki.serve_forever)
        thread.start()
        cls.addClassCleanup(cls.wiki.server_close)
        cls.addClassCleanup(thread.join)
        cls.addClassCleanup(cls.wiki.shutdown)

    def follow(self, host, link):
        """In the tab that has the page then; the others are closed."""
        self.browser.get(f"http://{host}:{self.wiki.server_port}/")
        before = self.browser.current_window_handle
        self.click_link(link)
        if link == "new":
            self.until(lambda: len(self.browser.window_handles) == 2)
            self.browser.close()
            self.browser.switch_to.window(next(one for one in self.browser.window_handles if one != before))
        self.until(lambda: self.browser.current_url.startswith(self.wiki.sonde))

    def test_they_lead_to_the_data_of_who_is_logged_in(self):
        # Another port is the same site, and the other name of the machine is another one.
        for host in ("127.0.0.1", "localhost"):
            for link in ("here", "new", "old", "token"):
                with self.subTest(host=host, link=link):
                    self.follow(host, link)
                    self.until_in(STEP, lambda: self.find("main h1").text)
                    self.wait_drawn()
                    self.browser.refresh()
                    self.wait_drawn()

    def test_they_say_how_to_log_in_to_who_is_not(self):
        self.expect_refusals(401)
        self.browser.delete_all_cookies()
        for host in ("127.0.0.1", "localhost"):
            for link in ("here", "new", "old"):
                with self.subTest(host=host, link=link):
                    self.follow(host, link)
                    self.until_in("sonde url", lambda: self.find("#message").text)
                    self.assertEqual(self.find_all("main *"), [])
        for width, dark in ((1400, False), (1400, True), (390, False)):
            self.screen(width, 600, dark)
            self.shot(f"not-logged-in-{width}{'-dark' if dark else ''}")


if __name__ == "__main__":
    main()
