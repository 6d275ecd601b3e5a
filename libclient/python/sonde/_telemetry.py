"""The interface of Dragon's telemetry, so that a program written for it runs under Sonde:

    from sonde import Telemetry   # was: from dragon.telemetry import Telemetry
"""

from __future__ import annotations

import os
import time

from ._sonde import Gauge, finalize, gauge, init

_NANOSECONDS = 1_000_000_000


class Telemetry:
    """Takes values under names. Every name, with its tag, is a gauge.

    As Sonde samples, the value that is there at a tick is recorded; of several between two ticks it
    is the last one. Values of several processes of a node stay apart by their rank.
    """

    def __init__(self, metrics_url: str | None = None, timeout: float | None = None) -> None:
        """Waits for nothing. The arguments are Dragon's and have no effect."""
        self._gauges: dict[tuple[str, int, str | None, str | int | None], Gauge] = {}

    @property
    def level(self) -> int:
        """The step's telemetry level, 0 where there is no telemetry."""
        level = os.environ.get("SONDE_LEVEL", "")
        return int(level) if level in ("1", "2", "3", "4") and init() else 0

    def add_data(
        self,
        name: str | None = None,
        value: float | None = None,
        timestamp: float | None = None,
        telemetry_level: int = 1,
        tagk: str | None = None,
        tagv: str | int | None = None,
        *,
        ts_metric_name: str | None = None,
        ts_data: float | None = None,
    ) -> None:
        """Adds a value.

        name             as a metric's: letters, digits and _ : . -
        value            a number
        timestamp        seconds since 1970, now unless given
        telemetry_level  1 to 4: it is recorded if the step's level is that or more
        tagk, tagv       a tag and its value, if both are given

        ts_metric_name and ts_data are Dragon's names of the first two.
        """
        if name is None:
            name = ts_metric_name
        if value is None:
            value = ts_data
        if name is None or value is None:
            raise TypeError("add_data(): expected a name and a value")
        key = (name, telemetry_level, tagk, tagv)
        try:
            metric = self._gauges[key]
        except KeyError:
            tags = {tagk: tagv} if tagk is not None and tagv is not None else None
            metric = self._gauges[key] = gauge(name, None, None, telemetry_level, tags)
        if timestamp is None:
            metric.set_at(value, time.time_ns())
        else:
            metric.set_at(value, int(timestamp * _NANOSECONDS))

    def finalize(self) -> None:
        """Ends the record of this process. Nobody waits for it: it may be left out."""
        finalize()
