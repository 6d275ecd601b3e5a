"""AnalysisClient, the class by which a program that was written for Dragon asks about its own step."""

import inspect
import pathlib
import sys

import pytest
from conftest import PACKAGE, run_python

sys.path.insert(0, str(PACKAGE))
from sonde import AnalysisClient  # noqa: E402

# --- What Dragon's class has: dragonhpc 0.15.0, dragon/telemetry/analysis.py.

METHODS = {
    "__init__": [],
    "connect": ["timeout"],
    "get_data": ["metrics", "tags", "start_time"],
    "get_metrics": [],
    "db_dump": [],
    "reboot": ["exclude_huids", "exclude_hostnames"],
}


def test_every_method_takes_what_dragons_takes():
    for name, parameters in METHODS.items():
        ours = list(inspect.signature(getattr(AnalysisClient, name)).parameters)
        assert ours[1:] == parameters, name


# Before a program: an object that is connected, and a wait for what was just set to be recorded.
PROLOGUE = """
import time
from sonde import AnalysisClient, Telemetry
dt, dac = Telemetry(), AnalysisClient()
dac.connect(timeout=60)
def wait(metric, value, tags=None):
    for _ in range(500):
        found = dac.get_data(metric, tags)
        if any(value in one["dps"].values() for one in found):
            return found
        time.sleep(0.01)
    raise SystemExit(f"no {value} in {found}")
def last(one):
    return one["dps"][max(one["dps"])]
"""


def test_answers_have_dragons_form(watch):
    watch.python(
        PROLOGUE
        + """
import os
began = int(time.time())
dt.add_data("map_time", 1)
dt.add_data("map_time", 2.5)
(one,) = wait("map_time", 2.5)
assert list(one) == ["metric", "tags", "aggregateTags", "dps"], one
assert one["metric"] == "map_time" and one["aggregateTags"] == []
assert one["tags"] == {"host": os.uname().nodename}
for when, value in one["dps"].items():
    assert isinstance(when, str) and isinstance(value, float)
    assert began <= int(when) <= time.time() and when == str(int(when))
several = dac.get_data(["used_RAM", "map_time"], start_time=began)
assert [one["metric"] for one in several] == ["used_RAM", "map_time"]
assert dac.get_data("map_time", start_time=0) and dac.get_data("map_time", start_time=-5)
assert dac.get_data("map_time", start_time=time.time() + 100) == []
assert dac.get_data("map_tim") == [] and dac.get_data([]) == [] and dac.get_data("a b/c") == []
""",
        level=2,
    )


def test_tags_are_asked_for_as_in_dragon(watch):
    watch.python(
        PROLOGUE
        + """
import os
host = {"host": os.uname().nodename}
dt.add_data("load", 9)
for gpu in (0, 1):
    dt.add_data("load", gpu, tagk="gpu", tagv=gpu)
dt.add_data("load", 5, tagk="disk", tagv="sda")
dt.add_data("plain", 3)
wait("plain", 3)
for tags in (None, "host", ["host"]):
    each = dac.get_data("load", tags)
    assert [one["tags"] for one in each] == [host] * 4
    assert [last(one) for one in each] == [9, 5, 0, 1]
for tags in ("gpu", ["gpu"], ["host", "gpu"], ["gpu", "host"]):
    found = dac.get_data("load", tags)
    assert [one["tags"] for one in found] == [{**host, "gpu": "0"}, {**host, "gpu": "1"}], found
    assert [last(one) for one in found] == [0, 1]
assert dac.get_data("plain", "gpu") == [] and dac.get_data("load", "cpu") == []
(one,) = dac.get_data("plain", ["host", "task"])
assert one["tags"] == {**host, "task": "0"}
""",
        level=2,
    )


def test_tags_that_come_later_are_told_apart(watch):
    done = watch.python(
        """
import time, sonde
from sonde import AnalysisClient
sonde.gauge("x").set(1)
dac = AnalysisClient()
dac.connect(timeout=60)
def newest(count):
    end = time.time() + 30
    while time.time() < end:
        found = [list(one["dps"].values())[-1] for one in dac.get_data("x")]
        if len(found) == count:
            return sorted(found)
print(newest(1), newest(1))
sonde.gauge("x", tags={"part": "a"}).set(5)
print(newest(2), newest(2))
"""
    )
    assert done.stdout == "[1.0] [1.0]\n[1.0, 5.0] [1.0, 5.0]\n"


def test_processes_of_a_pool_are_told_apart(watch):
    watch.python(
        PROLOGUE
        + """
import multiprocessing
methods = multiprocessing.get_context("fork")
ready, done = methods.Barrier(3), methods.Event()
def work(number):
    dt.add_data("load", number)
    ready.wait()
    assert wait("load", 20, "process"), "a child asks by a connection of its own"
    done.wait()
processes = [methods.Process(target=work, args=(n,)) for n in (10, 20)]
for process in processes: process.start()
ready.wait()
wait("load", 20, "process")
found = wait("load", 10, "process")
assert {one["tags"]["process"] for one in found} == {"1", "2"}
assert sorted(last(one) for one in found) == [10, 20]
assert [last(one) for one in wait("load", 15)] == [15], "together they are one, their mean"
done.set()
for process in processes:
    process.join()
    assert process.exitcode == 0
"""
    )


def test_one_may_be_passed_to_processes(watch):
    watch.python(
        PROLOGUE
        + """
import pickle
dt.add_data("value", 4)
wait("value", 4)
other = pickle.loads(pickle.dumps(dac))
assert [last(one) for one in other.get_data("value")] == [4]
assert pickle.loads(pickle.dumps(AnalysisClient())).__class__ is AnalysisClient
"""
    )


