"""sonde.query: what its objects are, who owns what, and what wrong use does."""

import json

import pytest
from conftest import interpreters, run_python

PROLOGUE = """
import gc, os, sys, threading, time, weakref
import sonde
from sonde.query import *
from sonde.query import INVALID, NOT_FOUND

gauge = sonde.gauge("app_value", "bytes", "A value", tags={"kind": "a"})
gauge.set(7)
query = Query(20)
assert query and query.code == 0 and query.error == "" and abs(query.period - 0.02) < 1e-9

def newest():
    while True:
        try:
            found = query.get("app_value", last=60)
        except QueryError as error:
            assert error.code == NOT_FOUND, error
            continue
        if found:
            return found[0].points[-1].time

def wait_for_ticks(count=3):
    "So many values come meanwhile, and are called back with by the next poll()."
    first = newest()
    while newest() < first + (count - 0.5) * query.period: pass

def raises(kind, call, *words, **more):
    try:
        call(*words, **more)
    except kind as error:
        return str(error)
    raise SystemExit(f"{call} {words} raised nothing")

wait_for_ticks()
"""


# --- What answers are


@pytest.mark.parametrize("interpreter", interpreters())
def test_answers_are_the_same_on_every_python(watch, interpreter):
    watch.python(
        PROLOGUE
        + """
import pickle
(one,) = query.get("app_value", last=60, by=["task", "host"], tags={"kind": "a|b"},
                   filters=[("wildcard", "task", "*")])
assert type(one) is Series and type(one.points) is list and len(one.points) > 2
assert type(one.points[0]) is Point and one.value == 7.0
assert {k: one.tags[k] for k in ("kind", "task")} == {"kind": "a", "task": "0"} and "host" in one.tags
assert one.metric == "app_value" and one.aggregated == ()
assert abs(one.points[-1].time - time.time()) < 60
# They are tuples as Python makes them.
assert one.points[0] == tuple(one.points[0]) and hash(one.points[0]) == hash(tuple(one.points[0]))
assert pickle.loads(pickle.dumps(one)) == one and one._replace(metric="x").metric == "x"
(again,) = query.get("app_value", last=60, by="host")
assert {id(k) for k in again.tags} <= {id(k) for k in one.tags}  # one object for each key

(info,) = query.metrics("app_value")
assert info == Metric("app_value", "bytes", "A value", "gauge", 1, {"kind": "a"})
assert type(info) is Metric and info in query.metrics()

came = []
subscription = query.subscribe("app_value", came.append, "max")
watched = query.watch("app_value by host > 5", came.append)
while len({type(one) for one in came}) < 2: query.poll(1)
news = next(one for one in came if type(one) is News)
assert news == News(news.series, False, 0, 1, 1, False) and type(news.late) is bool
assert news.series[0].value == 7.0 and len(news.series[0].points) == 1
(event,) = [one for one in came if type(one) is Event]
assert (event.id, event.is_true, event.value, event.metric) == (watched, True, 7.0, "app_value")
assert event.tags["host"] == one.tags["host"]
query.cancel(subscription), query.cancel(watched)
assert raises(QueryError, query.cancel, watched) == "no subscription or watch of that id"
""",
        interpreter=interpreter,
    )


def test_times_and_rates_are_taken_as_they_were_given(watch):
    watch.python(
        PROLOGUE
        + """
end = newest()
for last in (60, 60.0, float("inf"), sys.maxsize): assert query.get("app_value", last=last)
(whole,) = query.get("app_value", start=end - 60, end=end + 0.01)
(cut,) = query.get("app_value", start=end - 0.03, end=end + 0.01)
assert cut.points == [point for point in whole.points if point.time >= end - 0.03] and cut.points[-1].time == end
for rate in (True, 1, "counter", "drop"): assert query.get("app_value", rate=rate)[0].value == 0.0
for rate in (False, 0): assert query.get("app_value", rate=rate)[0].value == 7.0
for timeout in (1e300, float("inf"), None): assert query.get("app_value", timeout=timeout)
for timeout in (0, -1, 1e-9, -1e300): assert query.poll(timeout) == 0
query.subscribe("app_value", lambda news: None)
for timeout in (1e300, float("inf"), None): assert query.poll(timeout) > 0
"""
    )


# --- Callbacks


