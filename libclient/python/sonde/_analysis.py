"""The analysis client of Dragon's telemetry, so that a program written for it runs under Sonde:

    from sonde import AnalysisClient   # was: from dragon.telemetry import AnalysisClient

Its questions are those of sonde.query, its answers have Dragon's form.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Iterable, Optional, Union

from ._sonde import annotate
from ._telemetry import PROCESS_TAG, as_name
from .query import NOT_FOUND, Metric, Query, QueryError, Series

_LAST_SECONDS = 5 * 60  # of data, where no start is given
_PATIENCE = 60.0  # seconds for a daemon that is just starting, where no timeout is given
_ANSWER = 10.0  # seconds: as long as the head takes at most

# Their GPUs have a number, as in Dragon; every other tag has a text.
_NUMBERED = ("DeviceUtilization", "DeviceMemoryUtilization", "DevicePowerUsage")

Words = Union[str, "list[str]"]
Result = dict[str, Any]


def _words(given: Any, what: str) -> list[str]:
    if isinstance(given, str):
        return [given]
    if isinstance(given, list):
        return given
    # What Dragon's raises, too.
    raise AttributeError(f"{what}: expected a str or a list, not {type(given).__name__}")


class AnalysisClient:
    """Asks for the data of the own step, while it runs.

    Threads may share one. A forked child may use what it inherits, and one may be pickled.
    """

    def __init__(self) -> None:
        self._query: Optional[Query] = None
        self._connected = False
        self._process = 0  # that the query belongs to
        self._plain: dict[str, str] = {}  # metrics whose series had no tags: how they are added up

    def connect(self, timeout: Optional[float] = None) -> None:
        """Has to be called before the first question.

        Waits at most `timeout` seconds for a daemon that is just starting. Raises RuntimeError if there
        is no telemetry to ask.
        """
        query = Query(_PATIENCE if timeout is None else timeout)
        if not query:
            raise RuntimeError(f"connect(): {query.error}")
        self._query, self._process, self._connected = query, os.getpid(), True

    def get_data(
        self, metrics: Words, tags: Optional[Words] = None, start_time: Optional[float] = None
    ) -> list[Result]:
        """The values of metrics of each node since `start_time`, or of the last five minutes.

        A result for each node and value of the tags, sorted by node:

            {"metric": "load_average", "tags": {"host": "n1"}, "aggregateTags": [],
             "dps": {"1700000000": 0.5, "1700000001": 0.25}}

        metrics     one name or a list: the application's own, Sonde's and Dragon's. A metric that is
                    not there has no result
        tags        one key or a list; results have these tags, and are of series that have them.
                    "task" and "process" tell apart who gave the values. Unless given, "host", and
                    each value of the metric's other tags has a result of its own
        start_time  seconds since 1970

        A second has one value, the last one. Values of several tasks or processes of a node are
        averaged, counters added up.
        """
        query = self._asked("get_data")
        asked = [] if tags is None else _words(tags, "tags")
        now = time.time()
        start = now - _LAST_SECONDS if start_time is None else max(float(start_time), 0.0)
        names = _words(metrics, "metrics")
        if start >= now:
            return []
        keys = [key for key in asked if key != "host"]  # each result has its host
        found = [one for name in names for one in self._results(query, name, keys, start)]
        return sorted(found, key=lambda one: str(one["tags"]["host"]))

    def get_metrics(self) -> set[str]:
        """The names of all metrics of the step so far, with those that Dragon has for some."""
        query = self._asked("get_metrics")
        return {metric.name for metric in _listed(query, "")}

    def db_dump(self) -> list[Result]:
        """Does nothing: the step's profile has all data, and stays in the user's archive."""
        self._asked("db_dump")
        message = "nothing to do: the step's profile has all data"
        return [{"type": "dump", "result": {"status": "success", "message": message}}]

    def reboot(
        self,
        *,
        exclude_huids: Optional[Iterable[int]] = None,
        exclude_hostnames: Union[str, Iterable[str], None] = None,
    ) -> None:
        """Prints the commands that run the job again without these nodes; it goes on meanwhile.

        Once for the same nodes, and a remark in the record says that it was asked for. Only the user
        decides to end a job. Numbers of nodes mean nothing in Slurm.
        """
        given = [exclude_hostnames] if isinstance(exclude_hostnames, str) else exclude_hostnames
        _offer_requeue([str(host) for host in given or ()])

    def _results(self, query: Query, name: str, keys: list[str], start: float) -> list[Result]:
        """Of one metric, by host and keys."""
        metric = as_name(name)
        # One question instead of two, unless there are tags by now.
        aggregator = self._plain.get(metric)
        if aggregator is not None and not keys:
            results = _ask(query, metric, aggregator, ["host"], [], start)
            if results and not any(_keys_of(one) for one in results):
                return [_result(name, one, keys) for one in results if _has_host(one)]
        listed = _listed(query, metric)
        if not listed:
            return []
        aggregator = "sum" if listed[0].type == "counter" else "avg"
        kinds = [(keys, list[str]())] if keys else _kinds(listed)
        if kinds == [([], [])]:
            self._plain[metric] = aggregator
        return [
            _result(name, one, keys)
            for shown, without in kinds
            for one in _ask(
                query,
                metric,
                aggregator,
                ["host", *shown],
                [("not_key", key, "") for key in without],
                start,
            )
            if _has_host(one)
        ]

    def _asked(self, what: str) -> Query:
        """The connection; of a process that inherited another's, one of its own."""
        if not self._connected:
            raise RuntimeError(f"{what}(): call connect() before")
        if self._query is None or self._process != os.getpid():
            self.connect()
        assert self._query is not None
        return self._query

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_query": None}


