"""The running step's metrics in a notebook.

    from sonde.jupyter import Plots

    plots = Plots("used_RAM", "train_loss", last=120)
    plots            # as the last line of a cell: a plot of each, a line for each node
    plots.watch()    # the same, renewed until the cell is interrupted

The notebook's kernel runs in the step: srun --telemetry-level=2 jupyter lab. Plots need matplotlib; without
it a table of the newest values is shown. DragonTelemetryWidget is Dragon's class of that name.

Threads: an object belongs to one.
"""

from __future__ import annotations

import datetime
import html
import io
import time
from typing import Any, Iterable, Optional, Union

from ._analysis import AnalysisClient
from .query import NOT_FOUND, Query, QueryError, Series

__all__ = ["DragonTelemetryWidget", "Plots"]

_WIDTH, _HEIGHT = 8.0, 2.5  # inches of one metric's plot
_MOST_POINTS = 1000  # of a line; more than its pixels


class Plots:
    """The last seconds of some metrics, each as a plot."""

    def __init__(
        self,
        *metrics: str,
        last: float = 300.0,
        aggregator: str = "avg",
        by: Union[str, Iterable[str]] = "host",
    ) -> None:
        """`by`: a line for each value of these tags; () is one line for the whole step."""
        self.metrics = metrics
        self.last = last
        self.aggregator = aggregator
        self.by = (by,) if isinstance(by, str) else tuple(by)
        self._query = Query()

    def series(self, metric: str) -> list[Series]:
        """What is shown of a metric; nothing if it is not there (yet)."""
        interval = max(self.last / _MOST_POINTS, self._query.period)
        try:
            return self._query.get(
                metric,
                self.aggregator,
                last=self.last,
                downsample=f"{max(round(interval * 1000), 1)}ms-avg",
                by=self.by,
            )
        except QueryError as error:
            if error.code == NOT_FOUND:
                return []
            raise

    def figure(self) -> Any:
        """A matplotlib Figure with a plot of each metric. Raises ImportError without matplotlib."""
        figure, plots = _empty_figure(len(self.metrics))
        for plot, metric in zip(plots, self.metrics):
            for one in self.series(metric):
                times = [_clock(point.time) for point in one.points]
                plot.plot(times, [point.value for point in one.points], label=self._label(one))
            _finish(figure, plot, metric if self._query else f"{metric}: there is no telemetry")
        return figure

    def watch(self, every: float = 2.0, times: Optional[int] = None) -> None:
        """Shows the plots and renews them, so often or until the cell is interrupted."""
        from IPython.display import (  # type: ignore[import-not-found,unused-ignore]
            clear_output,
            display,
        )

        shown = 0
        try:
            while times is None or shown < times:
                clear_output(wait=True)
                display(self)
                shown += 1
                if times is None or shown < times:
                    time.sleep(every)
        except KeyboardInterrupt:
            pass

    def _label(self, series: Series) -> str:
        return ", ".join(series.tags.get(key, "") for key in self.by)

    def _repr_png_(self) -> Optional[bytes]:
        try:
            figure = self.figure()
        except ImportError:
            return None
        file = io.BytesIO()
        figure.savefig(file, format="png", bbox_inches="tight")
        return file.getvalue()

    def _repr_html_(self) -> Optional[str]:
        try:
            import matplotlib  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
        except ImportError:
            return self._table()
        return None  # the plots are shown

    def _table(self) -> str:
        rows = [
            (metric, self._label(one), f"{one.value:.6g}")
            for metric in self.metrics
            for one in self.series(metric)
        ]
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        by = html.escape(", ".join(self.by))
        return f"<table><tr><th>metric</th><th>{by}</th><th>newest</th></tr>{body}</table>"


class DragonTelemetryWidget:
    """Dragon's widget: what its notebooks call, over the step that the kernel runs in."""

    def __init__(self) -> None:
        self._start_time = int(time.time())
        self.tac: Optional[AnalysisClient] = None

    def connect(self) -> None:
        """Raises RuntimeError if there is no telemetry."""
        client = AnalysisClient()
        client.connect(timeout=60)
        self.tac = client

    def get_start_time(self) -> int:
        """When this object was made, in seconds since 1970."""
        return self._start_time

    def get_metrics(self) -> set[str]:
        return self._client().get_metrics()

    def get_data(
        self, metric_name: Optional[str] = None, start_time: Optional[int] = None
    ) -> list[dict[str, Any]]:
        name = "num_running_processes" if metric_name is None else metric_name
        return self._client().get_data(
            name, start_time=self._start_time if start_time is None else start_time
        )

    def render(self, metric_name: Optional[str], percentage_window: float) -> Any:
        """A matplotlib Figure of what came after that share, 0 to 1, of the time since the start."""
        since = self._start_time + (time.time() - self._start_time) * percentage_window
        figure, (plot,) = _empty_figure(1)
        for one in self.get_data(metric_name, int(since)):
            times = [_clock(float(second)) for second in one["dps"]]
            plot.plot(times, list(one["dps"].values()), label=one["tags"]["host"])
        _finish(figure, plot, f"Metric: {metric_name or 'num_running_processes'}")
        return figure

    def custom_slider(self) -> Any:
        import ipywidgets  # type: ignore[import-not-found,unused-ignore]

        return ipywidgets.FloatSlider(min=0, max=1, step=0.01, description="Time Zoom:")

    def _client(self) -> AnalysisClient:
        if self.tac is None:
            self.connect()
        assert self.tac is not None
        return self.tac


# --- Parts of plots


def _clock(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds)


def _empty_figure(plots: int) -> tuple[Any, list[Any]]:
    # Not pyplot: it would keep every figure, and show each a second time.
    from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]

    figure = Figure(figsize=(_WIDTH, _HEIGHT * max(plots, 1)), layout="constrained")
    return figure, list(figure.subplots(max(plots, 1), 1, squeeze=False)[:, 0])


def _finish(figure: Any, plot: Any, title: str) -> None:
    from matplotlib import dates  # type: ignore[import-not-found,unused-ignore]

    plot.set_title(title)
    plot.xaxis.set_major_locator(dates.AutoDateLocator())
    plot.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S"))
    if plot.lines:
        plot.legend(loc="upper left")
