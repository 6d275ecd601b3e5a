"""A step's nodes, its ranks and what is inside a node in headless Chromium: the heatmap, its scale and the table,
with the API's numbers; and how long they take for very many nodes.

nodes_test.py PAGE_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

import re
import urllib.parse

from step_page import STEP, StepPage  # first: it says where page is
from page import main
from selenium.webdriver.common.by import By


class NodesTest(StepPage):
    def test_a_tile_tells_node_time_and_value(self):
        data = self.data()
        self.assertEqual(data["names"], [f"node{i:04}" for i in range(4)])
        for row, share in ((0, 0.25), (1, 0.75), (3, 0.5)):
            tip = self.point(share, (row + 0.5) / 4)
            self.assertIn(data["names"][row], tip)
            near = self.near(data, row, share)
            told = re.search(r"mean ([\d.]+) core", tip)
            self.assertIsNotNone(told, tip)
            self.assertTrue(any(abs(float(told[1]) - one) < 0.006 for one in near), (tip, near))
            self.assertRegex(tip, r"\d\d:\d\d:\d\d")
        tip = self.point(0.375, 2.5 / 4)  # node 2 is away
        self.assertIn("nothing measured", tip)
        self.assertIn("nothing measured", self.find(".key").text)

    def near(self, data, row, share):
        """The values of the tiles around a share of the columns: pixels are rounded."""
        column = int(share * data["columns"])
        return [data["mean"][row][i] for i in range(column - 2, column + 3)]

    def scale_of(self, rows, zero=False):
        return self.browser.execute_async_script("""
            const [rows, zero, done] = arguments;
            import('./step/scale.js').then(({scaleOf, colourOf}) => {
              const scale = scaleOf(rows, zero);
              done({...scale, colours: rows.map((row) => row.map((one) => one === null ? null : colourOf(scale, one)))});
            }).catch((error) => done({error: String(error)}));""", rows, zero)

    def test_the_scale_tells_close_values_apart_and_marks_what_is_far(self):
        # One of a thousand nodes is at 90 %, the others between 97 and 99 %.
        rows = [[0.98 + 0.01 * ((7 * node + i) % 21 - 10) / 10 for i in range(10)] for node in range(1000)]
        rows[333] = [0.9] * 10
        rows[500][3] = None
        scale = self.scale_of(rows)
        self.assertAlmostEqual(scale["low"], 0.97, delta=0.001)
        self.assertAlmostEqual(scale["high"], 0.99, delta=0.001)
        self.assertEqual((scale["below"], scale["above"], scale["least"]), (10, 0, 0.9))
        self.assertEqual(set(scale["colours"][333]), {256})
        others = [one for i, row in enumerate(scale["colours"]) if i != 333 for one in row if one is not None]
        self.assertEqual((min(others), max(others)), (0, 255))
        self.assertIsNone(scale["colours"][500][3])
        rows[334] = [1.2] * 10
        self.assertEqual(self.scale_of(rows)["above"], 10)
        # With zero the same are marked above, and below nothing is.
        self.assertEqual([self.scale_of(rows, True)[key] for key in ("low", "below", "above")], [0, 0, 10])
        # Bursts of what is zero else are the scale, and no noise is drawn as if it were much.
        bursts = self.scale_of([[0] * 999 + [4e9]])
        self.assertEqual([bursts[key] for key in ("low", "high", "above")], [0, 4e9, 0])
        even = self.scale_of([[1, 1.0001] * 50])
        self.assertAlmostEqual(even["high"] - even["low"], 0.02, delta=1e-4)
        self.assertEqual([self.scale_of([[0, 0]])[key] for key in ("low", "high")], [0, 1])
        self.assertEqual([self.scale_of([[None]])[key] for key in ("low", "high")], [0, 1])
        self.assertLess(self.scale_of([[-3, 2] * 50])["low"], -2.9)

    def test_the_scale_is_chosen_and_stands_in_the_address(self):
        data = self.heatmap(**self.shown())
        least = min(one for row in data["mean"] for one in row if one is not None)
        self.assertGreater(least, 0.1)
        self.assertNotIn("0 cores", self.find(".key").text)
        self.find("#heat-scale option[value=zero]").click()
        self.until(lambda: self.find(".key").text.startswith("0 cores"))
        self.assertEqual(self.state()["scale"], "zero")
        self.open("scale=zero&")
        self.assertEqual(self.find("#heat-scale").get_attribute("value"), "zero")
        self.assertTrue(self.find(".key").text.startswith("0 cores"), self.find(".key").text)

    def test_a_click_on_a_tile_opens_the_node_and_back_leads_back(self):
        self.click_tile(0.75, 1.5 / 4)
        self.until(lambda: self.state().get("node") == "node0001")
        series = self.ask("/api/v1/series", metric="node_load1", points=300, host="node0001")
        last = series["series"][0]["value"][-1]
        self.until(lambda: str(round(last, 2)) in self.scrolled("node_load1").text)
        self.until(lambda: self.find_all(".members .chosen-row"))  # the table is read after the heatmap
        self.browser.back()
        self.until(lambda: "node" not in self.state())

    def test_a_click_opens_what_was_clicked_although_other_rows_are_drawn_by_then(self):
        # A click waits for a second one, which would make it a double click: here until window.waited().
        self.browser.execute_script("""
            const real = window.setTimeout;
            window.setTimeout = (act, ms) => (ms === 250 ? (window.waited = act, 0) : real(act, ms));""")
        self.click_tile(0.75, 1.5 / 4)
        self.until(lambda: self.browser.execute_script("return Boolean(window.waited)"))
        self.click("#heat-by option[value=task]")
        self.until_in("8 ranks", lambda: self.find(".heat").get_attribute("aria-label"))
        self.browser.execute_script("window.waited()")
        self.until_equal(lambda: self.state().get("node"), "node0001")
        self.assertNotIn("rank", self.state())

    def test_the_heatmap_shows_any_metric(self):
        self.find("#heat-metric option[value=node_cpu_seconds_total]").click()
        self.until(lambda: self.shown()["metric"] == "node_cpu_seconds_total")
        self.assertEqual(self.shown()["tags"], "mode=not_literal_or(idle|iowait)")
        self.find("#heat-shade option[value=max]").click()
        self.until(lambda: "the most" in self.find(".heatmap .words").text)
        figure = self.figure("node_load1")
        self.scroll_to(figure)
        figure.find_element(By.CSS_SELECTOR, "summary").click()
        figure.find_element(By.CSS_SELECTOR, ".panel button").click()
        self.until(lambda: self.state().get("metric") == "node_load1")

    def cells(self, name):
        heads = [head.text.strip(" \u25be\u25b4") for head in self.find_all(".members thead th")]
        column = heads.index(name)
        return [(row.find_element(By.CSS_SELECTOR, "td button").text,
                 row.find_elements(By.TAG_NAME, "td")[column].get_attribute("data-value"))
                for row in self.find_all(".members tbody tr")]

    def test_the_table_has_the_apis_numbers_the_worst_first(self):
        # The slow one differs most from the others, and in what.
        first = self.find(".members tbody tr")
        self.assertTrue(first.text.startswith("node0001"), first.text)
        heads = [head.text for head in self.find_all(".members thead th")]
        odd = [i for i, cell in enumerate(first.find_elements(By.TAG_NAME, "td"))
               if "odd" in cell.get_attribute("class")]
        self.assertIn(heads.index("CPU"), odd)
        self.assertNotIn(heads.index("GPU"), odd)
        self.find_all(".members thead th button")[-1].click()
        expected = self.heatmap(metric="mpi_wait_seconds_total", columns=1, rows=16384)
        # Of two ranks on each node, in the mean.
        values = {name: row[0] / 2 for name, row in zip(expected["names"], expected["mean"])}
        worst = sorted(values, key=lambda name: -values[name])
        self.assertEqual([(name, float(value)) for name, value in self.cells("MPI wait")],
                         [(name, values[name]) for name in worst])
        self.find_all(".members thead th button")[1].click()  # CPU: the least first
        cpu = self.heatmap(metric="task_cpu_seconds_total", columns=1, rows=16384)
        values = {name: row[0] for name, row in zip(cpu["names"], cpu["mean"])}
        self.until(lambda: self.cells("CPU")[0][0] == "node0001")
        self.assertEqual([(name, float(value)) for name, value in self.cells("CPU")],
                         sorted(values.items(), key=lambda one: one[1]))
        self.assertEqual(self.state()["sort"], "CPU")
        self.assertEqual(self.find_all(".members th")[1].get_attribute("aria-sort"), "ascending")
        self.find_all(".members thead th button")[1].click()
        self.until(lambda: self.state()["sort"] == "-CPU")
        self.assertNotEqual(self.cells("CPU")[0][0], "node0001")
        self.find_all(".members thead th button")[0].click()
        self.until(lambda: [name for name, _ in self.cells("CPU")] == sorted(values))
        self.find("#member-filter").send_keys("0003")
        self.until(lambda: len(self.cells("CPU")) == 1)
        self.find(".members tbody button").click()
        self.until(lambda: self.state().get("node") == "node0003")

    def test_ranks_have_rows_too(self):
        self.find("#heat-by option[value=task]").click()
        self.until(lambda: self.find_all(".members tbody tr")[0].text.startswith("rank"))
        expected = self.heatmap(metric="task_resident_memory_bytes", by="task", columns=1, rows=16384)
        values = {f"rank {name}": row[0] for name, row in zip(expected["names"], expected["max"])}
        self.assertEqual({name: float(value) for name, value in self.cells("Memory, peak")}, values)
        self.assertIn("rank 0", self.point(0.1, 0.05))
        self.shot("step-ranks")

    def test_inside_a_node_are_its_cores_gpus_and_devices(self):
        self.assertFalse(self.find(".inside").is_displayed())
        self.assertNotIn("cpu", self.find("#heat-by").get_attribute("innerHTML"))
        self.open("node=node0002&")
        words = [one.text for one in self.find_all(".inside button")]
        self.assertEqual(words, ["cores", "GPUs", "disks", "network interfaces", "all nodes"])
        self.click(".inside button")
        self.until(lambda: "12 cores of node0002" in self.find(".heat").get_attribute("aria-label"))
        self.assertEqual(self.state()["by"], "cpu")
        shown = self.shown()
        self.assertEqual((shown["host"], shown["metric"]), ("node0002", "node_cpu_core_seconds_total"))
        self.assertEqual(self.find(".matrix h2").text, "node0002: cores")
        data = self.data()
        self.assertEqual(data["names"], [str(i) for i in range(12)])
        self.assertEqual(self.browser.switch_to.active_element.text, "cores")
        tip = self.point(0.75, 10.5 / 12)
        self.assertIn("core 10", tip)
        told = float(re.search(r"mean ([\d.]+) %", tip)[1])
        near = [one * 100 for one in self.near(data, 10, 0.75)]
        self.assertTrue(any(abs(told - one) < 0.6 for one in near), (tip, near))
        self.assertIn("nothing measured", self.point(0.375, 10.5 / 12))  # node 2 is away
        self.shot("step-cores")
        # A core has no page of its own.
        self.click_tile(0.75, 0.5)
        self.click(".inside button:nth-of-type(3)")
        self.until(lambda: self.shown()["metric"] == "node_disk_written_bytes_total")
        self.assertEqual(self.state()["node"], "node0002")
        self.assertEqual(self.data()["names"], [f"loop{i}" for i in range(8)] + ["nvme0n1"])
        self.find("#heat-by option[value=host]").click()
        self.until(lambda: "by" not in self.state())
        self.until(lambda: self.shown()["by"] == "host")
        self.click(".inside button:last-child")
        self.until(lambda: "node" not in self.state())
        self.until(lambda: not self.find(".inside").is_displayed())


class ManyNodesTest(StepPage):
    ARGUMENTS = ["--nodes", "1000"]

    # Milliseconds from having an answer to having its tiles on the canvas, and what a frame takes
    # while a part is drawn larger and larger.
    MEASURE = """
        const [path, done] = arguments;
        (async () => {
          const {Heatmap} = await import('./step/heatmap.js');
          const text = await (await (await import('./session.js')).ask(path)).text();
          const map = new Heatmap({cursor() {}, zoom() {}, open() {}, reset() {}});
          document.querySelector('main').prepend(map.figure);
          const begin = performance.now();
          for (let i = 0; i < 5; ++i) map.draw(JSON.parse(text), 'mean', false, null);
          map.canvas.getContext('2d').getImageData(100, 20, 1, 1);  // it is really painted
          const draw = (performance.now() - begin) / 5;
          const frames = [];
          let last = performance.now();
          for (let i = 1; i <= 60; ++i) {
            map.view = {left: i * 2, width: map.tiles.width - i * 4, top: i, height: map.tiles.height - 2 * i};
            map.render();
            await new Promise(requestAnimationFrame);
            frames.push(performance.now() - last);
            last = performance.now();
          }
          map.destroy();
          map.figure.remove();
          frames.sort((a, b) => a - b);
          done({draw, frame: frames[30], slow: frames[57], bytes: text.length});
        })().catch((error) => done({error: String(error)}));"""

    def test_a_thousand_nodes(self):
        data = self.data()
        self.assertEqual(len(data["names"]), 1000)
        self.assertLess(len(data["rows"]), 1000)
        slow = next(i for i, (first, count) in enumerate(data["rows"]) if first <= 333 < first + count)
        # A row is a pixel high, and the pointer is at whole ones.
        tips = [self.point(0.9, (slow + 0.5 + off) / len(data["rows"])) for off in (0, -1, 1)]
        tip = next((one for one in tips if "least" in one and "node0333" in one), str(tips))
        self.assertRegex(tip, r"node\d{4} to node\d{4} \(\d\)")
        self.assertRegex(tip, r"least [\d.]+ cores? node0333")
        self.assertIn("200 more of 1000 nodes", self.find(".members").text)
        self.figures("1,000 nodes")
        for width, dark in ((360, False), (1280, False), (1280, True), (2560, True)):
            self.look(width, dark)
            self.whole(f"thousand-{width}-{'dark' if dark else 'light'}", width)

    def figures(self, name):
        query = urllib.parse.urlencode({"job": STEP, "metric": "node_load1", "columns": 300, "rows": 420})
        took = self.browser.execute_async_script(self.MEASURE, f"/api/v1/heatmap?{query}")
        self.assertNotIn("error", took)
        print(f"{name}: drawn in {took['draw']:.1f} ms from {took['bytes'] / 1e6:.1f} MB, "
              f"a frame of a zoom {took['frame']:.1f} ms, 95 % within {took['slow']:.1f} ms")
        return took

    def test_rows_are_zoomed_too(self):
        area, left, top = self.place(0.5, 0.2)
        right, bottom = self.place(0.75, 0.6)[1:]
        self.drag(area, left, right, top, bottom)
        self.until(lambda: "rows" in self.state())
        first, end = map(int, self.state()["rows"].split("~"))
        self.assertAlmostEqual(first, 200, delta=8)
        self.assertAlmostEqual(end, 600, delta=8)
        self.until(lambda: self.shown().get("first") == str(first))


class VeryManyNodesTest(ManyNodesTest):
    ARGUMENTS = ["--nodes", "10000"]

    def setUp(self):
        self.screen(1280, 1000)
        self.load()
        self.wait_for(".brand")

    def test_a_thousand_nodes(self):
        took = self.figures("10,000 nodes")
        self.assertLess(took["bytes"], 8_000_000)

    test_rows_are_zoomed_too = None


if __name__ == "__main__":
    main()
