"""metric-proxy's own web pages over Sonde's endpoints, in headless Chromium: each shows the steps,
their metrics and plots, without an error of its scripts and without a request that fails.

proxy_pages_test.py API_SERVER [--shots DIR]
The pages are metric-proxy's and not in this repository: SONDE_METRIC_PROXY_PAGES names the folder
`static` of a checkout; without it all is skipped. Those of its continuation with FTIO are tried where
they are there. What the pages load from a CDN are packages of npm, which scripts/prepare fetches; without
them the tests that need them are skipped.
"""

import contextlib
import http.client
import http.server
import json
import mimetypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from page import PATIENCE, PATIENCE_THEN, SERVER, SHOTS, start_browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import made  # noqa: E402  (of tests/, for which the path had to be set)

PAGES = os.environ.get("SONDE_METRIC_PROXY_PAGES", "")
TOKEN = "api-test"  # the server's

CDN = "https://cdn.jsdelivr.net/npm/"
# What stands there by the name that a page uses, as an item of scripts/prepare and a file.
FROM_NPM = {
    "mermaid@10": ("mermaid", ""),
    "date-fns": ("date-fns", "cdn.min.js"),
    "chartjs-adapter-date-fns": ("chartjs-adapter-date-fns",
                                 "dist/chartjs-adapter-date-fns.bundle.min.js"),
}