def test_what_callbacks_raise_comes_out_and_the_others_are_called(watch):
    done = watch.python(
        PROLOGUE
        + """
called, printed = [], 0
def wrong(news):
    called.append("wrong")
    raise KeyError(called.count("wrong"))
def good(news): called.append("good")
first, second = query.subscribe("app_value", wrong), query.subscribe("app_value", wrong)
third = query.subscribe("app_value", good)
while not (called.count("wrong") > 1 and "good" in called[called.index("wrong"):]):
    called.clear()
    wait_for_ticks()
    try:
        query.poll(60)
        assert "wrong" not in called
    except KeyError as error:
        assert str(error) == "1"  # the first
        printed += called.count("wrong") - 1
print(printed)
def quit(news): raise SystemExit("as it was")
query.cancel(first), query.cancel(second), query.cancel(third)
query.subscribe("app_value", quit)
assert raises(SystemExit, query.poll, 60) == "as it was"
"""
    )
    assert int(done.stdout) > 0 and done.stderr.count("KeyError: ") == int(done.stdout)


def test_a_callback_may_ask_cancel_and_subscribe_but_not_poll(watch):
    watch.python(
        PROLOGUE
        + """
called, added = [], []
def once(news):
    called.append(query.get("app_value", last=60)[0].value)
    called.append(raises(QueryError, query.poll))
    query.cancel(id)
    added.append(query.subscribe("app_value", called.append))
id = query.subscribe("app_value", once)
wait_for_ticks()
assert query.poll(60) == 1
assert called == [7.0, "poll() was called from within a callback"]
while len(called) == 2: query.poll(1)
assert type(called[2]) is News
"""
    )


@pytest.mark.parametrize("background", [False, True], ids=["poll", "a thread"])
def test_a_callback_may_close(watch, background):
    done = watch.python(
        PROLOGUE
        + f"""
called, closed = [], threading.Event()
def close(news):
    called.append(news)
    query.close()
    assert not query and query.get("app_value") == [] and query.fileno() == -1
    closed.set()
query.subscribe("app_value", close), query.subscribe("app_value", close)
wait_for_ticks()
if {background}:
    query.start()
    (thread,) = [one for one in threading.enumerate() if one.name == "sonde-query"]
    assert closed.wait(60)
    thread.join()
else:
    assert query.poll(60) == 1
assert len(called) == 1 and query.poll() == 0
"""
    )
    assert done.stderr == ""


def test_a_callback_of_poll_may_stop_the_thread(watch):
    watch.python(
        PROLOGUE
        + """
stopped = threading.Event()
def stop(news):
    query.stop()
    stopped.set()
query.subscribe("app_value", stop)
query.start()
while not stopped.is_set():  # in either thread
    query.poll(0.01)
"""
    )


# --- Who owns what


@pytest.mark.parametrize("interpreter", interpreters())
def test_what_is_not_used_any_more_goes(watch, interpreter):
    watch.python(
        PROLOGUE
        + """
def is_open(number):
    try: os.fstat(number)
    except OSError: return False
    return True
gc.disable()
alone = Query(10)
descriptor = alone.fileno()
assert is_open(descriptor)
del alone
assert not is_open(descriptor)

class Owner:  # of a query that holds its methods
    def __init__(self):
        self.query = Query(10)
        self.query.subscribe("app_value", self.on_news)
        self.query.watch("app_value > 1", lambda event: self.on_news(event))
    def on_news(self, news): pass
owner = Owner()
gone, descriptor = weakref.ref(owner), owner.query.fileno()
owner.query.poll(1)
del owner
gc.collect()
assert gone() is None and not is_open(descriptor)

# What a callback raised does not keep the program's objects alive.
class Thing: pass
def raiser(news):
    thing = Thing()
    things.append(weakref.ref(thing))
    raise KeyError
things = []
query.subscribe("app_value", raiser), query.subscribe("app_value", raiser)
while len(things) < 2: raises(KeyError, query.poll, 60)
assert things and not any(thing() for thing in things)
query.close()
""",
        interpreter=interpreter,
    )


@pytest.mark.parametrize("interpreter", interpreters())
def test_memory_does_not_grow_with_questions(watch, interpreter):
    done = watch.python(
        PROLOGUE
        + """
import resource
from sonde import _sonde
calls = []
def callback(news): calls.append(1)
def attempt(call, *words, **more):
    try: call(*words, **more)
    except Exception: pass
def work(count):
    for i in range(count):
        query.get("app_value", start=start, end=end, by=("host", "task"), tags={"kind": "a"},
                  filters=[("wildcard", "task", "*")])
        query.get("app_value", rate="drop", end=end)
        query.metrics("app_value")
        attempt(query.get, "no_such_metric")
        attempt(query.get, "app_value", rate=[])
        attempt(query.get, "app_value", filters=[("a", "b", "c"), ("a", "b", 3)])
        attempt(query.get, "app_value", tags={"a": "b", "c": 1})
        attempt(query.watch, "app_value >", callback)
        query.cancel(query.watch("app_value > 1", callback))
        query.cancel(query.subscribe("app_value", callback, by="host"))
        query.poll(0)
        if i % 50 == 0:
            with Query(10) as other:
                other.subscribe("app_value", callback)
                other.poll(1)
    calls.clear()
    gc.collect()
end = newest()
start = end - 0.1
work(100)
kinds = [None, True, Series, Point, News, Event, Metric, QueryError, _sonde.Connection]
blocks, counts = sys.getallocatedblocks(), [sys.getrefcount(one) for one in kinds]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
work(400)
more = [sys.getrefcount(one) - count for one, count in zip(kinds, counts)]
print(sys.getallocatedblocks() - blocks, max(more), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
""",
        interpreter=interpreter,
    )
    blocks, references, memory = map(int, done.stdout.split())
    # Python's own caches come and go; one lost object a question would be thousands.
    assert blocks < 300 and references < 50 and memory < 512, done.stdout


