"""Questions of a running program about the data of its own step.

    from sonde.query import Query

    query = Query()
    for series in query.get("heat_residual", "max", last=60, by="host"):
        print(series.tags["host"], series.value)

    query.watch("heat_residual max > 10 for 3s", lambda event: print("hot since", event.time))
    while working:
        query.poll(0)          # callbacks run here, or, after query.start(), in a thread

The words of a question are OpenTSDB's; docs/client.md has the rules, the limits and the costs.
Without telemetry a Query is false, its answers are empty and nothing is ever called back. A question
that is wrong raises QueryError, and so does a daemon or a head of the step that is gone.

Threads: every method may be called from any thread; one waits for the other, and the program's other
threads run meanwhile. A callback may call every method but poll(). After a fork the child opens a Query
of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import traceback
from typing import Any, Callable, Iterable, NamedTuple, Optional, Union

from ._sonde import Connection

__all__ = ["Event", "Metric", "News", "Point", "Query", "QueryError", "Series"]

# Codes of sonde_query.h.
OK, OFF, INVALID, TIMEOUT, LOST, NOT_FOUND = 0, 1, 4, 32, 33, 34


class QueryError(Exception):
    """Why there is no answer; `code` is one of sonde_query.h."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


class Metric(NamedTuple):
    name: str
    unit: str
    help: str
    type: str
    level: int
    tags: dict[str, str]


class Point(NamedTuple):
    time: float  # seconds since 1970, as time.time() gives
    value: float


class Series(NamedTuple):
    """The points of a group of series: their common tags, and the keys of the others."""

    metric: str
    tags: dict[str, str]
    aggregated: tuple[str, ...]
    points: list[Point]

    @property
    def value(self) -> float:
        """The newest."""
        return self.points[-1].value


class News(NamedTuple):
    """What a subscription brings: one point in each series."""

    series: list[Series]
    late: bool  # a value again, now with a part that came late
    missed: int  # values left out before this, as they were not read
    nodes_answered: int
    nodes_expected: int
    rows_only: bool = False  # nodes are missing in the values, and could not be asked for theirs


class Event(NamedTuple):
    """A watched condition became true, or is over."""

    id: int
    is_true: bool
    time: float
    value: float
    metric: str
    tags: dict[str, str]


# What the extension makes answers of.
_CLASSES = (Metric, Point, Series, News, Event, QueryError)

Names = Union[str, Iterable[str]]


