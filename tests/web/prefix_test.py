"""The page behind proxies that a browser asks by a path of their own, in headless Chromium: every page loads, a
running step's ticks arrive, and nothing is asked outside of that path.

prefix_test.py PAGE_SERVER LIST_SERVER [--shots DIR]
The proxies are one of this test, which takes its prefix off as code-server's /proxy/PORT/ does or keeps it as
/absproxy/PORT/ does, and jupyter-server-proxy, in an environment that scripts/prepare makes; without it that
one is left out. SONDE_CODE_SERVER names code-server itself, its file out/node/entry.js:
its package at npm builds for minutes, so it is left out without that. Needs what page_test.py needs.
"""

import contextlib
import http.client
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from page import PATIENCE, Page, main  # takes --shots out of the words of the command line

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import made  # noqa: E402  (of tests/, for which the path had to be set)

LIST_SERVER = (*sys.argv[2:3], "")[0]
FINISHED, RUNNING = "4711.0", "4712.0"
PAGES = {
    f"#/job/{FINISHED}": "figure canvas",
    f"#/explore?job={FINISHED}&metric=node_load1&by=host": ".explore canvas",
    f"#/alarms?job={FINISHED}": ".alarm-page h1",
    f"#/tree?job={FINISHED}": ".tree-page h1",
    f"#/diff?profiles={FINISHED},{RUNNING}": "table[aria-label=Runs]",
}


class Gate(http.server.BaseHTTPRequestHandler):
    """Passes on what is asked below the prefix."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def serve(self):
        gate = self.server
        if not self.path.startswith(gate.prefix + "/"):
            gate.outside.append(self.path)
            return self.send_error(404)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = self.path if gate.keeps else self.path[len(gate.prefix):]
        sonde = http.client.HTTPConnection(gate.sonde, timeout=PATIENCE)
        with contextlib.closing(sonde):
            sonde.request(self.command, target, body, dict(self.headers))
            answer = sonde.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")  # which is the end of a stream
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(part)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = serve


class GateServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, sonde, prefix, keeps):
        super().__init__(("127.0.0.1", 0), Gate)
        self.sonde, self.prefix, self.keeps, self.outside = sonde, prefix, keeps, []
        self.address = f"http://127.0.0.1:{self.server_port}{prefix}/"

    def handle_error(self, request, client_address):
        """A browser that leaves a page does not wait for its answers, and a stream ends when the server does."""
        if not isinstance(sys.exc_info()[1], (OSError, http.client.HTTPException)):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def gate_to(address, prefix, keeps):
    server = GateServer(address.split("/")[2], prefix, keeps)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def jupyter_server(program, base):
    """Jupyter's server below `base`, as JupyterHub starts it for each user; its address."""
    with tempfile.TemporaryDirectory(prefix="sonde-jupyter-", ignore_cleanup_errors=True) as home:
        environment = {**os.environ, "HOME": home, "JUPYTER_RUNTIME_DIR": home, "JUPYTER_CONFIG_DIR": home,
                       "PATH": f"{program.parent}:{os.environ['PATH']}"}
        words = [program, "server", "--no-browser", "--allow-root", "--ip", "127.0.0.1", "--port", "0", f"--ServerApp.base_url={base}",
                 "--IdentityProvider.token=jupyters-own", f"--ServerApp.root_dir={home}"]
        process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                if found := re.search(r"http://[^ ]+:(\d+)/", line):
                    break
            else:
                raise AssertionError("Jupyter's server does not start")
            # What it says must not fill the pipe.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield f"http://127.0.0.1:{found.group(1)}{base}"
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()


