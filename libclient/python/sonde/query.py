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

Threads: every method may be called from any thread; one waits for the other. After a fork the child
opens a Query of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import sys
import threading
import traceback
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Union

from . import _query_c as c

__all__ = ["Event", "Metric", "News", "Point", "Query", "QueryError", "Series"]

# Codes of sonde_query.h.
OK, OFF, INVALID, TIMEOUT, LOST, NOT_FOUND = 0, 1, 4, 32, 33, 34

_RATE, _RATE_COUNTER, _RATE_DROP, _EXPLICIT_TAGS = 1, 2, 4, 8


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


def _text(raw: Optional[bytes]) -> str:
    return "" if raw is None else raw.decode("utf-8", "replace")


def _tags(one: Any) -> dict[str, str]:
    return {_text(one.tags[i].key): _text(one.tags[i].value) for i in range(one.tag_count)}


def _series(one: c.Series) -> Series:
    raw = ctypes.string_at(one.points, one.point_count * c.POINT.size) if one.point_count else b""
    points = [Point(time * 1e-9, value) for time, value in c.POINT.iter_unpack(raw)]
    aggregated = tuple(_text(one.aggregated[i]) for i in range(one.aggregated_count))
    return Series(_text(one.metric), _tags(one), aggregated, points)


def _all_series(result: c.Result) -> list[Series]:
    return [_series(result.series[i]) for i in range(result.series_count)]


def _milliseconds(seconds: Optional[float]) -> int:
    """At most so long; None is for ever."""
    return -1 if seconds is None else min(max(int(seconds * 1000 + 0.999), 0), 2**31 - 1)


def _nanoseconds(seconds: Optional[float]) -> int:
    return 0 if seconds is None else int(seconds * 1e9)


Names = Union[str, Iterable[str]]


class Query:
    """A connection to the daemon of this node, for questions."""

    def __init__(self, timeout: float = 1.0):
        """Waits at most so many seconds for a daemon that is just starting."""
        self._lock = threading.RLock()
        self._kept: dict[int, Any] = {}  # callbacks that C may call, by id
        self._raised: list[BaseException] = []
        self._thread: Optional[threading.Thread] = None
        self._wake: Optional[tuple[int, int]] = None
        self._handle: Any = None
        self._lib = c.load()
        code = ctypes.c_int(OFF)
        self._handle = self._lib.sonde_query_open(_milliseconds(timeout), ctypes.byref(code))
        self.code = code.value
        self.error = "" if self._handle else _text(self._lib.sonde_strerror(code.value))

    def __bool__(self) -> bool:
        """Whether there is somebody to ask; `code` and `error` say why not."""
        return bool(self._handle)

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything; not from within a callback."""
        self.stop()
        with self._lock:
            handle, self._handle = self._handle, None
            self._lib.sonde_query_close(handle)
            self._kept.clear()

    def fileno(self) -> int:
        """For select: readable when poll() has something to do."""
        return int(self._lib.sonde_query_fd(self._handle))

    @property
    def period(self) -> float:
        """Of the step's ticks, in seconds: new values come that often."""
        return float(self._lib.sonde_query_period(self._handle))

    # --- Questions

    def metrics(self, name: str = "", timeout: float = 5.0) -> list[Metric]:
        """What is measured in the step so far: one metric, or all; each for all nodes and tasks."""
        found = ctypes.POINTER(c.List)()
        with self._locked():
            if not self:
                return []
            self._check(
                self._lib.sonde_query_list(
                    self._handle, name.encode() or None, _milliseconds(timeout), ctypes.byref(found)
                )
            )
        try:
            infos = [found.contents.metrics[i] for i in range(found.contents.metric_count)]
            return [
                Metric(_text(m.name), _text(m.unit), _text(m.help), _text(m.type), m.level, _tags(m))
                for m in infos
            ]
        finally:
            self._lib.sonde_list_free(found)

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
        result = ctypes.POINTER(c.Result)()
        question = _ask(
            metric, aggregator, downsample, rate, tags, filters, by, explicit_tags, last, start, end
        )
        with self._locked():
            if not self:
                return []
            self._check(
                self._lib.sonde_query_get(
                    self._handle, ctypes.byref(question), _milliseconds(timeout), ctypes.byref(result)
                )
            )
        try:
            return _all_series(result.contents)
        finally:
            self._lib.sonde_result_free(result)

    def alarm(self, name: str, rule: str, timeout: float = 5.0) -> None:
        """Has the step raise an alarm, until it ends, when a rule such as 'heat_residual max > 10 for 3s'
        holds: told in the profile, on the plots, and as the user wants alarms told. Every rank may say
        the same."""
        with self._locked():
            if not self:
                return
            self._check(
                self._lib.sonde_query_alarm(
                    self._handle, name.encode(), rule.encode(), _milliseconds(timeout)
                )
            )

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
        question = _ask(metric, aggregator, "", rate, tags, filters, by, explicit_tags)

        def news(_: object, result: Any) -> None:
            r = result.contents
            self._call(
                callback,
                News(
                    _all_series(r),
                    bool(r.late),
                    r.missed,
                    r.nodes_answered,
                    r.nodes_expected,
                    bool(r.rows_only),
                ),
            )

        kept = c.PointsFn(news)
        with self._locked():
            if not self:
                return 0
            return self._stand(
                self._lib.sonde_query_subscribe(self._handle, ctypes.byref(question), kept, None), kept
            )

    def watch(
        self, condition: str, callback: Callable[[Event], object], *, tell_end: bool = False
    ) -> int:
        """Calls back when the condition becomes true, and with `tell_end` when it is over:
        'METRIC[{tag=value,...}] [AGGREGATOR] [rate] [by KEY,...] COMPARISON NUMBER [for TIME]'.
        With `by`, for each group by itself: the event's tags name it. Gives an id for cancel()."""

        def tell(_: object, event: Any) -> None:
            e = event.contents
            one = e.series.contents
            self._call(
                callback,
                Event(e.id, bool(e.is_true), e.time_ns * 1e-9, e.value, _text(one.metric), _tags(one)),
            )

        kept = c.WatchFn(tell)
        with self._locked():
            if not self:
                return 0
            return self._stand(
                self._lib.sonde_query_watch(
                    self._handle, condition.encode(), int(tell_end), kept, None
                ),
                kept,
            )

    def cancel(self, id: int) -> None:
        """Ends a subscription or a watch."""
        with self._locked():
            if self:
                self._check(self._lib.sonde_query_cancel(self._handle, id))

    def poll(self, timeout: Optional[float] = 0.0) -> int:
        """Waits so long for news (None: for ever) and calls back; how many calls that were. What a
        callback raises comes out here; of several, the first, and the others are printed."""
        with self._lock:
            calls = self._lib.sonde_query_poll(self._handle, _milliseconds(timeout)) if self else 0
            if self._raised:
                raised, self._raised = self._raised, []
                for one in raised[1:]:
                    traceback.print_exception(type(one), one, one.__traceback__)
                raise raised[0]
            if calls < 0:
                self._check(-calls)
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
        """Ends that thread, and waits for it unless it is the one that calls."""
        with self._lock:
            thread, wake = self._thread, self._wake
            self._thread = self._wake = None
        if thread is None or wake is None:
            return
        os.close(wake[1])
        if thread is not threading.current_thread():
            thread.join()

    def _run(self, wake: int) -> None:
        try:
            while True:
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

    def _locked(self) -> _Held:
        return _Held(self)

    def _check(self, code: int) -> None:
        if code not in (OK, OFF):
            raise QueryError(code, _text(self._lib.sonde_query_error(self._handle)))

    def _stand(self, id: int, kept: Any) -> int:
        if id == 0:
            raise QueryError(INVALID, _text(self._lib.sonde_query_error(self._handle)))
        self._kept[id] = kept
        return id

    def _call(self, callback: Callable[[Any], object], what: Any) -> None:
        try:
            callback(what)
        except BaseException as raised:  # C is between here and poll()
            self._raised.append(raised)


