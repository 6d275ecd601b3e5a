"""CollectorGroup, Detector and their kin, by which programs for Dragon measure and watch their nodes."""

import inspect
import os
import pathlib
import signal
import sys
import time

import pytest
from conftest import PACKAGE, PYTHON, run

sys.path.insert(0, str(PACKAGE))
import sonde  # noqa: E402

# --- What Dragon's classes have: dragonhpc 0.15.0, dragon/telemetry/analysis.py.

COLLECTOR = ["metric_name", "per_gpu", "collection_rate", "collector_args"]
DETECTOR = [
    "metric_name", "collection_rate", "sacred_nodes", "restartable_ddicts", "tags", "analysis_args",
]
PARAMETERS = {
    "CollectorGroup": COLLECTOR,
    "Detector": DETECTOR,
    "CollectorDetectorGroup": [
        *COLLECTOR[:3], "sacred_nodes", "restartable_ddicts", "tags", "collector_args", "analysis_args",
    ],
    "SlowGPUDetector": ["collection_rate", "restartable_ddicts", "analysis_args", "collector_args"],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_they_take_what_dragons_take(name):
    made = getattr(sonde, name)
    parameters = [p for p in inspect.signature(made).parameters if p != "kwargs"]
    assert parameters == PARAMETERS[name]
    for method in ("start", "stop"):
        assert list(inspect.signature(getattr(made, method)).parameters) == ["self"]


# --- Programs. They are files, which the processes that they start import.

PROLOGUE = """
import os, sys, time
from sonde import AnalysisClient, CollectorDetectorGroup, CollectorGroup, Detector, SlowGPUDetector
def wait(metric, tags=None, count=1):
    client = AnalysisClient()
    client.connect(timeout=60)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = client.get_data(metric, tags)
        if len(found) >= count:
            return {one["tags"].get("gpu"): one["dps"][max(one["dps"])] for one in found}
        time.sleep(0.02)
    raise SystemExit(f"{metric}: {found}")
"""


@pytest.fixture
def watch_file(watch, tmp_path):
    def start(text, **options):
        program = tmp_path / "program.py"
        program.write_text(PROLOGUE + text)
        return watch(PYTHON, program, timeout=120, **options)

    return start


def test_a_collector_records_what_its_function_gives(watch_file):
    done = watch_file(
        """
class Mine(CollectorGroup):
    @staticmethod
    def collector_test(arguments):
        return arguments[0] + os.getpid()
if __name__ == "__main__":
    group = Mine("mine", collection_rate=0.01, collector_args=(0.5,))
    other = Mine("mine", collection_rate=0.01, collector_args=(100.0,))
    group.start()
    other.start()        # another task of the node
    print(wait("mine")[None] - 0.5)
    assert not other._collectors._running
    group.stop()
    other.start()        # now it is free
    assert other._collectors._running
    other.stop()
"""
    )
    assert done.returncode == 0, done.stderr
    pid = float(done.stdout)
    assert pid == int(pid) and not pathlib.Path(f"/proc/{int(pid)}").exists()


def test_each_gpu_has_a_collector_that_sees_it_alone(watch_file):
    done = watch_file(
        """
class Mine(CollectorGroup):
    @staticmethod
    def collector_test(arguments):
        return int(os.environ["CUDA_VISIBLE_DEVICES"])
if __name__ == "__main__":
    group = Mine(metric_name="mine", per_gpu=True, collection_rate=0.01)
    group.start()
    print(wait("mine", ["host", "gpu"], 2))
    group.stop()
""",
        env={"CUDA_VISIBLE_DEVICES": "2, 5"},
    )
    assert done.stdout == "{'2': 2.0, '5': 5.0}\n", done.stderr


def test_a_collector_ends_with_the_program_that_started_it(watch_file):
    done = watch_file(
        """
class Mine(CollectorGroup):
    @staticmethod
    def collector_test(arguments):
        return os.getpid()
if __name__ == "__main__":
    Mine("mine", collection_rate=0.01).start()
    print(wait("mine")[None], flush=True)
    os.kill(os.getpid(), 9)
"""
    )
    assert done.returncode != 0
    collector = pathlib.Path(f"/proc/{int(float(done.stdout))}")
    end = time.monotonic() + 30
    while collector.exists() and time.monotonic() < end:
        time.sleep(0.02)
    if collector.exists():
        os.kill(int(collector.name), signal.SIGKILL)
        pytest.fail("the collector is still there")


def test_a_detector_offers_to_run_the_job_without_a_node(watch_file):
    done = watch_file(
        """
class Mine(CollectorDetectorGroup):
    @staticmethod
    def collector_test(arguments):
        return 7.0
    @staticmethod
    def analyze_data(data, arguments):
        slow = [one["tags"]["host"] for one in data if arguments in one["dps"].values()]
        if slow:
            open("seen", "a").write("x")
        return bool(slow), ["n9", *slow]
if __name__ == "__main__":
    os.chdir(os.path.dirname(__file__))
    group = Mine("mine", collection_rate=0.01, sacred_nodes=[os.uname().nodename], analysis_args=7.0)
    group.start()
    end = time.monotonic() + 60
    while not (os.path.exists("seen") and os.path.getsize("seen") > 3) and time.monotonic() < end:
        time.sleep(0.02)
    group.stop()
""",
        env={"SLURM_JOB_ID": "47"},
    )
    assert done.returncode == 0, done.stderr
    (offer,) = done.stderr.splitlines()
    assert "without n9: scontrol requeuehold 47; " in offer and "ExcNodeList=n9;" in offer
    assert done.remarks() == ["reboot() asks to run the job again without n9"]


def test_a_detector_that_cannot_analyze_says_so_once_and_goes_on(watch_file):
    done = watch_file(
        """
calls = 0
class Mine(CollectorDetectorGroup):
    @staticmethod
    def collector_test(arguments):
        return 1.0
    @staticmethod
    def analyze_data(data, arguments):
        global calls
        calls += 1
        if calls > 4:
            open("over", "w").close()
        raise ValueError("no data to my taste")
if __name__ == "__main__":
    os.chdir(os.path.dirname(__file__))
    group = Mine("mine", collection_rate=0.01)
    group.start()
    end = time.monotonic() + 60
    while not os.path.exists("over") and time.monotonic() < end:
        time.sleep(0.02)
    assert os.path.exists("over")
    group.stop()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("ValueError: no data to my taste") == 1


def test_a_detector_goes_on_when_an_answer_is_late_or_too_long_and_looks_back_so_far_only(watch_file):
    done = watch_file(
        """
import sonde._detector as detectors
from sonde.query import INVALID, TIMEOUT, QueryError
class Asking(detectors.AnalysisClient):
    failures = [QueryError(TIMEOUT, "no answer"), QueryError(INVALID, "too long"), QueryError(INVALID, "too long")]
    def get_data(self, metric, tags, start_time):
        open("spans", "a").write(f"{time.time() - start_time} ")
        if self.failures:
            raise RuntimeError(str(self.failures[0])) from self.failures.pop(0)
        return super().get_data(metric, tags=tags, start_time=start_time)
detectors.AnalysisClient = Asking
detectors._WINDOW = 0.4
class Mine(CollectorDetectorGroup):
    @staticmethod
    def collector_test(arguments):
        return 1.0
    @staticmethod
    def analyze_data(data, arguments):
        open("looks", "a").write("x")
        return False, []
if __name__ == "__main__":
    os.chdir(os.path.dirname(__file__))
    group = Mine("mine", collection_rate=0.02)
    group.start()
    end = time.monotonic() + 60
    while not (os.path.exists("looks") and os.path.getsize("looks") > 20) and time.monotonic() < end:
        time.sleep(0.02)
    group.stop()
    print(os.path.getsize("looks") > 20, max(map(float, open("spans").read().split()[-5:])))
"""
    )
    assert done.returncode == 0, done.stderr
    looked, longest = done.stdout.split()
    # Half of the window, twice, and a busy machine.
    assert looked == "True" and float(longest) < 0.3
    assert done.stderr == (
        "sonde: a detector gets no data of 'mine': no answer\n"
        "sonde: a detector gets no data of 'mine': too long\n"
    )


def test_without_telemetry_nothing_is_started(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        PROLOGUE
        + """
if __name__ == "__main__":
    groups = [CollectorGroup("a"), CollectorDetectorGroup("b"), SlowGPUDetector()]
    for group in groups: group.start()
    assert not any(group._collectors._running for group in groups)
    for group in groups: group.stop()
"""
    )
    done = run(PYTHON, program, env={"CUDA_VISIBLE_DEVICES": "0"})
    assert (done.returncode, done.stderr) == (0, "")


# --- Slow GPUs


def measured(*means, spread=0.01, points=6):
    """Results of GPUs, of which each node has two, with values around these means."""
    return [
        {
            "metric": "slow-gpu",
            "tags": {"host": f"n{i // 2}", "gpu": str(i % 2)},
            "dps": {str(1700000000 + p): mean + spread * (-1) ** p for p in range(points)},
        }
        for i, mean in enumerate(means)
    ]


@pytest.mark.parametrize(
    "data, slow",
    [
        ([], []),
        (measured(*[1] * 10), []),
        (measured(*[1] * 10, spread=0), []),
        (measured(*[1] * 9, 2), ["n4"]),
        (measured(*[1] * 9, 0.1), []),
        (measured(*[1] * 9, 2, points=3), []),
        (measured(*[1] * 7, 1.5, *[1] * 20), ["n3"]),
        (measured(1, 2), []),
    ],
    ids=["none", "even", "equal", "slow", "fast", "too few", "slow of many", "nobody to compare with"],
)
def test_a_gpu_is_slow_if_it_lies_far_above_all(data, slow):
    assert sonde.SlowGPUDetector.analyze_data(data, None) == (bool(slow), slow)


def test_the_detector_of_slow_gpus_measures_and_sets_an_alarm(watch_file, tmp_path):
    (tmp_path / "torch.py").write_text(
        """
class Matrix:
    def __matmul__(self, other): return self
    def __truediv__(self, number): return self
def rand(rows, columns, device):
    assert device == "cpu"
    return Matrix()
class cuda:
    is_available = staticmethod(lambda: False)
"""
    )
    done = watch_file(
        """
from sonde.query import Query, QueryError
if __name__ == "__main__":
    detector = SlowGPUDetector(collection_rate=0.05)
    detector.start()
    assert 0 < wait("slow-gpu", ["host", "gpu"])["0"] < 10
    try:
        Query().alarm("slow_gpu", "slow-gpu > 1")
    except QueryError as error:
        print(error)
    detector.stop()
""",
        env={"CUDA_VISIBLE_DEVICES": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert "slow_gpu" in done.stdout and done.stderr == ""
