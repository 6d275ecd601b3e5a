"""The interface of Dragon's telemetry, so that a program written for it runs under Sonde:

    from sonde import Telemetry   # was: from dragon.telemetry import Telemetry

Where Dragon's class raises nothing, this one does not either: names and tags are made to fit, and a
value that is no number is left out. A remark in the step's record says so, once for each name;
SONDE_DEBUG=1 tells every time.
"""

from __future__ import annotations

import os
import re
import time

from . import _process
from ._sonde import Gauge, annotate, gauge, init

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing costs more than all the rest
    from collections.abc import Callable
    from typing import Any, SupportsFloat, SupportsIndex, Union

    _Number = Union[SupportsFloat, SupportsIndex, str]

_NANOSECONDS = 1_000_000_000
_TIMES = range(-(2**63), 2**63)  # what fits a record
_SOON = 2 * _NANOSECONDS  # whole seconds are up to one behind
_LONG_AGO = 86_400 * _NANOSECONDS  # no time of the step, but the number of an iteration, for example
_LONGEST = 128  # bytes of a name or a tag
_LEVELS = (1, 2, 3, 4)
_MOST_NOTES = 16  # of a process

# What Dragon's object has where its configuration says nothing else.
_METRICS_URL = "http://localhost:4243/api/metrics"

# Of the values of a process that its task has started; the task's own process has no such tag.
PROCESS_TAG = "process"

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_:.-]")
_NOT_IN_KEYS = re.compile(r"[^a-zA-Z0-9_]")


# Of add_data()'s arguments, for all objects of the process: those of one name and tag are one series.
# By which /api/query knows these metrics: series/alias/aliases.h.
_HELP = "Recorded by Telemetry.add_data()."

_gauges: dict[tuple[Any, ...], Gauge] = {}
# The child's series are others.
_process.when_forked(_gauges.clear)

_noted: set[str] = set()


def as_name(text: str) -> str:
    """The name of a metric: what Sonde's names cannot have becomes '_'."""
    name = _NOT_IN_NAMES.sub("_", text)
    if name[:1] in "0123456789.-":  # so is "", which is in every text
        name = "_" + name
    return name[:_LONGEST]


def _as_tags(key: object, value: object) -> dict[str, str]:
    """The tag as Sonde's tags are. One without a text is no tag, as in Prometheus."""
    if key is None or value is None:
        return {}
    name = _NOT_IN_KEYS.sub("_", str(key))
    if name[:1] in "0123456789":
        name = "_" + name
    if name == "task":  # the rank's
        name = "exported_task"
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    text = text.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")
    return {name[:_LONGEST]: text} if text else {}


def _own_tags() -> dict[str, str]:
    """That of this process."""
    number = _process.number()
    return {PROCESS_TAG: str(number)} if number else {}


def _lowest(telemetry_level: float) -> int | None:
    """The lowest level of a step that records what is of this one, None if no level does.

    Dragon has levels above ours; who asks for our highest wants all there is.
    """
    try:
        if _LEVELS[-1] < telemetry_level < float("inf"):
            return _LEVELS[-1]
        return next((level for level in _LEVELS if telemetry_level <= level), None)
    except (TypeError, ValueError):
        kind = type(telemetry_level).__name__
        message = f"add_data(): the telemetry_level: expected a number, not {kind}"
        raise TypeError(message) from None


def _tell(name: object, why: object) -> None:
    """That a value was left out or changed: once in the record, and on request on standard error."""
    try:
        where = f"add_data({name!r:.60})"
        what = f"{where}: {why!s:.200}"
        if where not in _noted and len(_noted) < _MOST_NOTES:
            _noted.add(where)
            annotate(what)
        if os.environ.get("SONDE_DEBUG") == "1":
            os.write(2, f"sonde[{os.getpid()}]: {what}\n".encode("utf-8", "backslashreplace"))
    except Exception:  # standard error is closed, or this cannot be shown
        pass


def _time_of(name: str, timestamp: _Number, now: int) -> int:
    """Nanoseconds since 1970; now where the timestamp does not tell."""
    try:
        at = int(float(timestamp) * _NANOSECONDS)
        if at < now - _LONG_AGO and at in _TIMES:
            _tell(name, "a time of more than a day ago; recorded as of its arrival")
        if at in _TIMES:
            return at
        why = "too far away"
    except Exception as error:
        why = str(error)
    _tell(name, f"taken as of now: the timestamp: {why}")
    return now


def _set_unusual(set_value: Callable[[float, int], None], name: str, value: Any, at: int) -> None:
    """Where the usual way has raised: text may be a number, all else is left out."""
    try:
        set_value(float(value), at)
    except Exception as error:
        _tell(name, f"left out: {error}")