# --- Ends, threads, processes


def test_a_closed_query_is_as_without_telemetry(watch):
    watch.python(
        PROLOGUE
        + """
query.subscribe("app_value", print)
with query: pass
query.close()
assert not query and query.fileno() == -1 and query.period == 0 and query.code == 0
assert query.get("app_value") == [] == query.metrics() and query.poll(60) == 0
assert query.subscribe("app_value", print) == 0 == query.watch("app_value > 1", print)
assert query.cancel(1) is query.alarm("a", "app_value > 1") is query.start() is query.stop() is None
assert "expected" in raises(TypeError, query.get, 3)
"""
    )


def test_a_child_needs_a_query_of_its_own(watch):
    watch.python(
        PROLOGUE
        + """
query.subscribe("app_value", lambda news: None)
child = os.fork()
if child == 0:
    words = "this query was opened by the parent process; open another"
    for call in (lambda: query.get("app_value"), query.metrics, query.poll, lambda: query.cancel(1),
                 lambda: query.alarm("a", "app_value > 1"), lambda: query.watch("app_value > 1", print),
                 lambda: query.subscribe("app_value", print)):
        assert raises(QueryError, call) == words
    query.close()
    assert Query(10).get("app_value")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert query.poll(60) > 0 and query.get("app_value")
"""
    )


def test_threads_share_a_query(watch):
    watch.python(
        PROLOGUE
        + """
wrong, news = [], []
query.subscribe("app_value", news.append)
query.start()
def ask(tag):
    try:
        for i in range(100):
            (one,) = query.get("app_value", last=60, by=tag)
            if one.value != 7.0 or tag not in one.tags: wrong.append(one)
    except BaseException as error:
        wrong.append(error)
threads = [threading.Thread(target=ask, args=(tag,)) for tag in ("host", "task", "kind")]
for thread in threads: thread.start()
for thread in threads: thread.join()
while not news: pass
assert wrong == [], wrong[0]
query.close()
"""
    )


def test_the_extension_lets_one_thread_in_at_a_time(watch):
    watch.python(
        PROLOGUE
        + """
from sonde import _sonde, query as module
connection = _sonde.Connection(10, module._CLASSES)
words = ("app_value", "avg", "", False, None, (), (), False, None, None, None, 5)
def wait():
    while True:  # without the lock of Query
        try: connection.poll(None)
        except RuntimeError: pass
threading.Thread(target=wait, daemon=True).start()
refused = ""
while not refused:
    try: connection.get(*words)
    except RuntimeError as error: refused = str(error)
assert refused == "another thread uses this connection" and connection
assert raises(RuntimeError, connection.close) == refused
os._exit(0)  # that thread waits for ever
"""
    )


def test_a_second_interpreter_calls_back_by_itself(watch):
    done = watch.python(
        PROLOGUE
        + """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    print("none")
    raise SystemExit
other = interpreters.create()
interpreters.run_string(other, '''
import sys
sys.path[:0] = %r
from sonde.query import Query
query, values = Query(20), []
query.subscribe("app_value", lambda news: values.append(news.series[0].value))
query.watch("app_value > 1", lambda event: values.append(event.value))
while len(values) < 3: query.poll(1)
assert set(values) == {7.0}
query.close()
''' % sys.path)
interpreters.destroy(other)
assert query.get("app_value")
"""
    )
    if done.stdout == "none\n":
        pytest.skip("this Python has no module for interpreters")


# --- Errors: the same with telemetry and without