@contextlib.contextmanager
def code_server(program):
    """VS Code in a browser; its address."""
    with tempfile.TemporaryDirectory(prefix="sonde-code-", ignore_cleanup_errors=True) as home:
        words = ["node", program, "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry",
                 "--disable-update-check"]
        process = subprocess.Popen(words, env={**os.environ, "HOME": home}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        try:
            for line in process.stdout:
                if found := re.search(r"listening on (http://[^ ]+:\d+)", line):
                    break
            else:
                raise AssertionError("code-server does not start")
            # What it says must not fill the pipe.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield found.group(1)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


class PrefixTest(Page):
    def setUp(self):
        self.screen(1400, 1000)
        self.token = self.address.partition("#")[2]
        self.port = re.search(r":(\d+)/", self.address).group(1)

    def requested(self):
        """All that the page has asked, its own address too."""
        return self.browser.execute_script(
            "return [location.href, ...performance.getEntriesByType('resource').map((one) => one.name)]")

    def go_round(self, below):
        """All pages, from the address with the token; `below`: the address of what is proxied."""
        self.browser.get(f"{below}#{self.token}")
        self.keep_names()
        self.wait_for(".list tbody tr")
        self.assertEqual(self.browser.current_url.split("#")[0], below)
        for where, complete in PAGES.items():
            with self.subTest(where):
                self.go(where)
                self.wait_for(complete)
        self.assertFalse(self.find("#message").is_displayed(), self.find("#message").text)
        self.watch_running()
        self.change_a_tag()
        self.assertEqual([one for one in self.requested() if not one.startswith((below, "data:"))], [])
        links = self.browser.execute_script("return [...document.querySelectorAll('a[href]')].map((one) => one.href)")
        self.assertEqual([one for one in links if not one.startswith(below)], [])

    def watch_running(self):
        """Ticks arrive as the server tells them."""
        self.go(f"#/job/{RUNNING}")
        self.wait_drawn()
        now = self.find('figure[data-metric="node_load1"] figcaption span')
        before = now.text

        def changed():
            self.tell("t")
            return now.text != before
        self.until(changed)

    def change_a_tag(self):
        """A request that writes."""
        self.go(f"#/job/{FINISHED}")
        self.wait_drawn()
        name = f"behind-{len(self.find_all('.tags .tag'))}"
        self.find(".tags input").send_keys(name, "\n")
        self.until_in(name, lambda: self.find(".tags").text)

    @contextlib.contextmanager
    def gate_to(self, address, prefix, keeps):
        """A proxy, which the page has left before it ends: it would ask on."""
        with gate_to(address, prefix, keeps) as gate:
            yield gate
            self.browser.get("about:blank")

    def test_a_proxy_that_takes_its_prefix_off(self):
        with self.gate_to(self.address, f"/code/proxy/{self.port}", keeps=False) as gate:
            self.go_round(gate.address)
        self.assertEqual(gate.outside, [])

    def test_a_proxy_that_keeps_its_prefix(self):
        with self.gate_to(self.address, f"/code/absproxy/{self.port}", keeps=True) as gate:
            self.go_round(gate.address)
        self.assertEqual(gate.outside, [])

    def test_code_server(self):
        """It compresses answers, which must not hold back the running step's."""
        program = os.environ.get("SONDE_CODE_SERVER")
        if not program:
            self.skipTest("SONDE_CODE_SERVER does not name code-server's out/node/entry.js")
        with code_server(program) as address:
            for kind in ("proxy", "absproxy"):
                with self.subTest(kind):
                    self.go_round(f"{address}/{kind}/{self.port}/")
            self.browser.get("about:blank")

    def test_two_servers_behind_one_proxy_keep_their_tokens_apart(self):
        """They are of one origin then."""
        self.expect_refusals(401)
        with self.gate_to(self.address, "/user/ada/proxy/4242", keeps=False) as gate:
            self.browser.get(f"{gate.address}#token=another-servers")
            self.until_in("not logged in", lambda: self.find("#message").text)
            gate.prefix = "/user/ada/proxy/4343"
            self.browser.get(gate.address.replace("4242", "4343") + f"#{self.token}")
            self.wait_for(".list tbody tr")
            gate.prefix = "/user/ada/proxy/4242"
            self.browser.get(gate.address)
            self.until_in("not logged in", lambda: self.find("#message").text)

    def test_the_archive_behind_a_proxy(self):
        with tempfile.TemporaryDirectory(prefix="sonde-prefix-") as archive:
            steps = subprocess.Popen([LIST_SERVER, archive, "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                address = steps.stdout.readline().strip()
                for prefix, keeps in (("/proxy/4243", False), ("/absproxy/4243", True)):
                    with self.gate_to(address, prefix, keeps) as gate:
                        self.browser.get(f"{gate.address}#{address.partition('#')[2]}")
                        self.click(".list td.id a")
                        self.until(lambda: "#/job/" in self.browser.current_url and self.find_all(".title h1"))
                        self.assertEqual([one for one in self.requested() if not one.startswith((gate.address, "data:"))], [])
                    self.assertEqual(gate.outside, [])
            finally:
                steps.communicate("")

    def test_jupyter_server_proxy(self):
        place = made.place("jupyter-server")
        if place is None:
            self.skipTest(made.why("jupyter-server"))
        with jupyter_server(place / "bin" / "jupyter", "/user/ada/") as jupyter:
            self.browser.get(f"{jupyter}login?token=jupyters-own")  # as who is logged in
            self.browser.get_log("browser")  # of Jupyter's own page
            for below in (f"{jupyter}proxy/{self.port}/", f"{jupyter}proxy/absolute/{self.port}/"):
                with self.subTest(below):
                    self.go_round(below)
            self.browser.get("about:blank")


if __name__ == "__main__":
    main()