class Telemetry:
    """Takes values under names. Every name, with its tag, is a gauge.

    As Sonde samples, the value that is there at a tick is recorded; of several between two ticks it
    is the last one. Values of a node's processes stay apart: by their rank, and those of processes
    that a task has started by the tag `process`.

    Threads may share one. A forked child may use what it inherits, and one may be pickled.
    """

    def __init__(
        self,
        metrics_url: str | None = _METRICS_URL,
        timeout: float | None = None,
        telem_cfg: str | None = None,
    ) -> None:
        """Waits for nothing and reads nothing. The arguments are Dragon's and have no effect."""
        # Dragon's object ignores the argument, too. Nobody listens there.
        self.metrics_url = _METRICS_URL
        self._formatted: Any = {"dps": {}}
        self._newest: tuple[Any, ...] | None = None  # of add_data(), not in _formatted yet
        self._takes_values = True

    @property
    def level(self) -> int:
        """The step's telemetry level, 0 where there is no telemetry."""
        level = os.environ.get("SONDE_LEVEL", "")
        return int(level) if level in ("1", "2", "3", "4") and init() else 0

    @property
    def formatted_data(self) -> Any:
        """The newest value in the form in which Dragon sends it. Sonde sends it to nobody."""
        newest, self._newest = self._newest, None
        if newest is not None:
            name, value, timestamp, tagk, tagv = newest
            point = {"metric": name, "value": value}
            if tagk is not None and tagv is not None:
                point["tags"] = {tagk: tagv}
            self._formatted["timestamp"] = timestamp
            self._formatted["dps"] = [point]
        return self._formatted

    @formatted_data.setter
    def formatted_data(self, data: Any) -> None:
        self._newest, self._formatted = None, data

    def add_data(
        self,
        ts_metric_name: str,
        ts_data: _Number,
        timestamp: _Number | None = None,
        telemetry_level: float = 1,
        tagk: str | None = None,
        tagv: str | float | None = None,
    ) -> None:
        """Adds a value.

        ts_metric_name   its name. What is not a letter, a digit or one of _ : . - becomes '_'
        ts_data          a number, or text that is one. Anything else is left out
        timestamp        seconds since 1970, now unless given
        telemetry_level  1 to 4: it is recorded if the step's level is that or more
        tagk, tagv       a tag and its value, if both are given

        Raises TypeError if the level cannot be compared with a number.
        """
        now = time.time_ns()
        when = now // _NANOSECONDS if timestamp is None else timestamp
        self._newest = (ts_metric_name, ts_data, when, tagk, tagv)
        if not self._takes_values:
            return
        try:  # True, 1 and 1.0 are one key, but not one text
            metric = _gauges[ts_metric_name, telemetry_level, tagk, tagv, type(tagv)]
        except Exception:  # not known yet, or it cannot be a key
            made = self._make(ts_metric_name, telemetry_level, tagk, tagv)
            if made is None:
                return
            metric = made
        at = now if timestamp is None else _time_of(ts_metric_name, timestamp, now)
        past = now - _LONG_AGO <= at < now - _SOON
        set_value = metric.set_past if past else metric.set_at
        try:
            set_value(ts_data, at)  # type: ignore[arg-type]  # text raises
        except Exception:  # whatever the value's class raises: no run ends because of a value
            _set_unusual(set_value, ts_metric_name, ts_data, at)

    def _make(self, name: str, telemetry_level: float, tagk: Any, tagv: Any) -> Gauge | None:
        """The gauge of these, None if there can be none."""
        level = _lowest(telemetry_level)
        if level is None:
            return None
        if not isinstance(name, str):
            _tell(name, "left out: the name is no text")
            return None
        try:
            made = gauge(as_name(name), None, _HELP, level, _own_tags() | _as_tags(tagk, tagv))
        except Exception as error:  # a counter has this name; a tag that does not become text
            _tell(name, f"left out: {error}")
            return None
        try:
            _gauges[name, telemetry_level, tagk, tagv, type(tagv)] = made
        except Exception:  # a tag such as a list, which is made anew each time
            pass
        return made

    def start(self, telemetry_level: float = 2) -> None:
        """Takes values again after shutdown(). The step has its telemetry, at its level, or none."""
        self._takes_values = True

    def shutdown(self) -> None:
        """Takes no more values. What was recorded stays, and so does the step's telemetry."""
        self._takes_values = False

    def finalize(self) -> None:
        """The name that shutdown() had up to Dragon 0.13."""
        self.shutdown()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_newest": None}