def test_dragons_names_are_there(watch):
    watch.python(
        PROLOGUE
        + """
dt.add_data("mine", 1)
wait("mine", 1)
names = dac.get_metrics()
assert isinstance(names, set)
assert names >= {"mine", "load_average", "used_RAM", "cpu_percent", "num_running_processes"}, names
assert "node_load1" in names and "DeviceUtilization" not in names
(load,), (node) = dac.get_data("load_average"), dac.get_data("node_load1")
assert load["metric"] == "load_average"
shared = load["dps"].keys() & node[0]["dps"].keys()
assert shared and all(load["dps"][when] == node[0]["dps"][when] for when in sorted(shared)[:-1])
(used,) = dac.get_data("used_RAM")
assert all(0 < value < 100 for value in used["dps"].values())
end = time.monotonic() + 10
while not dac.get_data("cpu_percent") and time.monotonic() < end:
    time.sleep(0.05)
(cpu,) = dac.get_data("cpu_percent")
assert cpu["dps"]
(processes,) = dac.get_data("num_running_processes")
assert last(processes) >= 1
""",
        level=2,
    )


def test_dragons_names_are_questions_in_general(watch):
    watch.python(
        """
import time
from sonde.query import Query
query, came = Query(), []
query.subscribe("cpu_percent", lambda news: came.append(news.series[0]), by="host")
query.watch("used_RAM > 0", came.append)
end = time.monotonic() + 30
while len(came) < 6 and time.monotonic() < end:
    query.poll(1)
names = {getattr(one, "metric") for one in came}
assert names == {"cpu_percent", "used_RAM"}, came
(info,) = query.metrics("cpu_percent")
assert (info.unit, info.type) == ("%", "gauge")
while not query.get("used_RAM", "max", last=60) and time.monotonic() < end:
    time.sleep(0.05)
(used,) = query.get("used_RAM", "max", last=60)
assert 0 < used.value < 100
""",
        level=2,
    )


def test_a_metric_of_the_program_comes_before_dragons_name(watch):
    watch.python(
        PROLOGUE
        + """
dt.add_data("used_RAM", 12345)
wait("used_RAM", 12345)
""",
        level=2,
    )


def test_names_are_found_as_they_were_given(watch):
    watch.python(
        PROLOGUE
        + """
dt.add_data("loss/train", 0.5)
(one,) = wait("loss/train", 0.5)
assert one["metric"] == "loss/train" and "loss_train" in dac.get_metrics()
"""
    )


def test_wrong_questions_raise_as_dragons_do(watch):
    watch.python(
        PROLOGUE
        + """
def raises(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    raise SystemExit(f"{call} {arguments} raised nothing")
for wrong in (None, 5, ("a",), {"a"}):
    assert "metrics" in raises(AttributeError, dac.get_data, wrong)
    if wrong is not None:
        assert "tags" in raises(AttributeError, dac.get_data, "a", wrong)
apart = AnalysisClient()
for call, arguments in ((apart.get_data, ["x"]), (apart.get_metrics, []), (apart.db_dump, [])):
    assert "connect()" in raises(RuntimeError, call, *arguments)
(dumped,) = dac.db_dump()
assert dumped["type"] == "dump" and dumped["result"]["status"] == "success"
"""
    )


@pytest.mark.parametrize("socket", [None, "/nowhere"], ids=["none", "of no daemon"])
def test_without_telemetry_there_is_nobody_to_ask(socket):
    done = run_python(
        """
from sonde import AnalysisClient
try:
    AnalysisClient().connect(timeout=0.1)
except RuntimeError as error:
    print(error)
""",
        env={"SONDE_SOCKET": socket, "SONDE_LEVEL": "2"} if socket else {},
    )
    assert done.stdout.startswith("connect(): "), done.stderr


def test_a_reboot_is_offered_and_not_done(tmp_path):
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\necho $* >>{tmp_path}/called\n")
    (tmp_path / "scontrol").chmod(0o755)
    program = "from sonde import AnalysisClient\nAnalysisClient().reboot(exclude_hostnames={})"
    for hosts, excluded in (("['n2', 'n3']", "n2,n3"), ("'n2'", "n2"), ("None", "")):
        done = run_python(
            program.format(hosts), env={"SLURM_JOB_ID": "47", "PATH": f"{tmp_path}:/usr/bin:/bin"}
        )
        assert done.returncode == 0 and done.stdout == "", done.stderr
        assert "scontrol requeuehold 47; " in done.stderr
        assert (f"JobId=47 ExcNodeList={excluded};" in done.stderr) == bool(excluded)
        assert ("--exclude" in done.stderr) == bool(excluded)
    # Slurm's list is set and not added to: what was offered before stays in it.
    again = run_python(
        "from sonde import AnalysisClient\nfor host in ('n2', 'n3'): AnalysisClient().reboot(exclude_hostnames=host)",
        env={"SLURM_JOB_ID": "47"},
    )
    assert "without n3: scontrol requeuehold 47; scontrol update JobId=47 ExcNodeList=n2,n3; " in again.stderr
    assert not pathlib.Path(tmp_path / "called").exists()
    assert "no Slurm job" in run_python(program.format("['n2']")).stderr


def test_who_does_not_ask_does_not_pay():
    program = "import sys, sonde; print([m for m in ('ctypes', 'threading') if m in sys.modules])"
    done = run_python(program)
    assert done.stdout == "[]\n", done.stderr
