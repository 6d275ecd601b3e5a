"""The comparison of many runs, models of them and what repeats itself, in headless Chromium over a real
archive of made runs: every number against the API's.

runs_test.py RUNS_SERVER [--shots DIR]. Needs what page_test.py needs.
"""

import re

from archive_page import ArchivePage  # first: it says where contrast and page are
from contrast import faint
from page import main
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

COUNT = 72
SIZES = [1, 2, 4, 8, 16, 32]
FAINT_BUT = ".sr-only, .skip, svg, .u-over, [disabled], option"


class RunsPage(ArchivePage):
    COUNT = COUNT

    def contents(self, selector):
        """The texts of all of them as they were written, also where they cannot be seen."""
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def drawn(self, selector):
        return self.until(lambda: self.find_all(selector + " .u-over"))

    def assert_fits(self, name):
        """It fits and reads well in every width, light and dark."""
        for width, dark in ((390, False), (390, True), (1400, False), (1400, True)):
            self.look(width, dark)
            self.until_equal(lambda: faint(self.browser, FAINT_BUT), [])
            self.shot(f"{name}-{width}-{'dark' if dark else 'light'}")
        self.look(1300)


class ManyRunsTest(RunsPage):
    QUERY = ("search", "cavity")

    def compare(self, more=""):
        self.open("#/diff?search=cavity" + more, ".spread")

    def test_all_steps_that_pass_the_filters_are_compared(self):
        self.browser.execute_script("location.hash = '#/?search=cavity&state=completed'")
        self.click_link(f"Compare all {COUNT}")
        self.wait_for(".spread")
        self.assertEqual(self.hash(), "#/diff?search=cavity&state=completed")
        self.assertEqual(self.find("h1").text, f"Comparison of {COUNT} runs")
        self.assertIn("search cavity, state completed", self.find("section[aria-label=Runs]").text)
        self.click("section[aria-label=Runs] .words a")
        self.wait_for(".list")
        self.assertEqual(self.hash(), "#/?search=cavity&state=completed")

    def test_the_rows_are_those_of_the_api_in_its_order(self):
        answer = self.api("/api/v1/runs", self.QUERY)
        self.assertEqual(len(answer["runs"]), COUNT)
        self.assertEqual(answer["running"], 1)
        shown = [row for row in answer["rows"] if row["standing"] in ("weighty", "unweighed")]
        self.compare()
        self.assertEqual(self.contents(".spread td.wide-cell"), [row["name"] for row in shown])
        duration = next(row for row in answer["rows"] if row["name"] == "duration")
        seconds = sorted((run["end"] - run["start"]) / 1e9 for run in answer["runs"])
        self.assertAlmostEqual(duration["min"], seconds[0], 6)
        self.assertAlmostEqual(duration["max"], seconds[-1], 6)
        self.assertAlmostEqual(duration["median"], (seconds[COUNT // 2 - 1] + seconds[COUNT // 2]) / 2, 6)
        tenth = 0.1 * (COUNT - 1)
        self.assertAlmostEqual(duration["p10"], seconds[7] + (tenth - 7) * (seconds[8] - seconds[7]), 6)
        for value, run in zip(duration["values"], answer["runs"]):
            self.assertAlmostEqual(value, (run["end"] - run["start"]) / 1e9, 6)
        self.assertIn("1 step still running", self.find("section[aria-label=Runs]").text)

    def test_runs_that_stand_out_are_named_and_lead_to_the_step(self):
        answer = self.api("/api/v1/runs", self.QUERY)
        speed = next(row for row in answer["rows"] if row["name"] == "speed")
        slow = {f"{7000 + i}" for i in range(COUNT) if i % 23 == 11}
        self.assertEqual({answer["runs"][i]["job"] for i in speed["apart"]}, slow)
        self.compare()
        row = next(row for row in self.find_all(".spread tbody tr") if row.text.startswith("figures"))
        links = row.find_elements("css selector", ".apart a")
        self.assertEqual({link.text.split(".")[0] for link in links}, slow)
        name = links[0].text.split()[0]
        links[0].send_keys(Keys.ENTER)
        self.until(lambda: self.hash() == f"#/job/{name}")
        # The others of a long list are shown on demand.
        self.compare()
        more = self.find(".apart button")
        row = more.find_element("xpath", "./ancestor::tr")
        count = int(more.text.split()[0])
        more.click()
        self.assertEqual(len(row.find_elements("css selector", ".apart a")), 3 + count)

    def test_a_dot_is_a_run(self):
        self.compare()
        canvas = self.find(".strip")
        self.assertRegex(canvas.get_attribute("aria-label"), r"^CPU time: .* to .*, median ")
        self.until(lambda: canvas.get_attribute("width") not in (None, "300"))
        colours = self.browser.execute_script("""
            const c = arguments[0];
            const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            return new Set(Array.from({length: data.length / 4}, (_, i) => data.slice(4 * i, 4 * i + 4).join())).size;""",
            canvas)
        self.assertGreater(colours, 3)  # bar, median, runs, those that stand out

    def test_bands_over_time_and_over_shares_are_the_api_s(self):
        metric = ("metric", "task_resident_memory_bytes")
        time = self.api("/api/v1/runs/series", self.QUERY, metric)
        share = self.api("/api/v1/runs/series", self.QUERY, metric, ("axis", "share"))
        self.assertEqual((time["axis"], time["runs"], share["end"]), ("time", COUNT, 1))
        (band,) = time["series"]
        self.assertEqual(band["count"][1], COUNT)
        self.assertLess(band["count"][-1], 4)  # the longest run alone goes on to the end
        for at in range(time["bins"]):
            numbers = [band[name][at] for name in ("min", "p10", "median", "p90", "max")]
            if band["count"][at]:
                self.assertEqual(numbers, sorted(numbers))
            else:
                self.assertEqual(numbers, [None] * 5)
        self.compare()
        names = self.until(lambda: self.contents("section[aria-label=Series] figcaption b"))
        self.assertIn("task_resident_memory_bytes", names)
        self.drawn('figure[data-metric="task_resident_memory_bytes"]')
        tip = self.hover(self.figure("task_resident_memory_bytes"), 0.1)
        self.assertIn(f"of {COUNT} runs", tip)
        self.assertIn("median", tip)
        Select(self.find("#axis")).select_by_value("share")
        self.until(lambda: "axis=share" in self.hash() and
                   not self.find_all("section[aria-label=Series] [aria-busy]"))
        self.drawn('figure[data-metric="task_resident_memory_bytes"]')
        self.assertIn("% of the run", self.hover(self.figure("task_resident_memory_bytes"), 0.5))
        Select(self.find("#more")).select_by_value("app_iterations_total")
        self.until(lambda: self.contents("section[aria-label=Series] figcaption b") == ["app_iterations_total"])
        self.assertEqual(self.hash(), "#/diff?search=cavity&axis=share&metric=app_iterations_total")

    def test_named_runs_are_compared_too_and_few_of_them_one_by_one(self):
        names = ",".join(f"{7000 + i}.0" for i in range(9))
        self.open("#/diff?profiles=" + names, ".spread")
        self.assertEqual(self.find("h1").text, "Comparison of 9 runs")
        self.open("#/diff?profiles=7000.0,7001.0", ".numbers:not(.spread)")
        self.assertEqual(self.find("h1").text, "Comparison")

    def test_what_cannot_be_compared_is_refused_in_words(self):
        self.assertEqual(self.refused_by_api("/api/v1/runs", ("search", "nothing-has-this"))[0], 400)
        code, why = self.refused_by_api("/api/v1/runs", ("profiles", ",".join(["1"] * 501)))
        self.assertEqual((code, why), (400, "parameter profiles: more than 500 are named"))
        code, why = self.refused_by_api("/api/v1/runs", ("profiles", "7000.0,7001.0"), ("state", "failed"))
        self.assertEqual(code, 400)
        self.assertIn("filters cannot be set", why)
        self.assertEqual(self.refused_by_api("/api/v1/runs/series", self.QUERY)[0], 400)
        self.assertEqual(self.refused_by_api("/api/v1/runs/series", self.QUERY, ("metric", "a"), ("axis", "x"))[0], 400)
        self.expect_refusals(400)
        self.go("#/diff?search=nothing-has-this")
        self.until_in("two or more", lambda: self.find("#message").text)

    def test_it_fits_and_reads_well(self):
        self.compare()
        self.assert_fits("many-runs")


class ModelsTest(RunsPage):
    def models(self, query="runs=cavity"):
        self.open("#/models?" + query, ".growths")

    def test_the_table_is_the_api_s_what_grows_most_first(self):
        answer = self.api("/api/v1/models", ("runs", "cavity"))
        self.assertEqual(answer["parameters"], ["nodes"])
        growth = [model["growth"] for model in answer["models"]]
        self.assertEqual(growth, sorted(growth, reverse=True))
        self.models()
        self.assertEqual(self.contents(".growths td:first-child"), [model["metric"] for model in answer["models"]])
        formulas = self.contents(".growths td.formula")
        for model, formula in zip(answer["models"], formulas):
            self.assertEqual(formula, model["model"] if model["terms"] else "does not depend on it")
        self.assertIn(f"{COUNT} runs of 6 sizes", self.find("#view").text)

    def test_a_number_is_drawn_with_its_runs_its_model_and_its_band(self):
        answer = self.api("/api/v1/models", ("runs", "cavity"))
        duration = next(model for model in answer["models"] if model["metric"] == "duration")
        self.assertEqual(len(duration["values"]), len(answer["runs"]))
        sizes = [point[0] for point in duration["curve"]]
        self.assertAlmostEqual(sizes[0], SIZES[0])
        self.assertAlmostEqual(sizes[-1], 4 * SIZES[-1])  # beyond what was measured
        for size, value, low, high in duration["curve"]:
            self.assertLess(low, value)
            self.assertLess(value, high)
            self.assertAlmostEqual(value, 60 + 2 * size, delta=0.3 * (60 + 2 * size))
        self.models()
        next(one for one in self.find_all(".growths button") if one.text == "duration").send_keys(Keys.ENTER)
        self.drawn('figure[data-metric="duration"]')
        self.assertIn("show=duration", self.hash())
        figure = self.figure("duration")
        self.assertIn("extrapolation, beyond 32 nodes", figure.text)
        self.assertRegex(self.hover(figure, 0.95), r"beyond the runs\n?.*")
        self.assertIn(duration["warnings"][0], self.find(".model-plot").text)

    def test_what_the_runs_differ_in_is_chosen(self):
        self.models()
        Select(self.find("[data-field=by]")).select_by_value("tag")
        self.find("[data-field=tag]").send_keys("grid")
        self.find("[data-field=metric]").send_keys("duration", Keys.ENTER)
        self.until(lambda: "by=tag%3Agrid" in self.hash())
        self.until(lambda: self.contents(".growths td:first-child") == ["duration"])
        heads = re.sub(r"[,\s]+", " ", " ".join(self.contents(".growths th")))
        self.assertIn("At 3200 grid", heads.replace("3.2e", "3200"))

    def test_what_is_needed_is_said(self):
        self.expect_refusals(404)
        self.open("#/models", ".needed")
        self.assertIn("5 different sizes", self.find(".needed").text)
        self.models("runs=7000.0,7006.0")  # of one size
        self.assertIn("These runs have 1 size.", self.find(".needed").text)
        self.assertEqual(set(self.contents(".growths td.formula")), {"cannot be told"})
        self.open("#/models?runs=nothing-has-this", ".needed")
        self.assertIn("5 different sizes", self.find(".needed").text)

    def test_a_step_leads_to_the_models_of_its_program(self):
        self.open("#/job/7009.0", ".pages a[href='#/models?job=7009.0']")
        self.click(".pages a[href='#/models?job=7009.0']")
        self.wait_for(".growths")
        self.assertIn("runs=cavity", self.hash())
        self.click(".pages-of a[href='#/periods?job=7009.0']")
        self.wait_for("table[aria-label=Periods]")

    def test_what_repeats_itself_is_named_with_its_period(self):
        answer = self.api("/api/v1/insight", ("job", "7011.0"), ("of", "periods"))
        first = answer["metrics"][0]
        self.assertEqual(first["name"], "app_checkpoint_bytes_total")
        self.assertAlmostEqual(first["period_seconds"], 10, delta=0.2)
        self.assertTrue(any(abs(wave["frequency_hertz"] - 0.1) < 0.01 for wave in first["waves"]))
        self.open("#/periods?job=7011.0", "table[aria-label=Periods]")
        self.assertEqual(self.contents(".growths td:first-child"), [one["name"] for one in answer["metrics"]])
        self.assertEqual(self.contents(".growths td[data-name=Period]")[0], "10 s")
        self.drawn(".model-plot")
        self.assertIn("Strongest frequencies of app_checkpoint_bytes_total", self.find(".model-plot").text)
        self.expect_refusals(404)
        self.open("#/periods?job=1.0", ".needed")

    def test_they_fit_and_read_well(self):
        self.models()
        self.assert_fits("models")
        self.open("#/periods?job=7011.0", "table[aria-label=Periods]")
        self.assert_fits("periods")


if __name__ == "__main__":
    main()
