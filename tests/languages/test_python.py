"""The Python package: what its users write, and what is in the profile afterwards."""

import json
import subprocess

import pytest
from conftest import PACKAGE, PYTHON, environment, interpreters, made_python, run, run_python

# --- What is recorded


def test_values_are_exact(watch):
    done = watch.python(
        """
import sonde
gauge = sonde.gauge("app_gauge", "seconds", "A gauge", tags={"part": 3})
counter = sonde.counter("app_total")
assert gauge.recorded and gauge.status == "done" and sonde.init() and sonde.status() == "done"
for i in range(1001):
    gauge.set(i * 0.25)
    counter.add()
counter.add(2.5)
counter.add(-1)
counter.add(float("nan"))
gauge.add(-0.25)
"""
    )
    gauge = done.entry("app_gauge", part="3")
    assert (gauge["last"], gauge["unit"]) == (249.75, "seconds")
    assert done.last("app_total") == 1003.5


@pytest.mark.parametrize("value", ["True", "7", "7.5", "Decimal('0.5')", "Fraction(1, 4)", "np"])
def test_whatever_python_takes_for_a_number_is_one(watch, value):
    done = watch.python(
        f"""
import sonde
from decimal import Decimal
from fractions import Fraction
class Scalar:  # as NumPy's and PyTorch's are
    def __float__(self): return 1.5
np = Scalar()
sonde.gauge("app_gauge").set({value})
print(float({value}))
"""
    )
    assert done.last("app_gauge") == float(done.stdout)


def test_a_time_of_its_own(watch):
    done = watch.python(
        """
import sonde, time
gauge = sonde.gauge("app_gauge")
gauge.set_at(1.0, time.time_ns() - 10**9)
gauge.set_at(2.0, time.time_ns())
"""
    )
    assert done.last("app_gauge") == 2.0


def test_a_metric_is_the_same_wherever_it_is_made(watch):
    done = watch.python(
        """
import sonde, pickle
counter = sonde.counter("app_total", tags={"b": "2", "a": "1"})
assert sonde.counter("app_total", tags={"a": 1, "b": 2}) is counter
assert pickle.loads(pickle.dumps(counter)) is counter
assert sonde.counter("app_total") is not counter
assert counter.tags == {"a": "1", "b": "2"} and counter.level == 1 and counter.unit is None
assert repr(counter) == "<sonde.Counter app_total {'a': '1', 'b': '2'}>"
sonde.counter("app_total", tags={"a": "1", "b": "2"}).add(3)
counter.add(4)
"""
    )
    assert done.last("app_total", a="1", b="2") == 7


def test_a_metric_above_the_level_is_not_recorded(watch):
    done = watch.python(
        """
import sonde
gauge = sonde.gauge("app_gauge", level=3)
gauge.set(1)
print(gauge.recorded, gauge.status)
"""
    )
    assert done.stdout.startswith("False the metric 'app_gauge' is of level 3")
    assert done.entries("app_gauge") == []


# --- Threads, processes, ends