class _Held:
    """The lock, for a question: values that came while it waited are for the thread to call."""

    def __init__(self, query: Query):
        self._query = query

    def __enter__(self) -> None:
        self._query._lock.acquire()

    def __exit__(self, *_: object) -> None:
        wake = self._query._wake
        if wake is not None and threading.current_thread() is not self._query._thread:
            with contextlib.suppress(BlockingIOError):  # it is full: the thread will wake up
                os.write(wake[1], b"x")
        self._query._lock.release()


def _ask(
    metric: str,
    aggregator: str,
    downsample: str,
    rate: Union[bool, str],
    tags: Optional[dict[str, str]],
    filters: Iterable[tuple[str, str, str]],
    by: Names,
    explicit_tags: bool,
    last: Optional[float] = None,
    start: Optional[float] = None,
    end: Optional[float] = None,
) -> c.Question:
    rates = {False: 0, True: _RATE, "counter": _RATE | _RATE_COUNTER, "drop": _RATE | _RATE_DROP}
    if rate not in rates:
        raise ValueError('rate: expected True, False, "counter" or "drop"')
    all_filters = list(_filters(tags or {}, filters, (by,) if isinstance(by, str) else by))
    question = c.Question(
        metric=metric.encode(),
        aggregator=aggregator.encode(),
        downsample=downsample.encode() or None,
        filters=(c.Filter * len(all_filters))(*all_filters),
        filter_count=len(all_filters),
        flags=rates[rate] | (_EXPLICIT_TAGS if explicit_tags else 0),
        last_seconds=0 if last is None else last,
        start_ns=_nanoseconds(start),
        end_ns=_nanoseconds(end),
    )
    return question


def _filters(
    tags: dict[str, str], filters: Iterable[tuple[str, str, str]], by: Iterable[str]
) -> Iterator[c.Filter]:
    for key, value in tags.items():
        yield c.Filter(b"literal_or", key.encode(), value.encode(), 0)
    for type, key, pattern in filters:
        yield c.Filter(type.encode(), key.encode(), pattern.encode(), 0)
    for key in by:
        yield c.Filter(b"wildcard", key.encode(), b"*", 1)