class Query:
    """A connection to the daemon of this node, for questions."""

    def __init__(self, timeout: float = 1.0):
        """Waits at most so many seconds for a daemon that is just starting."""
        self._lock = threading.RLock()
        self._callbacks: dict[int, Callable[[Any], object]] = {}
        self._calling = False
        self._thread: Optional[threading.Thread] = None
        self._wake: Optional[tuple[int, int]] = None
        self._connection = Connection(timeout, _CLASSES)
        self.code = self._connection.code
        self.error = self._connection.error

    def __bool__(self) -> bool:
        """Whether there is somebody to ask; `code` and `error` say why not."""
        return bool(self._connection)

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything; in a callback, too."""
        self.stop()
        with self._lock:
            self._connection.close()
            self._callbacks.clear()

    def fileno(self) -> int:
        """For select: readable when poll() has something to do."""
        return self._connection.fileno()

    @property
    def period(self) -> float:
        """Of the step's ticks, in seconds: new values come that often."""
        return self._connection.period()

    # --- Questions

    def metrics(self, name: str = "", timeout: float = 5.0) -> list[Metric]:
        """What is measured in the step so far: one metric, or all; each for all nodes and tasks."""
        with self._lock:
            try:
                return self._connection.list(name, timeout)
            finally:
                self._wake_thread()

    def get(
        self,
        metric: str,
        aggregator: str = "avg",
        *,
        last: Optional[float] = None,
        start: Optional[float] = None,
        end: Optional[float] = None,
        downsample: str = "",
        rate: Union[bool, str] = False,
        tags: Optional[dict[str, str]] = None,
        filters: Iterable[tuple[str, str, str]] = (),
        by: Names = (),
        explicit_tags: bool = False,
        timeout: float = 5.0,
    ) -> list[Series]:
        """The values of the last seconds, or from start to end (seconds since 1970, None: the step's
        start, now): of the whole step as one, or one series for each value of the tags in `by`, such
        as "host" or ("host", "task").

        tags: only series with these, such as {"device": "sda|sdb"}. filters: (type, tag, pattern) as
        OpenTSDB has them. rate: change per second; "counter" or "drop" where a counter may start
        again. downsample: such as "10s-avg"; else there is a value for each tick.
        """
        with self._lock:
            try:
                return self._connection.get(
                    metric,
                    aggregator,
                    downsample,
                    rate,
                    tags,
                    filters,
                    by,
                    explicit_tags,
                    last,
                    start,
                    end,
                    timeout,
                )
            finally:
                self._wake_thread()

    def alarm(self, name: str, rule: str, timeout: float = 5.0) -> None:
        """Has the step raise an alarm, until it ends, when a rule such as 'heat_residual max > 10 for 3s'
        holds: told in the profile, on the plots, and as the user wants alarms told. Every rank may say
        the same."""
        with self._lock:
            try:
                self._connection.alarm(name, rule, timeout)
            finally:
                self._wake_thread()

    # --- What stands

    def subscribe(
        self,
        metric: str,
        callback: Callable[[News], object],
        aggregator: str = "avg",
        *,
        rate: Union[bool, str] = False,
        tags: Optional[dict[str, str]] = None,
        filters: Iterable[tuple[str, str, str]] = (),
        by: Names = (),
        explicit_tags: bool = False,
    ) -> int:
        """Calls back with the value of every tick from now on. Gives an id for cancel()."""
        _check_callback(callback)
        with self._lock:
            try:
                id = self._connection.subscribe(
                    metric, aggregator, "", rate, tags, filters, by, explicit_tags
                )
            finally:
                self._wake_thread()
            return self._stand(id, callback)

    def watch(
        self, condition: str, callback: Callable[[Event], object], *, tell_end: bool = False
    ) -> int:
        """Calls back when the condition becomes true, and with `tell_end` when it is over:
        'METRIC[{tag=value,...}] [AGGREGATOR] [rate] [by KEY,...] COMPARISON NUMBER [for TIME]'.
        With `by`, for each group by itself: the event's tags name it. Gives an id for cancel()."""
        _check_callback(callback)
        with self._lock:
            try:
                id = self._connection.watch(condition, tell_end)
            finally:
                self._wake_thread()
            return self._stand(id, callback)

    def cancel(self, id: int) -> None:
        """Ends a subscription or a watch."""
        with self._lock:
            try:
                self._connection.cancel(id)
            finally:
                self._callbacks.pop(id, None)
                self._wake_thread()

    def poll(self, timeout: Optional[float] = 0.0) -> int:
        """Waits so long for news (None: for ever) and calls back; how many calls that were. What a
        callback raises comes out here; of several, the first, and the others are printed."""
        with self._lock:
            if self._calling:
                raise QueryError(INVALID, "poll() was called from within a callback")
            news, failed = self._connection.poll(timeout)
            calls, raised = self._call_back(news)
            if raised:
                _print_all(raised[1:])
                # Emptied: what is raised refers to this call, which must not refer back.
                del raised[1:]
                raise raised.pop()
            if failed is not None:
                raise QueryError(*failed)
            return calls

    # --- In the background

    def start(self) -> None:
        """Has a thread of Python's call back from now on, instead of poll(). What a callback raises
        is printed there."""
        with self._lock:
            if self._thread is not None or not self:
                return
            self._wake = os.pipe()
            os.set_blocking(self._wake[1], False)
            self._thread = threading.Thread(
                target=self._run, args=(self._wake[0],), name="sonde-query", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends that thread, and waits for it unless a callback does this."""
        with self._lock:
            in_callback = self._calling  # of this thread, which holds the lock
            thread, wake = self._thread, self._wake
            self._thread = self._wake = None
        if thread is None or wake is None:
            return
        os.close(wake[1])
        if not in_callback and thread is not threading.current_thread():
            thread.join()

    def _run(self, wake: int) -> None:
        try:
            while self:  # a callback may close it
                ready, _, _ = select.select([self.fileno(), wake], [], [])
                if wake in ready and not os.read(wake, 1024):
                    return
                if not self._poll_in_background():
                    return
        finally:
            os.close(wake)

    def _poll_in_background(self) -> bool:
        """Until there is no more to call; False if there never will be."""
        while True:
            try:
                if self.poll(0) == 0:
                    return True
            except QueryError as error:
                traceback.print_exc(file=sys.stderr)
                if error.code == LOST:
                    return False
            except Exception:  # of a callback
                traceback.print_exc(file=sys.stderr)

    # --- Parts of the above

    def _wake_thread(self) -> None:
        """After a question: values that came while it waited are for the thread to call."""
        if self._wake is not None and threading.current_thread() is not self._thread:
            with contextlib.suppress(BlockingIOError):  # it is full: the thread will wake up
                os.write(self._wake[1], b"x")

    def _stand(self, id: int, callback: Callable[[Any], object]) -> int:
        if id != 0:
            self._callbacks[id] = callback
        return id

    def _call_back(self, news: list[tuple[int, Any]]) -> tuple[int, list[BaseException]]:
        """How many calls that were, and what they raised."""
        calls, raised = 0, list[BaseException]()
        self._calling = True
        try:
            for id, what in news:
                callback = self._callbacks.get(id)
                if callback is None:  # cancelled, by one that was called before
                    continue
                calls += 1
                try:
                    callback(what)
                except BaseException as error:  # the others are called all the same
                    raised.append(error)
        finally:
            self._calling = False
        return calls, raised


def _print_all(raised: list[BaseException]) -> None:
    for one in raised:
        traceback.print_exception(type(one), one, one.__traceback__)


def _check_callback(callback: Any) -> None:
    if not callable(callback):
        raise TypeError(f"the callback: expected a function, not {type(callback).__name__}")