def test_threads_add_to_one_counter(watch):
    done = watch.python(
        """
import sonde, threading
counter, histogram = sonde.counter("app_total"), sonde.histogram("app_values")
def work():
    own = sonde.counter("app_own_total")
    for i in range(20_000):
        counter.add()
        own.add(2)
        histogram.observe(1)
threads = [threading.Thread(target=work) for _ in range(5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    )
    assert (done.last("app_total"), done.last("app_own_total")) == (100_000, 200_000)
    values = done.distribution("app_values")
    assert (values["count"], values["sum"]) == (100_000, 100_000)


def test_a_forked_child_is_recorded_with_its_first_update(watch):
    done = watch.python(
        """
import os, sonde
counter, gauge = sonde.counter("app_total"), sonde.gauge("app_gauge")
values = sonde.histogram("app_values")
counter.add(1)
values.observe(1)
for i in range(3):
    child = os.fork()
    if child == 0:
        if i == 0: values.observe(2)
        counter.add(10)
        counter.add(10)
        gauge.set(i)
        sonde.annotate(f"child {i}")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
counter.add(1)
"""
    )
    assert (done.last("app_total"), done.last("app_gauge")) == (62, 2)
    assert done.distribution("app_values")["count"] == 2
    assert done.remarks() == ["child 0", "child 1", "child 2"]


def test_a_child_that_uses_no_metric_does_not_attach(watch):
    program = """
import os, sonde
sonde.counter("app_total").add()
child = os.fork()
if child == 0:
    sockets = [f for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{f}")
               and os.readlink(f"/proc/self/fd/{f}").startswith("socket:")]
    os._exit(len(sockets))
print(os.waitpid(child, 0)[1])
"""
    assert watch.python(program).stdout == "0\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(watch, tmp_path, method):
    # A file: spawned processes import it.
    program = tmp_path / "pool.py"
    program.write_text(
        """
import multiprocessing, sys, sonde
done = sonde.counter("app_total", tags={"kind": "item"})
def work(item):
    done.add(item)
    return item
def work_with(counter_and_item):
    counter_and_item[0].add(counter_and_item[1])
if __name__ == "__main__":
    passed = sonde.counter("app_passed_total")
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        assert sum(pool.map(work, range(100))) == 4950
        pool.map(work_with, [(passed, i) for i in range(10)])
        pool.close()
        pool.join()
    done.add(50)
"""
    )
    result = watch(PYTHON, program, method)
    assert result.returncode == 0, result.stderr
    assert (result.last("app_total"), result.last("app_passed_total")) == (5000, 45)


@pytest.mark.parametrize("thread", [True, False], ids=["of a thread", "of an object's end"])
def test_an_interpreter_that_ends_in_the_middle(watch, thread):
    done = watch.python(
        f"""
import atexit, sonde, threading
gauge, counter = sonde.gauge("app_gauge"), sonde.counter("app_total")
def forever():
    while True:
        gauge.set(1)
        sonde.counter("app_total")
class Late:
    def __del__(self, counter=counter): counter.add(2)
if {thread}:  # Python does not tear down what a living thread can see
    threading.Thread(target=forever, daemon=True).start()
    counter.add(2)
else:
    late = Late()
atexit.register(counter.add, 1)
"""
    )
    assert done.last("app_total") == 3


def test_what_a_killed_process_has_set_is_kept(watch):
    program = """
import os, signal, sonde
sonde.gauge("app_gauge").set(5)
sonde.counter("app_total").add(7)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = watch(PYTHON, "-c", program)
    assert done.returncode == 128 + 9
    assert (done.last("app_gauge"), done.last("app_total")) == (5, 7)


def test_finalize_ends_the_record(watch):
    done = watch.python(
        """
import sonde
counter = sonde.counter("app_total")
counter.add(1)
sonde.finalize()
assert not sonde.counter("app_late_total").recorded
"""
    )
    assert done.last("app_total") == 1 and done.entries("app_late_total") == []


# --- Timers and phases


def test_timers_measure_blocks_and_calls(watch):
    done = watch.python(
        """
import asyncio, sonde, time
busy = sonde.counter("app_seconds_total", "seconds")
@sonde.timer(busy)
def work(a, *, b):
    "What it does."
    time.sleep(0.02)
    return a + b
assert work(1, b=2) + work(3, b=4) == 10 and work.__name__ == "work"
assert work.__doc__ == "What it does."
with sonde.timer(busy) as timer:
    time.sleep(0.01)
assert 0.01 <= timer.seconds < 5

@sonde.timer("app_wait_seconds", help="Waiting", tags={"kind": "async"})
async def wait():
    await asyncio.sleep(0.01)
    return 5
assert asyncio.run(wait()) == 5

@sonde.timer("app_depth_seconds")
def recurse(n):
    return n and recurse(n - 1)
recurse(4)
try:
    with sonde.timer("app_failed_seconds"):
        raise KeyError("x")
except KeyError:
    pass
assert sonde.histogram("app_wait_seconds", tags={"kind": "async"}).unit == "seconds"
"""
    )
    assert 0.05 <= done.last("app_seconds_total") < 5
    counts = {"app_wait_seconds": 1, "app_depth_seconds": 5, "app_failed_seconds": 1}
    assert {name: done.distribution(name)["count"] for name in counts} == counts
    assert 0.01 <= done.distribution("app_wait_seconds")["min"] < 5


def test_moments(watch):
    done = watch.python(
        """
import sonde
@sonde.phase("read")
def read(n):
    with sonde.phase("parse"):
        return n + 1
assert read(1) == 2 and read.__name__ == "read"
sonde.phase_begin("open")
sonde.annotate("two\\nlines")
sonde.annotate("x" * 500)
sonde.annotate("  ")
sonde.figure("app_speed", 1)
sonde.figure("app_speed", 2.5, unit="1")
sonde.figure("app_error", float("nan"))
"""
    )
    assert done.phases() == {"read": (1, 1), "parse": (1, 1), "open": (1, 0)}
    assert done.remarks() == ["two lines", "x" * 189 + "..."]
    assert done.figures() == {"app_speed": (2.5, "1")}
    assert done.last("phase_seconds_total", phase="read") > 0


# --- Errors: the same with telemetry and without

ERRORS = {
    "gauge('1x')": "ValueError: the name of a metric '1x': expected 1 to 128 letters, digits",
    "gauge('x' * 129)": "expected 1 to 128 letters",
    "gauge(3)": "TypeError: the name of a metric: expected a str, not int",
    "gauge()": "TypeError: gauge() missing required argument 'name'",
    "gauge('x', 'a\\nb')": "ValueError: the unit 'a\\nb': expected a unit such as 'seconds'",
    "gauge('x', help='y' * 513)": "expected one line of at most 512 bytes",
    "gauge('x', level=5)": "ValueError: the level 5: expected 1 to 4",
    "gauge('x', level=10**30)": "expected 1 to 4",
    "gauge('x', level='2')": "TypeError: the level: expected an int from 1 to 4, not str",
    "gauge('x\\ud800')": "ValueError: the name of a metric 'x\\ud800': expected text",
    "gauge('x', tags=['a'])": "TypeError: the tags: expected a dict such as {'kind': 'read'}",
    "gauge('x', tags={'a b': 1})": "ValueError: the tag 'a b': expected 1 to 128 letters, digits",
    "gauge('x', tags={1: 'a'})": "TypeError: the key of a tag: expected a str, not int",
    "gauge('x', tags={'a': ''})": "ValueError: the value of a tag '': expected 1 to 128 bytes",
    "gauge('x', tags={'a': 1.5})": "TypeError: the value of a tag: expected a str or an int, not",
    "gauge('x', tags={'task': 1})": "ValueError: the tag 'task': expected another key",
    "gauge('x', tags={f't{i}': i for i in range(8)})": "ValueError: 8 tags: expected at most 7",
    "gauge('x').set('1')": "TypeError: Gauge.set(): expected a number, not str",
    "gauge('x').set(None)": "TypeError: Gauge.set(): expected a number, not NoneType",
    "gauge('x').set_at(1, 1.5)": "TypeError: the time: expected an int, nanoseconds since 1970",
    "counter('c').add('1')": "TypeError: Counter.add(): expected a number, not str",
    "counter('c').add(1, 2)": "TypeError: Counter.add(): expected at most one number, not 2",
    "counter('c').set(1)": "AttributeError",
    "histogram('h').observe([])": "TypeError: Histogram.observe(): expected a number, not list",
    "(gauge('x'), counter('x'))": "ValueError: 'x' with these tags is a gauge: expected another",
    "Gauge('x')": "TypeError: make one with sonde.gauge(name)",
    "annotate(b'x')": "TypeError: the remark: expected a str, not bytes",
    "phase('')": None,
    "phase_begin('')": "ValueError: the phase '': expected 1 to 128 bytes of text",
    "phase_end(None)": "TypeError: the phase: expected a str, not NoneType",
    "figure('a b', 1)": "ValueError: the name of a figure 'a b': expected 1 to 128 letters",
    "figure('a', '1')": "TypeError: figure(): expected a number, not str",
    "timer(1.5)": "TypeError: timer(): expected the name of a histogram, a histogram or a counter",
    "timer(counter('c'), tags={'a': 'b'})": "TypeError: timer(): help, level and tags are expected",
    "timer('t')(3)": "TypeError: expected a function to decorate, not int",
    # A value is no error: a run of many hours does not end because of one.
    "gauge('x').set(float('nan'))": None,
    "counter('c').add(-1)": None,
    "figure('a', float('inf'))": None,
    "annotate('two\\nlines \\udcff ' + 'x' * 500)": None,
}


@pytest.mark.parametrize("telemetry", [True, False], ids=["with telemetry", "without"])
def test_errors_say_what_was_expected(watch, telemetry):
    program = f"""
from sonde import *
import json, sonde
found = {{}}
for call in {list(ERRORS)!r}:
    try:
        eval(call)
        found[call] = None
    except Exception as error:
        found[call] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps([sonde.init(), found]))
"""
    done = watch.python(program) if telemetry else run_python(program)
    recorded, found = json.loads(done.stdout)
    assert recorded == telemetry
    for call, expected in ERRORS.items():
        assert (found[call] is None) == (expected is None), (call, found[call])
        assert expected is None or expected in found[call], call


# --- Without telemetry, other interpreters, types


def test_without_telemetry_nothing_happens_and_nothing_is_printed():
    done = run_python(
        """
import sonde
gauge, counter, histogram = sonde.gauge("g"), sonde.counter("c"), sonde.histogram("h")
gauge.set(1), gauge.set_at(1, 1), gauge.add(1), counter.add(), histogram.observe(1)
with sonde.phase("p"), sonde.timer("t"): pass
sonde.annotate("x"), sonde.figure("f", 1), sonde.finalize()
assert not gauge.recorded and not sonde.init()
print(gauge.status)
"""
    )
    assert done.stderr == ""
    assert done.stdout == "no telemetry was asked for (SONDE_SOCKET is not set)\n"


@pytest.mark.parametrize("interpreter", interpreters())
def test_one_file_serves_every_python(watch, interpreter):
    done = watch.python(
        """
import gc, sonde, sys
gauges = [sonde.gauge(f"app_gauge_{i}", tags={"i": i}) for i in range(1000)]
for round in range(20):
    for gauge in gauges: gauge.set(round)
    gauge.tags, gauge.name, repr(gauge)
counter, histogram = sonde.counter("app_total"), sonde.histogram("app_values")
references = sys.getrefcount(counter)
for i in range(1000):
    counter.add()
    histogram.observe(i)
    sonde.counter("app_total")
    try: sonde.gauge("app_total")
    except ValueError: pass
assert sys.getrefcount(counter) == references
@sonde.timer("app_seconds")
def work(): return 1
work()
gc.collect()
""",
        interpreter=interpreter,
    )
    assert done.last("app_total") == 1000 and done.last("app_gauge_999", i="999") == 19


def test_memory_does_not_grow_with_updates():
    done = run_python(
        """
import resource, sonde
gauge, counter = sonde.gauge("g", tags={"a": "b"}), sonde.counter("c")
def work(n):
    for i in range(n):
        gauge.set(i * 1.5), counter.add(i), sonde.gauge("g", tags={"a": "b"}), gauge.tags
        try: gauge.set("x")
        except TypeError: pass
        sonde.annotate("x")
work(1000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
work(50_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    )
    assert int(done.stdout) < 512, "KiB"


TYPED = """
import sonde

loss: sonde.Gauge = sonde.gauge("loss", tags={"model": "a", "layer": 3})
steps = sonde.counter("steps_total", unit="1", help="Steps", level=2)
sizes = sonde.histogram("sizes_bytes", "bytes")


@sonde.timer("solve_seconds")
def solve(n: int, *, deep: bool = False) -> float:
    with sonde.phase("inner"), sonde.timer(sizes) as timer:
        loss.set(n)
    return timer.seconds


@sonde.phase("outer")
def outer() -> None:
    seconds: float = solve(3, deep=True)
    steps.add()
    steps.add(seconds)
    loss.set_at(1, 2)
    sonde.annotate("done")
    sonde.figure("speed", 2.5, unit="1")


tags: dict[str, str] = loss.tags
telemetry = sonde.Telemetry(telem_cfg="telemetry.yaml")
telemetry.start(telemetry_level=telemetry.level)
telemetry.add_data("x", 1.0, timestamp=3, telemetry_level=1, tagk="a", tagv=0)
telemetry.shutdown()
recorded: bool = sonde.init() and loss.recorded
"""

WRONG = """
import sonde

sonde.gauge("x").set("1")
sonde.gauge("x", level="1")
sonde.counter("x").observe(1)
sonde.annotate(3)


@sonde.timer("t")
def f(n: int) -> int:
    return n


f("x")
"""


@pytest.fixture(scope="module")
def mypy():
    """mypy, which is no part of the distribution, in an environment that has the package."""
    return made_python("mypy").with_name("mypy")


def check_types(mypy, directory, text):
    file = directory / "program.py"
    file.write_text(text)
    command = [mypy, "--strict", "--cache-dir", directory / "cache", file]
    env = {k: v for k, v in environment().items() if k != "PYTHONPATH"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_types_are_known_to_mypy(mypy, tmp_path):
    done = check_types(mypy, tmp_path, TYPED)
    assert done.returncode == 0, done.stdout + done.stderr
    done = check_types(mypy, tmp_path, WRONG)
    assert [line.split(":")[1] for line in done.stdout.splitlines()[:-1]] == ["4", "5", "6", "7", "15"]


def test_the_package_itself_keeps_its_types(mypy, tmp_path):
    command = [mypy, "--strict", "--cache-dir", tmp_path / "cache", "-p", "sonde"]
    env = {k: v for k, v in environment().items() if k != "PYTHONPATH"}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_are_what_the_module_has(mypy, tmp_path):
    stubtest = mypy.with_name("stubtest")
    env = {k: v for k, v in environment().items() if k != "PYTHONPATH"}
    done = subprocess.run([stubtest, "sonde"], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def stable_symbols():
    """The names of Python's stable ABI as one of this machine's releases lists them, or none."""
    program = "from test.test_stable_abi_ctypes import SYMBOL_NAMES as s; print(*s)"
    for parameter in interpreters():
        listed = run(parameter.values[0], "-c", program)
        if listed.returncode == 0:
            return set(listed.stdout.split())
    return set()


def test_the_extension_uses_the_limited_interface_alone():
    extension = PACKAGE / "sonde" / "_sonde.abi3.so"
    symbols = run("nm", "-D", "--undefined-only", extension).stdout
    used = {line.split()[-1] for line in symbols.splitlines() if " _Py" in line or " Py" in line}
    needed = run("readelf", "--dynamic", extension).stdout
    assert "libstdc++" not in needed and "libpython" not in needed
    known = stable_symbols()
    if not known:
        pytest.skip("no Python here comes with the list of its stable ABI")
    assert used and used - known == set()
