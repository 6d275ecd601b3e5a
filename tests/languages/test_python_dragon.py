"""Telemetry, the class by which a program that was written for Dragon runs with one line changed.

What Dragon's class has, and what raises there, was read from the sources of the releases on PyPI.
"""

import inspect
import json
import sys

import pytest
from conftest import PACKAGE, PYTHON, run_python

sys.path.insert(0, str(PACKAGE))
from sonde import Telemetry  # noqa: E402

# --- What Dragon's class has: dragonhpc's dragon/telemetry/telemetry.py. "=" marks what has a default.

ADD_DATA = ["ts_metric_name", "ts_data", "timestamp=", "telemetry_level="]
TAGGED = [*ADD_DATA, "tagk=", "tagv="]
STARTED = {
    "__init__": ["metrics_url=", "timeout=", "telem_cfg="],
    "add_data": TAGGED,
    "start": ["telemetry_level="],
    "shutdown": [],
}
METHODS = {
    "0.11": {"__init__": ["metrics_url="], "add_data": ADD_DATA, "finalize": []},
    "0.12.0": {"__init__": ["metrics_url=", "timeout="], "add_data": TAGGED, "finalize": []},
    "0.13.2": {"__init__": ["metrics_url=", "timeout="], "add_data": TAGGED, "finalize": []},
    "0.14.0": STARTED,
    "0.15.0": STARTED,
}
ATTRIBUTES = ["formatted_data", "level", "metrics_url"]  # of all of them


@pytest.mark.parametrize("release", METHODS)
def test_every_method_takes_what_dragons_takes(release):
    for name, parameters in METHODS[release].items():
        ours = inspect.signature(getattr(Telemetry, name))
        names = [parameter.rstrip("=") for parameter in parameters]
        required = [parameter for parameter in parameters if not parameter.endswith("=")]
        ours.bind(None, *names)
        ours.bind(None, *required)
        ours.bind(None, **{parameter: 1 for parameter in names})
        assert list(ours.parameters)[1 : 1 + len(names)] == names, "the same by place and by name"


def test_every_attribute_is_there():
    done = run_python(
        f"""
from sonde import Telemetry
dt = Telemetry()
for name in {ATTRIBUTES}:
    assert getattr(dt, name) is not None
assert dt.level == 0 and dt.formatted_data == {{"dps": {{}}}} and dt.metrics_url.startswith("http")
dt.add_data("x", 1.5, 7)
assert dt.formatted_data == {{"timestamp": 7, "dps": [{{"metric": "x", "value": 1.5}}]}}
dt.add_data("x", 2, tagk="gpu", tagv=0)
assert dt.formatted_data["dps"] == [{{"metric": "x", "value": 2, "tags": {{"gpu": 0}}}}]
dt.formatted_data, dt.metrics_url = {{}}, "http://localhost:1/"
assert dt.formatted_data == {{}} and dt.metrics_url == "http://localhost:1/"
"""
    )
    assert done.returncode == 0, done.stderr


# --- Programs


def test_a_program_for_dragon(watch):
    done = watch.python(
        """
import math, time
from sonde import Telemetry
dt = Telemetry()
assert dt.level == 2
for i in range(10):
    dt.add_data("actual", math.sin(i))
dt.add_data("actual", 1, timestamp=int(time.time()))
dt.add_data("gpu_load", 0.5, tagk="gpu", tagv=0)
dt.add_data("gpu_load", 0.75, tagk="gpu", tagv="1")
dt.add_data("late", 3.0, time.time(), 2)
dt.add_data("detail", 1.0, telemetry_level=3)
dt.add_data(ts_metric_name="named", ts_data=4)
dt.shutdown()
""",
        level=2,
    )
    assert done.last("actual") == 1
    assert (done.last("gpu_load", gpu="0"), done.last("gpu_load", gpu="1")) == (0.5, 0.75)
    assert (done.last("late"), done.last("named")) == (3, 4)
    assert done.entry("late")["level"] == 2 and done.entries("detail") == []


