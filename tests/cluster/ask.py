"""ask.c in Python: what test_query.py's Python tests run, on rank 0 of four.

    ask.py VALUES|BACKGROUND|DRAGON DONE

The ranks beside it are ask.c's: they set the values.
"""

import pathlib
import sys
import threading

from sonde import AnalysisClient
from sonde.query import INVALID, NOT_FOUND, Query, QueryError

PATIENCE = 20.0


def wait_for_ranks(query):
    there = []
    id = query.subscribe("ask_value", lambda news: there.append(news.series[0].value), "count")
    while 4.0 not in there:
        assert query.poll(PATIENCE) > 0
    query.cancel(id)


def print_answer(name, answer, tag=None):
    values = (f"{series.tags[tag] if tag else 'all'}={series.value:g}" for series in answer)
    print(name, *values)


def values(query):
    (metric,) = query.metrics("ask_value")
    print(*metric)
    print_answer("sum", query.get("ask_value", "sum", last=60))
    print_answer("by_host", query.get("ask_value", by="host", last=60), "host")
    print_answer("by_task", query.get("ask_value", by=("task",), last=60), "task")
    print_answer("filtered", query.get("ask_value", "sum", tags={"host": "n2|n3"}))
    print_answer("wildcard", query.get("ask_value", "sum", filters=[("wildcard", "host", "*1")]))
    print_answer("total", query.get("ask_total", "sum", downsample="0all-max", last=60))
    for metric, code in (("no_such_metric", NOT_FOUND), ("not a name", INVALID)):
        try:
            query.get(metric)
        except QueryError as error:
            print(error.code == code, error)


def background(query):
    """A thread calls back while this one asks; what a callback raises is printed, not lost."""
    called, over = threading.Event(), []

    def on_event(event):
        over.append((event.tags.get("host"), event.value, threading.current_thread().name))
        if len(over) == 2:
            called.set()
        raise RuntimeError("said the callback")

    query.start()
    query.watch("ask_value by host > 25", on_event)
    for _ in range(100):
        query.get("ask_value", "sum")
    assert called.wait(PATIENCE)
    query.stop()
    print(*sorted(over))
    try:
        query.watch("ask_value > 1", on_event)
        while query.poll(PATIENCE) >= 0:
            pass
    except RuntimeError as error:
        print(error)


def dragon(_):
    """By Dragon's client: a result for each node."""
    client = AnalysisClient()
    client.connect(timeout=10)
    for tags in (None, "kind", ["host", "task"], "nothing"):
        found = client.get_data("ask_value", tags)
        last = ((one["tags"], one["dps"][max(one["dps"])]) for one in found)
        print(tags, *(f"{','.join(of.values())}={value:g}" for of, value in last))
    (total,) = {sum(one["dps"][max(one["dps"])] for one in client.get_data("ask_total"))}
    print("ask_total", total, {"ask_value", "ask_total"} <= client.get_metrics())


def main():
    try:
        with Query(timeout=10) as query:
            wait_for_ranks(query)
            modes = {"VALUES": values, "BACKGROUND": background, "DRAGON": dragon}
            modes[sys.argv[1]](query)
    finally:
        pathlib.Path(sys.argv[2]).touch()


if __name__ == "__main__":
    main()