ERRORS = {
    "get(3)": "TypeError: the metric: expected a str, not int",
    "get('a\\0b')": "ValueError: the metric 'a\\x00b': expected text without a NUL",
    "get('a\\ud800')": "ValueError: the metric 'a\\ud800': expected text that UTF-8 can express",
    "get('a', None)": "TypeError: the aggregator: expected a str, not NoneType",
    "get('a', downsample=1)": "TypeError: the downsample: expected a str, not int",
    "get('a', rate='up')": 'ValueError: rate: expected True, False, "counter" or "drop"',
    "get('a', rate=[])": 'ValueError: rate: expected True, False, "counter" or "drop"',
    "get('a', last='1')": "TypeError: last: expected a number, not str",
    "get('a', last=-1)": "ValueError: last -1: expected seconds, 0 or more, or None",
    "get('a', last=float('nan'))": "ValueError: last nan: expected seconds, 0 or more, or None",
    "get('a', last=10**400)": "OverflowError",
    "get('a', start=float('nan'))": "ValueError: start nan: expected seconds since 1970, or None",
    "get('a', start=1e300)": "ValueError: start 1e+300: expected seconds since 1970, or None",
    "get('a', end=-float('inf'))": "ValueError: end -inf: expected seconds since 1970, or None",
    "get('a', end='now')": "TypeError: end: expected a number, not str",
    "get('a', timeout='1')": "TypeError: the timeout: expected a number, not str",
    "get('a', timeout=float('nan'))": "ValueError: the timeout nan: expected seconds, or None for",
    "get('a', by=3)": "TypeError: by: expected the key of a tag or several, such as",
    "get('a', by=['host', 3])": "TypeError: a key of by: expected a str, not int",
    "get('a', by=['k'] * 65)": "ValueError: tags, filters and by: expected at most 64 of them together",
    "get('a', by=itertools.repeat('k'))": "ValueError: tags, filters and by: expected at most 64",
    "get('a', by=(1 / 0 for i in 'a'))": "ZeroDivisionError",
    "get('a', tags=['k'])": "TypeError: the tags: expected a dict such as {'host': 'n1|n2'}, not list",
    "get('a', tags={'k': 1})": "TypeError: the value of a tag: expected a str, not int",
    "get('a', tags={1: 'v'})": "TypeError: the key of a tag: expected a str, not int",
    "get('a', filters=3)": "TypeError: the filters: expected a list of (type, tag, pattern), not int",
    "get('a', filters=[3])": "TypeError: a filter: expected (type, tag, pattern), such as",
    "get('a', filters=[('a', 'b')])": "ValueError: a filter ('a', 'b'): expected (type, tag, pattern)",
    "get('a', filters=[('a', 'b', 1)])": "TypeError: the pattern of a filter: expected a str, not int",
    "get('a', filters=[('a', 'b\\0', 'c')])": "ValueError: the tag of a filter 'b\\x00': expected text",
    "metrics(b'a')": "TypeError: the name of a metric: expected a str, not bytes",
    "alarm('a', None)": "TypeError: the rule of an alarm: expected a str, not NoneType",
    "alarm(1, 'a > 1')": "TypeError: the name of an alarm: expected a str, not int",
    "subscribe('a', 3)": "TypeError: the callback: expected a function, not int",
    "subscribe(3, print)": "TypeError: the metric: expected a str, not int",
    "watch('a > 1', None)": "TypeError: the callback: expected a function, not NoneType",
    "watch(None, print)": "TypeError: the condition: expected a str, not NoneType",
    "cancel('1')": "TypeError: the id: expected an int that subscribe() or watch() gave, not str",
    "poll('1')": "TypeError: the timeout: expected a number, not str",
    "poll(float('nan'))": "ValueError: the timeout nan: expected seconds, or None for ever",
}


@pytest.mark.parametrize("telemetry", [True, False], ids=["with telemetry", "without"])
def test_errors_say_what_was_expected(watch, telemetry):
    program = f"""
from sonde.query import *
import itertools, json
found, query = {{}}, Query(10)
for call in {list(ERRORS)!r}:
    try:
        eval("query." + call)
        found[call] = None
    except Exception as error:
        found[call] = f"{{type(error).__name__}}: {{error}}"
for id in (0, -1, 2**64 - 1, 2**64, 10**40):
    try:
        query.cancel(id)
        assert not query
    except QueryError as error:
        assert str(error) == "no subscription or watch of that id"
print(json.dumps([bool(query), found]))
"""
    done = watch.python(program) if telemetry else run_python(program)
    asked, found = json.loads(done.stdout)
    assert asked == telemetry
    for call, expected in ERRORS.items():
        assert found[call] is not None and expected in found[call], (call, found[call])


def test_without_telemetry_there_is_no_answer_and_no_call():
    done = run_python(
        """
from sonde.query import *
from sonde.query import OFF
with Query() as query:
    assert not query and query.code == OFF
    assert query.get("a", last=60, by="host", tags={"a": "b"}) == [] == query.metrics("a")
    assert query.subscribe("a", print) == 0 == query.watch("a > 1", print) and query.poll(None) == 0
    query.cancel(1), query.alarm("a", "a > 1"), query.start(), query.stop()
    print(query.error)
"""
    )
    assert (done.stdout, done.stderr) == ("no telemetry was asked for (SONDE_SOCKET is not set)\n", "")