_offered: set[tuple[str, ...]] = set()
_excluded: list[str] = []  # of all offers so far: Slurm's list is replaced and not added to


def _offer_requeue(hosts: list[str]) -> None:
    if tuple(hosts) in _offered:
        return
    _offered.add(tuple(hosts))
    _excluded.extend(host for host in dict.fromkeys(hosts) if host not in _excluded)
    without = f" without {','.join(hosts)}" if hosts else ""
    annotate(f"reboot() asks to run the job again{without}")
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        offer = "there is no Slurm job to run again"
    else:
        listed = ",".join(_excluded)
        exclude = [f"scontrol update JobId={job} ExcNodeList={listed}"] if listed else []
        commands = [f"scontrol requeuehold {job}", *exclude, f"scontrol release {job}"]
        offer = f"to run the job again{without}: {'; '.join(commands)}"
        if listed:
            offer += " (add what you gave to --exclude yourself: the list replaces it)"
    print("sonde: reboot():", offer, file=sys.stderr, flush=True)


# --- Questions


def _listed(query: Query, name: str) -> list[Metric]:
    try:
        return query.metrics(name, timeout=_ANSWER)
    except QueryError as error:
        raise RuntimeError(str(error)) from error


def _has_host(series: Series) -> bool:
    return bool(series.points) and "host" in series.tags


def _keys_of(series: Series) -> set[str]:
    """Those that a metric's series have of their own."""
    return {*series.tags, *series.aggregated} - {"host", "job", "task", PROCESS_TAG}


def _kinds(listed: list[Metric]) -> list[tuple[list[str], list[str]]]:
    """The sets of keys that series of the metric have, each with the keys that they do not have."""
    sets = {frozenset(metric.tags) - {PROCESS_TAG} for metric in listed}
    every = frozenset[str]().union(*sets)
    return [(sorted(keys), sorted(every - keys)) for keys in sorted(sets, key=sorted)]


def _ask(
    query: Query,
    metric: str,
    aggregator: str,
    by: list[str],
    filters: list[tuple[str, str, str]],
    start: float,
) -> list[Series]:
    # Answers have a limit, and of a second only the last value counts.
    downsample = "1s-last" if query.period < 1 else ""
    try:
        return query.get(
            metric,
            aggregator,
            start=start,
            downsample=downsample,
            by=by,
            filters=filters,
            timeout=_ANSWER,
        )
    except QueryError as error:
        if error.code == NOT_FOUND:
            return []
        raise RuntimeError(str(error)) from error


def _result(name: str, series: Series, keys: list[str]) -> Result:
    tags: dict[str, Any] = {"host": series.tags["host"]}
    for key in keys:
        value = series.tags[key]
        tags[key] = int(value) if name in _NUMBERED and value.isdecimal() else value
    dps = {str(int(point.time)): point.value for point in series.points}
    return {"metric": name, "tags": tags, "aggregateTags": [], "dps": dps}