@pytest.mark.parametrize("socket", [None, "/nowhere"], ids=["none", "of no daemon"])
def test_a_program_for_dragon_without_telemetry(socket):
    program = """
from sonde import Telemetry
for dt in (
    Telemetry(),
    Telemetry("http://localhost:4243/api/metrics", 3, "/nowhere/telemetry.yaml"),
    Telemetry(metrics_url=None, timeout=0.5, telem_cfg=None),
):
    dt.add_data("actual", 1)
    dt.start(telemetry_level=3)
    dt.start()
    dt.add_data("actual", 2)
    dt.shutdown()
    dt.shutdown()
    dt.finalize()
    dt.add_data("actual", 3)
    print(dt.level)
"""
    env = {"SONDE_SOCKET": socket, "SONDE_LEVEL": "2"} if socket else {}
    done = run_python(program, env={**env, "DRAGON_TELEMETRY_CONFIG": "/nowhere"})
    assert (done.stdout, done.stderr) == ("0\n" * 3, "")


def test_values_of_the_past_keep_their_time(watch):
    """Ten values of a minute ago, told at once: as Dragon has them, while the program runs and afterwards."""
    done = watch.python(
        """
import json, time
from sonde import AnalysisClient, Telemetry
dt = Telemetry()
base = int(time.time()) - 60
for second in range(10):
    dt.add_data("past", 50 + second, timestamp=base + second)
dt.add_data("past", 99, timestamp=base)  # the last word counts
dt.add_data("present", 1, timestamp=int(time.time()))
dac = AnalysisClient()
dac.connect(timeout=60)
ends, told = time.time() + 30, []
while time.time() < ends and (not told or len(told[0]["dps"]) < 10):
    told = dac.get_data("past", start_time=base)
print(json.dumps([base, told[0]["dps"]]))
"""
    )
    base, told = json.loads(done.stdout)
    wanted = {str(base + second): 50 + second for second in range(10)} | {str(base): 99}
    assert told == wanted
    assert done.last("present") == 1
    assert done.remarks() == []
    assert done.points("past") == {int(second): value for second, value in wanted.items()}


def test_a_value_of_the_past_counts_in_place_of_what_was_there(watch):
    """In questions, and in each kind of file."""
    done = watch.python(
        """
import time, sonde, sonde.query
g = sonde.gauge("both")
g.set(-1)
q = sonde.query.Query(60)
def points():
    try:
        return q.get("both", "sum", start=time.time() - 60)[0].points
    except sonde.query.QueryError:  # it is not there yet
        return []
ends = time.time() + 30
while len(points()) < 3 and time.time() < ends:
    pass
at = points()[1].time
g.set_past(5, round(at * 1e9))  # of a float, which is near it
while dict(points())[at] != 5 and time.time() < ends:
    pass
print(at, dict(points())[at])
"""
    )
    at, value = map(float, done.stdout.split())
    at = round(at, 3)  # ticks are of 20 ms
    assert value == 5
    assert done.points("both")[at] == 5
    text = [line.split()[-2:] for line in done.export("openmetrics:-", "both") if line.startswith("both")]
    assert [value for value, time in text if float(time) == at] == ["5"]
    assert {value for value, _ in text} == {"5", "-1"}


def test_values_count_between_start_and_shutdown(watch):
    done = watch.python(
        """
import sonde
dt, other = sonde.Telemetry(), sonde.Telemetry()
steps = sonde.counter("steps_total")
dt.add_data("value", 1)      # Dragon's start() is for where no telemetry was asked for
dt.shutdown()
dt.add_data("value", 2)
dt.add_data("never", 1)
dt.shutdown()
other.add_data("other", 5)   # what does not belong to this object goes on
steps.add(3)
assert dt.level == 2
dt.start(telemetry_level=4)  # a step's level stays
assert dt.level == 2
dt.start()
dt.add_data("again", 3)
dt.finalize()
dt.add_data("again", 4)
""",
        level=2,
    )
    assert (done.last("value"), done.last("again"), done.last("other")) == (1, 3, 5)
    assert done.last("steps_total") == 3 and done.entries("never") == []


def test_threads_share_one(watch):
    done = watch.python(
        """
import threading
from sonde import Telemetry
dt = Telemetry()
barrier = threading.Barrier(4)
def work(number):
    barrier.wait()  # their first values come at once
    for i in range(2000):
        dt.add_data("shared", 1)
        dt.add_data("own", i, tagk="thread", tagv=number)
        dt.formatted_data
        if number == 0:
            dt.start()
    dt.add_data("own", number, tagk="thread", tagv=number)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
dt.shutdown()
"""
    )
    assert done.last("shared") == 1
    assert [done.last("own", thread=str(n)) for n in range(4)] == [0, 1, 2, 3]


