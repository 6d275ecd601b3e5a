"""The step's metrics in a notebook: what a cell gets to show."""

import pytest
from conftest import PYTHON, made_python, run, run_python

PROLOGUE = """
import time
from sonde import Telemetry
from sonde.jupyter import DragonTelemetryWidget, Plots
dt = Telemetry()
def wait(plots, metric, value):
    for _ in range(500):
        found = plots.series(metric)
        if found and found[0].value == value:
            return
        time.sleep(0.01)
    raise SystemExit(f"no {value} in {found}")
"""


@pytest.fixture(scope="module")
def python():
    """A Python with matplotlib and IPython."""
    return made_python("matplotlib")


def test_a_cell_shows_a_plot_of_each_metric(watch, python):
    watch.python(
        PROLOGUE
        + """
plots = Plots("loss", "nothing", last=60, by="task")
dt.add_data("loss", 0.5)
wait(plots, "loss", 0.5)
loss, nothing = plots.figure().axes
assert loss.get_title() == "loss" and nothing.get_title() == "nothing"
(line,) = loss.lines
assert line.get_label() == "0" and list(line.get_ydata())[-1] == 0.5
assert not nothing.lines
assert plots._repr_png_().startswith(b"\\x89PNG") and plots._repr_html_() is None
(whole,) = Plots("loss", by=()).figure().axes
assert len(whole.lines) == 1
""",
        interpreter=python,
    )


def test_a_cell_is_renewed(watch, python):
    done = watch.python(
        PROLOGUE
        + """
import IPython.display
shown = []
IPython.display.display = lambda one: shown.append(one._repr_png_()[:4])
IPython.display.clear_output = lambda wait: shown.append(wait)
dt.add_data("loss", 0.5)
Plots("loss").watch(every=0.05, times=3)
print(shown == [True, b"\\x89PNG"] * 3)
""",
        interpreter=python,
    )
    assert done.stdout == "True\n", done.stderr


def test_dragons_widget_shows_what_it_shows_there(watch, python):
    watch.python(
        PROLOGUE
        + """
import ipywidgets
widget = DragonTelemetryWidget()
began = widget.get_start_time()
widget.connect()
dt.add_data("loss", 0.5)
end = time.monotonic() + 30
while "loss" not in widget.get_metrics() and time.monotonic() < end:
    time.sleep(0.01)
wait(Plots("loss"), "loss", 0.5)
assert "loss" in widget.get_metrics() and began <= time.time()
(one,) = widget.get_data("loss")
assert 0.5 in one["dps"].values()
(plot,) = widget.render("loss", 0.0).axes
assert plot.get_title() == "Metric: loss" and list(plot.lines[0].get_ydata())[-1] == 0.5
assert isinstance(widget.custom_slider(), ipywidgets.FloatSlider)
""",
        interpreter=python,
    )


def test_without_matplotlib_a_cell_shows_the_newest_values(watch):
    if run(PYTHON, "-c", "import matplotlib").returncode == 0:
        pytest.skip("this Python has matplotlib")
    done = watch.python(
        PROLOGUE
        + """
plots = Plots("nothing", "loss", by=("task", "key"))
dt.add_data("loss", 0.25, tagk="key", tagv="<b>")
wait(plots, "loss", 0.25)
assert plots._repr_png_() is None
print(plots._repr_html_())
try:
    plots.figure()
except ImportError:
    print("no figure")
"""
    )
    row = "<tr><td>loss</td><td>0, &lt;b&gt;</td><td>0.25</td></tr>"
    head = "<tr><th>metric</th><th>task, key</th><th>newest</th></tr>"
    assert done.stdout == f"<table>{head}{row}</table>\nno figure\n", done.stdout


def test_without_telemetry_a_cell_says_so(python):
    program = 'from sonde.jupyter import Plots; print(Plots("x").figure().axes[0].get_title())'
    done = run_python(program, interpreter=python)
    assert done.stdout == "x: there is no telemetry\n", done.stderr
