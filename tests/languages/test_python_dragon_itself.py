"""Dragon 0.15.0 from PyPI beside Sonde: its classes answer the same questions, its programs run.

It is no part of the product: without the environment that scripts/prepare makes of it these tests are skipped.
The package has none of its example programs: they run where SONDE_DRAGON_SOURCE names a copy of its sources.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest
from conftest import BUILD, PYTHON, environment, made_python


@pytest.fixture(scope="module")
def dragon():
    """A Python with Dragon, what its telemetry needs, and what its programs and its detector compute with."""
    return made_python("dragon")


# --- The same answers

VALUES = [
    {"ts_metric_name": "map_time", "ts_data": 1.5},
    {"ts_metric_name": "map_time", "ts_data": 2},
    {"ts_metric_name": "loss/train", "ts_data": 0.25, "telemetry_level": 2},
    {"ts_metric_name": "a b", "ts_data": 3},
    {"ts_metric_name": "text", "ts_data": "7.5"},
    {"ts_metric_name": "detail", "ts_data": 1, "telemetry_level": 3},
    {"ts_metric_name": "gpu_load", "ts_data": 9},
    {"ts_metric_name": "gpu_load", "ts_data": 5, "tagk": "gpu", "tagv": 0},
    {"ts_metric_name": "gpu_load", "ts_data": 6, "tagk": "gpu", "tagv": 1},
    {"ts_metric_name": "gpu_load", "ts_data": 7, "tagk": "gpu", "tagv": 1},
    {"ts_metric_name": "named", "ts_data": 4, "tagk": "who", "tagv": "x y"},
    {"ts_metric_name": "half", "ts_data": 4, "tagk": "who", "tagv": None},
    {"ts_metric_name": "task", "ts_data": 8, "tagk": "kind", "tagv": "task"},
]
QUESTIONS = [
    {"metrics": "map_time"},
    {"metrics": ["map_time"], "tags": "host"},
    {"metrics": "loss/train"},
    {"metrics": ["a b", "text", "half"]},
    {"metrics": "detail"},
    {"metrics": "nothing"},
    {"metrics": []},
    {"metrics": "gpu_load"},
    {"metrics": "gpu_load", "tags": "gpu"},
    {"metrics": "gpu_load", "tags": ["gpu"]},
    {"metrics": "gpu_load", "tags": ["host", "gpu"]},
    {"metrics": "gpu_load", "tags": "who"},
    {"metrics": ["named", "gpu_load", "map_time"]},
    {"metrics": ["map_time", "gpu_load"], "tags": ["host", "gpu"]},
    {"metrics": "named", "tags": ["host", "who"]},
    {"metrics": "task", "tags": ["kind"]},
    {"metrics": "map_time", "start_time": 0},
    {"metrics": "map_time", "start_time": 4000000000},
]

OURS = """
import json, sys, time
from sonde import AnalysisClient, Telemetry
asked = json.load(sys.stdin)
dt, dac = Telemetry(), AnalysisClient()
for arguments in asked["values"]:
    dt.add_data(**arguments)
dac.connect(timeout=60)
end = time.monotonic() + 30
while not dac.get_data("task") and time.monotonic() < end:  # the last of them
    time.sleep(0.01)
found = [dac.get_data(**question) for question in asked["questions"]]
print(json.dumps({"data": found, "metrics": sorted(dac.get_metrics())}))
"""


def compared(answers):
    """Of each result what does not depend on when it was sampled; tags are text here."""
    return [
        [
            (
                one["metric"],
                {key: str(value) for key, value in one["tags"].items()},
                one["aggregateTags"],
                one["dps"][max(one["dps"])],
            )
            for one in answer
        ]
        for answer in answers
    ]


def ask(command, **options):
    asked = json.dumps({"values": VALUES, "questions": QUESTIONS})
    done = subprocess.run(
        [str(word) for word in command],
        input=asked,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_same_values_have_the_same_answers(dragon, tmp_path):
    theirs = ask([dragon, pathlib.Path(__file__).with_name("dragon_reference.py")])
    sonde = [BUILD / "cli" / "sonde", "--archive", tmp_path / "archive", "--config", os.devnull, "run"]
    watch = ["--quiet", "--level", "2", "--period", "20ms", "--"]
    ours = ask([*sonde, *watch, PYTHON, "-c", OURS], env=environment())
    for question, their, our in zip(QUESTIONS, compared(theirs["data"]), compared(ours["data"])):
        assert our == their, question
    recorded = {re.sub("[^a-zA-Z0-9_:.-]", "_", name) for name in theirs["metrics"]}
    assert recorded <= set(ours["metrics"])


SLOW_GPUS = """
import random
from dragon.telemetry.analysis import SlowGPUDetector as Theirs
from sonde import SlowGPUDetector as Ours
numbers, slow = random.Random(20), 0
for case in range(1000):
    points, data = numbers.choice([2, 4, 5, 7]), []
    for gpu in range(numbers.choice([1, 2, 8, 9, 12, 16, 32])):
        mean = 1 if numbers.random() < 0.9 else numbers.uniform(0.5, 2)
        dps = {str(1700000000 + p): mean + numbers.gauss(0, 0.01) for p in range(points)}
        data.append({"tags": {"host": f"n{gpu // 2}", "gpu": str(gpu % 2)}, "dps": dps})
    (restart, nodes), ours = Theirs.analyze_data(data, None), Ours.analyze_data(data, None)
    assert ours == (restart, sorted(set(nodes))), (case, data)
    slow += restart
assert slow > 100
"""


def test_the_same_gpus_are_slow(dragon):
    done = subprocess.run(
        [dragon, "-c", SLOW_GPUS], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- Its programs

IMPORT = re.compile(r"^from dragon\.telemetry(\.telemetry)? import", re.MULTILINE)


@pytest.fixture(scope="module")
def programs():
    """The folder of its examples for telemetry."""
    source = os.environ.get("SONDE_DRAGON_SOURCE")
    if not source:
        pytest.skip("the package has no programs, and SONDE_DRAGON_SOURCE names no copy of its sources")
    return pathlib.Path(source) / "examples" / "dragon_telemetry"


@pytest.mark.parametrize("name", ["scipy_scale_work.py", "scipy_scale_work_db_dump.py"])
def test_its_programs_run_with_the_import_changed(programs, dragon, watch, tmp_path, name):
    text = (programs / name).read_text()
    changed, count = IMPORT.subn("from sonde import", text)
    assert count == 1, "nothing else is changed"
    program = tmp_path / name
    program.write_text(changed)
    size = ["--num_workers", "2", "--iterations", "2", "--burns", "1", "--size", "32"]
    done = watch(dragon, program, *size, "--mem", "65536", "--work_time", "0.02", level=3, timeout=300)
    assert done.returncode == 0 and "Average time:" in done.stdout, done.stderr
    assert done.last("iteration") == 2 and done.last("iteration_time") > 0
    assert done.last("pool_start_time") > 0
    elapsed = done.entries("elapsed_time")
    assert {entry["tags"]["process"] for entry in elapsed} <= {"1", "2"}
    assert elapsed and all(entry["tags"]["puid"] and entry["last"] > 0 for entry in elapsed)