def test_a_forked_child_uses_what_it_inherits(watch):
    done = watch.python(
        """
import os
from sonde import Telemetry
dt = Telemetry()
dt.add_data("inherited", float("nan"))  # a value of the parent's could be the newer one
for ends in (False, True):
    child = os.fork()
    if child == 0:
        if ends:
            dt.shutdown()
        dt.add_data("inherited", 7)
        dt.add_data("ended" if ends else "new", 8)
        dt.shutdown()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
dt.add_data("after", 9)
"""
    )
    assert done.last("inherited", process="1") == 7, "the number of the first is free again"
    assert (done.last("new"), done.last("after")) == (8, 9)
    assert done.entry("after")["tags"].get("process") is None
    assert done.entries("ended") == []


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_a_pool_are_told_apart(watch, tmp_path, method):
    program = tmp_path / "pool.py"
    program.write_text(
        """
import multiprocessing, sys
from sonde import Telemetry
def work(number, barrier):
    dt = Telemetry()
    dt.add_data("load", number)
    barrier.wait()               # all of them are there at once
if __name__ == "__main__":
    Telemetry().add_data("load", 100)
    methods = multiprocessing.get_context(sys.argv[1])
    for generation in (0, 10):   # others come, and have the numbers of those that went
        barrier = methods.Barrier(3)
        processes = [methods.Process(target=work, args=(generation + n, barrier)) for n in range(3)]
        for process in processes: process.start()
        for process in processes: process.join()
"""
    )
    done = watch(PYTHON, program, method)
    assert done.returncode == 0, done.stderr
    found = {e["tags"].get("process", "0"): e["last"] for e in done.entries("load")}
    assert found.pop("0") == 100
    assert sorted(found) == ["1", "2", "3"] and sorted(found.values()) == [10, 11, 12]