class Gate(http.server.BaseHTTPRequestHandler):
    """The pages as metric-proxy serves them, what they take from the CDN, and Sonde for the rest."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    sonde = ""
    asked = []  # (method, target, body, status)

    def log_message(self, *_args):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def from_disk(self, path):
        """A file's text, with metric-proxy's header and footer around a page; None: no such file."""
        if path.startswith("/npm/"):
            name, _, rest = path[len("/npm/"):].partition("/")
            package, entry = FROM_NPM[name]
            return (made.place(package) / (rest or entry)).read_bytes()
        file = pathlib.Path(PAGES) / path[1:]
        if not file.is_file():
            return None
        text = file.read_bytes()
        if file.suffix == ".html":
            head, foot = ((file.parent / name).read_bytes()
                          for name in ("header.html.in", "footer.html.in"))
            text = (head + text + foot).replace(CDN.encode(), b"/npm/")
        return text

    def serve(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        path = urllib.parse.urlsplit(self.path).path
        text = None
        if self.command == "GET":
            text = self.from_disk("/index.html" if path == "/" else urllib.parse.unquote(path))
        if text is not None:
            kind = "text/javascript" if path.endswith((".js", ".mjs")) or path.startswith("/npm/") \
                else mimetypes.guess_type(path)[0] or "text/html"
            self.asked.append((self.command, self.path, body, 200))
            return self.answer(200, kind, text)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if "Content-Type" in self.headers:
            headers["Content-Type"] = self.headers["Content-Type"]
        sonde = http.client.HTTPConnection(self.sonde, timeout=PATIENCE)
        with contextlib.closing(sonde):
            sonde.request(self.command, self.path, body, headers)
            answer = sonde.getresponse()
            self.asked.append((self.command, self.path, body, answer.status))
            return self.answer(answer.status, answer.headers["Content-Type"] or "", answer.read())

    do_GET = do_POST = do_PUT = serve


class GateServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A browser that leaves a page does not wait for its answers."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


# Pages ask this before their lists have come, with nothing chosen; metric-proxy refuses it too.
def nothing_chosen(method, target, body):
    if (method, target) == ("GET", "/trace/metrics?job="):
        return True
    if target in ("/trace/size?jobid=", "/trace/ftio?jobid=&metricid="):
        return True
    return (method, target) == ("POST", "/trace/plot") and not all(
        json.loads(body)[name] for name in ("jobid", "filter"))


@unittest.skipUnless(PAGES, "needs metric-proxy's pages: SONDE_METRIC_PROXY_PAGES=DIR names its "
                            "folder static")
class ProxyPages(unittest.TestCase):
    patience = PATIENCE  # of all

    @classmethod
    def setUpClass(cls):
        cls.gate = GateServer(("127.0.0.1", 0), Gate)
        cls.addClassCleanup(cls.gate.server_close)
        thread = threading.Thread(target=cls.gate.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        cls.addClassCleanup(thread.join)
        cls.addClassCleanup(cls.gate.shutdown)
        cls.address = f"http://127.0.0.1:{cls.gate.server_port}"
        cls.profile = tempfile.TemporaryDirectory(prefix="sonde-pages-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.profile.cleanup)
        cls.browser = start_browser(cls.profile.name)
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_page_load_timeout(PATIENCE)
        cls.browser.set_window_size(1300, 1100)

    def setUp(self):
        # A Sonde for each test: its running step has no new values, so after some seconds a node has
        # none of now.
        path = f"{pathlib.Path(__file__).parent / 'standins'}:{os.environ['PATH']}"
        sonde = subprocess.Popen([SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "PATH": path})
        self.addCleanup(sonde.communicate, "")
        Gate.sonde = sonde.stdout.readline().split()[0].removeprefix("http://")
        Gate.asked.clear()

    def tearDown(self):
        if SHOTS:
            self.browser.save_screenshot(f"{SHOTS}/{self._testMethodName}.png")
        # The page asks again and again: it is left before it is judged.
        self.browser.get("about:blank")
        said = self.browser.get_log("browser")  # read in any case: else the next test had it
        failed = [one for one in Gate.asked if one[3] >= 400 and not nothing_chosen(*one[:3])]
        self.assertEqual(failed, [])
        refused = sum(one[3] >= 400 for one in Gate.asked)
        bad = [line["message"] for line in said if line["level"] in ("SEVERE", "WARNING")]
        # Of each refused request Chromium tells, and often the page besides.
        told = [text for text in bad if refused and (
            "the server responded with a status of 400" in text
            or "endpoint is not defined" in text      # of its own words about the failure
            or "Cannot read properties of undefined (reading '0')" in text  # of points that did not come
            or "data.forEach is not a function" in text)]
        self.assertEqual([text for text in bad if text not in told], [])

    def open(self, page):
        self.browser.get(self.address + page)

    def needs(self, *names):
        for name in names:
            package = FROM_NPM[name][0]
            if made.place(package) is None:
                self.skipTest(made.why(package))

    def needs_page(self, name):
        if not (pathlib.Path(PAGES) / name).is_file():
            self.skipTest(f"there is no {name} among these pages")

    def until(self, condition):
        wait = WebDriverWait(self.browser, ProxyPages.patience, poll_frequency=0.05)
        try:
            return wait.until(lambda _: condition())
        except TimeoutException:
            ProxyPages.patience = PATIENCE_THEN
            self.fail(f"in vain on {self.browser.current_url}: {self.text('body')[:2000]}")

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def value(self, selector):
        """Of a field; None as long as it is not there."""
        return self.browser.execute_script(
            "return document.querySelector(arguments[0])?.value", selector)

    def type(self, selector, value):
        field = self.find(selector)
        field.clear()
        field.send_keys(value)

    def text(self, selector):
        return self.browser.execute_script(
            "return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def rows(self, selector):
        """The cells' texts of a table's rows."""
        return self.browser.execute_script(
            """return [...document.querySelectorAll(arguments[0] + ' tr')].map((row) =>
                 [...row.cells].map((cell) => cell.innerText.trim()));""", selector)

    def options(self, selector):
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0] + ' option')].map((one) => one.value)",
            selector)

    # In one script each: pages make their lists anew all the time.
    def choose(self, selector, value):
        self.until(lambda: self.browser.execute_script("""
            const list = document.querySelector(arguments[0]);
            if (![...list.options].some((one) => one.value === arguments[1])) return false;
            list.value = arguments[1];
            list.dispatchEvent(new Event('change', {bubbles: true}));
            return true;""", selector, value))

    def press(self, selector):
        self.browser.execute_script("document.querySelector(arguments[0]).click()", selector)

    def chart(self, canvas, what):
        return self.browser.execute_script(
            f"const chart = Chart.getChart(arguments[0]); return chart ? {what} : null", canvas)

    # ---- The pages ----

    def test_index(self):
        self.open("/")
        self.assertIn("About Metric Proxy", self.text("main"))
        self.assertIn("Jobs", self.text("nav"))

    def test_jobs(self):
        self.open("/jobs.html")
        rows = self.until(lambda: (rows := self.rows("#jobTable"))[1:] and rows)
        jobs = {row[0].split(" (")[0]: row for row in rows[1:]}
        self.assertEqual(list(jobs), ["main", "Node: n1", "Node: n2", "4712.0"])
        self.assertEqual(jobs["4712.0"][1:7], ["./cavity --grid 512", "4", "n[1-2]", "main", "balloon",
                                               "/home/ada/runs"])
        # Its links lead somewhere.
        for link in ("Prometheus", "Data"):
            self.open("/jobs.html")
            self.until(lambda: self.rows("#jobTable")[1:])
            self.browser.find_elements(By.LINK_TEXT, link)[-1].click()
            self.until(lambda: "node_load1" in self.text("body"))

    def test_job_view(self):
        for query, state in (("job=4712.0", "running"), ("profile=4711.0", "completed")):
            self.open("/job_view.html?" + query)
            rows = self.until(lambda: (rows := self.rows("#counters-table"))[1:] and rows)
            described = dict(row for row in self.rows("#desc-table")[1:])
            self.assertEqual(described["jobid"], query.split("=")[1])
            self.assertEqual(described["state"], state)
            counters = {row[0]: row for row in rows[1:] if len(row) == 3}
            self.assertRegex(counters["node_load1"][2], r"AVG: [\d.]+\s+Min: [\d.]+\s+Max: [\d.]+")
            self.assertEqual(counters["node_load1"][1], "Load average over one minute.")
            self.assertGreater(float(counters["solver_iterations_total"][2]), 1000)
            for row in counters.values():
                self.assertNotRegex(row[2], "NaN|undefined|null|^$", row[0])
            self.assertEqual(self.text("#error-message"), "")

    def test_job_view_of_main_and_a_node(self):
        for job in ("main", "Node: n1"):
            self.open("/job_view.html?job=" + urllib.parse.quote(job))
            rows = self.until(lambda: (rows := self.rows("#counters-table"))[1:] and rows)
            self.assertEqual(dict(self.rows("#desc-table")[1:])["jobid"], job)
            self.assertIn("node_load1", [row[0] for row in rows])
            self.assertEqual(self.text("#error-message"), "")

    def test_alarms(self):
        self.open("/alarms.html")
        self.choose("#target", "4712.0")
        self.choose("#metric", "node_load1")
        self.find("#name").send_keys("too_busy")
        self.find("#value").send_keys("3.5")
        self.find("#createAlarmForm input[type=submit]").click()
        for kind in ("#activeAlarms", "#allAlarms"):
            self.until(lambda kind=kind: "too_busy" in self.text(kind))
            self.assertIn("main", self.text(kind))  # the only step that runs
            self.assertRegex(self.text(kind), r"Metric: node_load1\s+Operator: More 3.5\s+"
                                              r"Current: 50\s+Active: Yes")
        if SHOTS:
            self.browser.save_screenshot(f"{SHOTS}/alarms_raised.png")
        self.press("#allAlarms button")
        self.until(lambda: any(one[1] == "/alarms/del" for one in Gate.asked))
        self.until(lambda: self.options("#target") and "too_busy" not in self.text("main"))

    def draws(self, metric, derivate):
        """The chart's numbers of a metric."""
        if self.find("#derivatebox").is_selected() != derivate:
            self.find("#derivatebox").click()
        self.choose("#metric", metric)
        asked = len(Gate.asked)
        self.until(lambda: any(
            one[1] == "/trace/plot" and json.loads(one[2])["filter"] == metric
            and json.loads(one[2])["derivate"] == derivate for one in Gate.asked[asked:]))
        return self.until(lambda: self.chart(
            "myChart", f"chart.data.datasets[0].label === {json.dumps(metric)} && "
                       "chart.data.datasets[0].data.map((one) => one.y ?? one)"))

    def test_trace(self):
        if CDN in (pathlib.Path(PAGES) / "trace.html").read_text():
            self.needs("date-fns", "chartjs-adapter-date-fns")
        self.open("/trace.html")
        self.until(lambda: self.options("#target"))
        self.assertEqual(self.options("#target"), ["4711.0", "4712.0", "main"])
        for step, points in (("4711.0", 600), ("4712.0", 300), ("main", 300)):
            self.choose("#target", step)
            self.until(lambda: any(one[1] == "/trace/metrics?job=" + step for one in Gate.asked))
            numbers = self.draws("node_load1", False)
            self.until(lambda: len(self.draws("node_load1", False)) == points)
            self.assertTrue(all(0 <= one < 10 for one in numbers))
            numbers = self.draws("solver_iterations_total", True)
            self.assertGreater(max(numbers), 10)

    def test_topology(self):
        self.needs("mermaid@10")
        self.open("/topology.html")
        self.until(lambda: "n2" in self.text("#mermaidChart"))
        for name in ("login1:head", "n1"):
            self.assertIn(name, self.text("#mermaidChart"))
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#mermaidChart .edgePath, "
                                                        "#mermaidChart .flowchart-link")), 2)
        rows = self.until(lambda: (rows := self.rows("#scrapes"))[1:] and rows)
        self.assertIn("localhost:9100", rows[1][0])
        self.assertEqual(len(rows[1]), 4)
        self.assertNotIn("Invalid Date", rows[1][3])

    def test_topology_of_several_steps(self):
        # Proxy.TheTreesOfSeveralStepsHaveNamesThatADiagramTakes has the names that /topo gives then.
        self.needs("mermaid@10")
        self.open("/topology.html")
        self.until(lambda: "n2" in self.text("#mermaidChart"))
        made = self.browser.execute_async_script("""
            const done = arguments[0];
            import('/npm/mermaid@10/dist/mermaid.esm.min.mjs')
              .then(({default: mermaid}) => mermaid.render('several', `
                graph TD\n
                4713.0+1/login1:head --> 4713.0+1/gpu-01.cluster
                4711.batch/login1:head --> 4711.batch/n1`))
              .then(({svg}) => done(svg), (error) => done(String(error)));""")
        for name in ("4713.0+1/gpu-01.cluster", "4711.batch/login1:head"):
            self.assertIn(name, made)

    def test_model(self):
        self.open("/model.html")
        self.choose("#jobSelect", "4711.0")
        rows = self.until(lambda: self.rows("#metricsBody"))
        models = {row[0]: row for row in rows}
        self.assertEqual(models["walltime"][1:3], ["600", "0"])
        row = [one[0] for one in rows].index("walltime")
        self.browser.find_elements(By.CSS_SELECTOR, "#metricsBody button")[row].click()
        data = self.until(lambda: self.chart(
            "metricChart", "chart.data.datasets.map((one) => [one.label, one.data])"))
        self.assertEqual([label for label, _ in data],
                         ["walltime (Profile Data)", "walltime (ExtraP Model)"])
        self.assertIn(600, data[0][1])
        self.assertEqual(data[1][1], [600, 600])

    def test_profiles(self):
        self.open("/profiles.html")
        self.until(lambda: "4711.0" in self.text("#profiledata"))
        self.assertEqual(self.text("#profiledata h3"), "./cavity --grid 512")
        head, row = self.rows("#profiledata")
        shown = dict(zip(head, row))
        self.assertEqual((shown["size"], shown["nodelist"], shown["state"]),
                         ("8", "n[1-4]", "completed"))
        self.browser.find_element(By.LINK_TEXT, "4711.0").click()
        self.until(lambda: self.rows("#counters-table")[1:])

    # ---- Those of the continuation ----

    def test_ftio(self):
        self.needs_page("ftio.html")
        self.open("/ftio.html")
        # The page comes with values of its own; -1 is Sonde's.
        self.until(lambda: self.value("#samplingRateField") == "-1")
        self.assertEqual(self.value("#toleranceField"), "0.8")
        self.until(lambda: "Sonde finds periods itself" in self.text("#ftio-logs"))
        self.assertEqual(self.value("#ftioPort"), "")
        for value in ("0.7", "0.8"):
            self.type("#toleranceField", value)
            asked = len(Gate.asked)
            self.find("#saveBtn").click()
            self.until(lambda: any(one[0] == "PUT" for one in Gate.asked[asked:]))
            self.type("#toleranceField", "0.1")
            self.find("#restoreBtn").click()
            self.until(lambda: self.value("#toleranceField") == value)

    def test_ftio_in_a_trace(self):
        self.needs_page("ftio.html")
        self.needs("date-fns", "chartjs-adapter-date-fns")
        self.open("/trace.html")
        self.choose("#target", "4711.0")
        self.draws('node_network_receive_bytes_total{device="ib0"}', True)
        self.find("#ftiobox").click()
        self.until(lambda: len(self.options("#ftioDropdown")) == 10)
        label = self.until(lambda: self.chart(
            "myChart", "(chart.data.datasets[1]?.label ?? '').includes('cos') && "
                       "chart.data.datasets[1].label"))
        self.assertRegex(label, r"\*cos\(2π\*1\.6[67]e-02\*t[+-][\d.e+-]+\) \([\d.]+%\)")
        self.assertEqual(self.chart("myChart", "chart._ftioParams.n_dom_freq"), 1)
        # With parameters of its own.
        self.find("#ftiocustombox").click()
        self.until(lambda: self.value("#samplingRateField") == "-1")
        self.type("#nFreqField", "3")
        self.find("#applyBtn").click()
        self.choose("#metric", "node_memory_MemTotal_bytes")
        self.until(lambda: any(one[1].startswith("/ftio/modified_args") for one in Gate.asked))
        self.until(lambda: self.chart("myChart", "chart._ftioParams.n_dom_freq === 0"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