def test_programs_that_a_task_runs_at_once_are_told_apart(watch, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys
from sonde import Telemetry
Telemetry().add_data("value", int(sys.argv[1]))
print(flush=True)
sys.stdin.readline()
"""
    )
    run = f"{PYTHON} {program}"
    first = f"coproc {run} 1; read -u ${{COPROC[0]}}"
    done = watch("bash", "-c", f"{first}; echo | {run} 2; echo >&${{COPROC[1]}}; wait")
    assert done.returncode == 0, done.stderr
    assert sorted(e["last"] for e in done.entries("value")) == [1, 2]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_one_may_be_passed_to_processes(watch, tmp_path, method):
    program = tmp_path / "pool.py"  # a file: spawned processes import it
    program.write_text(
        """
import copy, multiprocessing, sys
from sonde import Telemetry
class Mine(Telemetry):
    def __init__(self):
        super().__init__()
        self.mine = 5
def work(dt, item):
    dt.add_data("done", dt.mine, tagk="item", tagv=item)
    dt.shutdown()
if __name__ == "__main__":
    dt = Mine()
    dt.add_data("unusual", 1, tagk="key", tagv=lambda: 0)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        pool.starmap(work, [(dt, i) for i in range(4)])
        pool.close()
        pool.join()
    copy.deepcopy(dt).add_data("copied", 2)
"""
    )
    done = watch(PYTHON, program, method)
    assert done.returncode == 0, done.stderr
    assert [done.last("done", item=str(i)) for i in range(4)] == [5] * 4
    assert done.last("copied") == 2


# --- What raises there, and what is recorded of it here. Dragon's class sends whatever becomes JSON and
# does not look at the answer; without telemetry it does not look at the values either.

UNUSUAL = {  # arguments of add_data(): the series that is recorded, or None
    # names
    "'loss/train', 1": ("loss_train", {}, 1),
    "'a b', 2": ("a_b", {}, 2),
    "'température', 3": ("temp_rature", {}, 3),
    "'5th', 4": ("_5th", {}, 4),
    "'-x', 5": ("_-x", {}, 5),
    "'', 6": ("_", {}, 6),
    "'l' * 500, 7": ("l" * 128, {}, 7),
    "'lone_\\ud800', 8": ("lone__", {}, 8),
    "None, 1": None,
    "7, 1": None,
    "['list'], 1": None,
    # values
    "'v_text', '7.5'": ("v_text", {}, 7.5),
    "'v_true', True": ("v_true", {}, 1),
    "'v_decimal', Decimal('0.5')": ("v_decimal", {}, 0.5),
    "'v_scalar', Scalar()": ("v_scalar", {}, 1.5),
    "'v_none', None": None,
    "'v_words', 'many'": None,
    "'v_list', [1]": None,
    "'v_dict', {}": None,
    "'v_huge', 10 ** 400": None,
    "'v_broken', Broken()": None,
    "'v_nan', float('nan')": None,
    # times
    "'t_text', 1, str(time.time())": ("t_text", {}, 1),
    "'t_scalar', 2, Scalar()": ("t_scalar", {}, 2),
    "'t_milliseconds', 3, time.time() * 1000": ("t_milliseconds", {}, 3),
    "'t_nan', 4, float('nan')": ("t_nan", {}, 4),
    "'t_infinite', 5, float('inf')": ("t_infinite", {}, 5),
    "'t_words', 6, 'noon'": ("t_words", {}, 6),
    "'t_list', 7, [1]": ("t_list", {}, 7),
    "'t_negative', 8, -1": ("t_negative", {}, 8),
    "'t_text_both', '9', str(time.time())": ("t_text_both", {}, 9),
    # levels
    "'l_0', 1, None, 0": ("l_0", {}, 1),
    "'l_negative', 2, None, -3": ("l_negative", {}, 2),
    "'l_fraction', 3, None, 1.5": ("l_fraction", {}, 3),
    "'l_true', 4, None, True": ("l_true", {}, 4),
    "'l_decimal', 5, None, Decimal(2)": ("l_decimal", {}, 5),
    "'l_3', 6, None, 2.5": None,
    "'l_5', 7, None, 5": None,
    "'l_nan', 8, None, float('nan')": None,
    "'l_infinite', 9, None, float('inf')": None,
    # tags
    "'g', 1, None, 1, 'a b', 'c d'": ("g", {"a_b": "c d"}, 1),
    "'g', 2, None, 1, '1st', 0": ("g", {"_1st": "0"}, 2),
    "'g', 3, None, 1, 'task', 9": ("g", {"exported_task": "9"}, 3),
    "'g', 4, None, 1, 5, 'k'": ("g", {"_5": "k"}, 4),
    "'g', 5, None, 1, 'real', 1.5": ("g", {"real": "1.5"}, 5),
    "'g', 6, None, 1, 'flag', True": ("g", {"flag": "True"}, 6),
    "'g', 7, None, 1, 'flag', 1": ("g", {"flag": "1"}, 7),
    "'g', 8, None, 1, 'list', [1, 2]": ("g", {"list": "[1, 2]"}, 8),
    "'g', 9, None, 1, 'lines', 'a\\nb'": ("g", {"lines": "a?b"}, 9),
    "'g', 10, None, 1, 'long', 'ä' * 100": ("g", {"long": "ä" * 64}, 10),
    "'g_empty', 11, None, 1, 'key', ''": ("g_empty", {}, 11),
    "'g_key', 12, None, 1, 'key', None": ("g_key", {}, 12),
    "'g_value', 13, None, 1, None, 'value'": ("g_value", {}, 13),
    "'g_broken', 14, None, 1, 'key', Broken()": None,
    "'g', 15, None, 1, 'k' * 500, 1": ("g", {"k" * 128: "1"}, 15),
    # what the program has made otherwise
    "'counted_total', 9": ("counted_total", {}, 1),
}

# Where Dragon's raises, too, with telemetry and without.
WRONG = {
    "dt.add_data()": "missing 2 required positional arguments",
    "dt.add_data('x')": "missing 1 required positional argument: 'ts_data'",
    "dt.add_data('x', 1, unknown=2)": "unexpected keyword argument 'unknown'",
    "dt.add_data('x', 1, None, 1, 'k', 'v', 'w')": "positional arguments",
    "dt.add_data('x', 1, telemetry_level='2')": "the telemetry_level: expected a number, not str",
    "dt.add_data('x', 1, telemetry_level=None)": "expected a number, not NoneType",
    "Telemetry(unknown=1)": "unexpected keyword argument 'unknown'",
    "dt.start(2, 3)": "positional arguments",
}

# What Dragon's may be given without an error, and what does nothing here.
IDLE = [
    "Telemetry('http://h:1/', 3, 'file.yaml')",
    "Telemetry(None, None, None)",
    "Telemetry(timeout=0)",
    "dt.start()",
    "dt.start(None)",
    "dt.start('3')",
    "dt.start(telemetry_level=Scalar())",
]

PROLOGUE = """
import json, time, sonde
from decimal import Decimal
from sonde import Telemetry
class Scalar:  # as NumPy's and PyTorch's are
    def __float__(self): return 1.5
class Broken:
    def __float__(self): raise RuntimeError("no number")
    def __str__(self): raise RuntimeError("no text")
    def __hash__(self): raise RuntimeError("no key")
sonde.counter("counted_total").add(1)
dt = Telemetry()
found = {}
def attempt(call):
    try:
        eval(call)
    except Exception as error:
        found[call] = f"{type(error).__name__}: {error}"
"""


@pytest.mark.parametrize("telemetry", [True, False], ids=["with telemetry", "without"])
def test_nothing_raises_where_dragons_does_not(watch, telemetry):
    calls = [f"dt.add_data({arguments})" for arguments in UNUSUAL] + IDLE
    program = f"""{PROLOGUE}
for call in {calls!r}:
    attempt(call)
    attempt(call)  # a second time, when it is known
for call in {list(WRONG)!r}:
    attempt(call)
print(json.dumps(found))
"""
    done = watch.python(program, level=2) if telemetry else run_python(program)
    found = json.loads(done.stdout)
    assert set(found) == set(WRONG)
    for call, expected in WRONG.items():
        assert found[call].startswith("TypeError: ") and expected in found[call], found[call]
    assert done.stderr == ""
    if telemetry:
        check_recorded(done)
        check_noted(done)


def check_noted(done):
    """Once for each name, of which the first have room."""
    names = [remark.split(":")[0] for remark in done.remarks()]
    assert "add_data(None)" in names and len(names) == len(set(names)) == 16


def check_recorded(done):
    for arguments, expected in UNUSUAL.items():
        if expected is not None:
            name, tags, value = expected
            assert done.last(name, **tags) == value, arguments
        elif arguments.startswith("'"):
            assert done.entries(arguments.split("'")[1]) == [], arguments


def test_levels_above_the_highest_are_the_highest(watch):
    program = """
from sonde import Telemetry
dt = Telemetry()
dt.add_data("five", 1, telemetry_level=5)
dt.add_data("more", 2, telemetry_level=4.5)
dt.add_data("never", 3, telemetry_level=float("inf"))
"""
    done = watch.python(program, level=4)
    assert (done.last("five"), done.last("more")) == (1, 2) and done.entries("never") == []
    assert watch.python(program, level=3).entries("five") == []


def test_numpys_scalars_are_numbers(watch):
    if run_python("import numpy").returncode != 0:
        pytest.skip("there is no NumPy")
    done = watch.python(
        """
import numpy, time
from sonde import Telemetry
dt = Telemetry()
dt.add_data("n_float32", numpy.float32(0.5), numpy.int32(time.time()), numpy.int64(1))
dt.add_data("n_int8", numpy.int8(7), numpy.float64(time.time()), numpy.float32(1), "k", numpy.int64(2))
dt.add_data("n_one", numpy.array([3]))
dt.add_data("n_many", numpy.array([3, 4]))
dt.add_data(numpy.str_("n_name"), numpy.bool_(True))
"""
    )
    assert (done.last("n_float32"), done.last("n_int8", k="2")) == (0.5, 7)
    assert done.last("n_name") == 1 and done.entries("n_many") == []


def test_what_is_left_out_is_told_once_in_the_record(watch):
    done = watch.python(
        """
from sonde import Telemetry
for value in ("x", "y", [1]):
    Telemetry().add_data("bad", value)
Telemetry().add_data("worse", None)
"""
    )
    assert done.stderr == ""
    bad, worse = sorted(done.remarks())
    assert bad == "add_data('bad'): left out: could not convert string to float: 'x'"
    assert worse.startswith("add_data('worse'): left out: ")


def test_what_is_left_out_is_told_on_request():
    program = "from sonde import Telemetry\nTelemetry().add_data('bad', 'x')"
    assert run_python(program).stderr == ""
    told = run_python(program, env={"SONDE_DEBUG": "1"}).stderr.splitlines()
    assert any("add_data('bad'): left out: could not convert string" in line for line in told), told
