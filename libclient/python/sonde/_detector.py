"""Dragon's collectors and detectors, so that a program written for them runs under Sonde:

    from sonde import CollectorGroup, Detector, CollectorDetectorGroup, SlowGPUDetector

A collector calls a function of the program's again and again and records what it gives. There it runs
on all nodes whoever starts it; here Slurm starts processes, so the program starts it in its tasks, and
of the tasks of a node one collects. A detector looks at what was collected, in the step's first task.
Both work in processes of their own, which end with the one that started them.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import traceback
from multiprocessing import get_context
from typing import Any, Callable, Iterable, Optional

from . import _process
from ._analysis import AnalysisClient
from ._telemetry import Telemetry
from .query import LOST, OFF, TIMEOUT, Query, QueryError

# Threads and a GPU that is in use do not survive a fork.
_processes = get_context("spawn")
_PATIENCE = 10.0  # seconds for a process that is to end

_WINDOW = 300  # seconds of data that a detector looks at, as Dragon's, which keeps no more

# The variables by which vendors' libraries know the GPUs of a process.
_GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


class _Workers:
    """Processes that work until they are stopped, or until this one is gone."""

    def __init__(self) -> None:
        self._running: list[tuple[Any, Any]] = []

    def add(self, work: Callable[..., None], *arguments: Any) -> None:
        theirs, ours = _processes.Pipe(duplex=False)
        process = _processes.Process(target=work, args=(theirs, *arguments), daemon=True)
        process.start()
        theirs.close()
        self._running.append((process, ours))

    def stop(self) -> None:
        for _, ours in self._running:
            ours.close()
        for process, _ in self._running:
            process.join(_PATIENCE)
            if process.is_alive():
                process.terminate()
                process.join()
        self._running.clear()


def _is_over(connection: Any, seconds: float) -> bool:
    """Waits so long; whether who started this process has closed its end, or is gone."""
    return bool(connection.poll(seconds))


def _gpus() -> list[tuple[str, str]]:
    """Those that this process may use: the variable that names them, and each one's name."""
    for variable in _GPU_VARIABLES:
        names = [name.strip() for name in os.environ.get(variable, "").split(",")]
        if any(names):
            return [(variable, name) for name in names if name]
    return []


# --- Collectors


def _collect(
    connection: Any,
    collect: Callable[[Any], float],
    arguments: Any,
    metric: str,
    rate: float,
    gpu: Optional[tuple[str, str]],
) -> None:
    name = None
    if gpu is not None:
        variable, name = gpu
        os.environ[variable] = name
    recorder = Telemetry()
    while True:
        # Without a name there is no tag.
        recorder.add_data(metric, collect(arguments), tagk="gpu", tagv=name)
        if _is_over(connection, rate):
            return


class AnalysisGroupBase:
    def __init__(
        self, metric_name: str = "user-cg", collection_rate: float = 3, **kwargs: Any
    ) -> None:
        self.metric_name = metric_name
        self.collection_rate = collection_rate

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class CollectorGroup(AnalysisGroupBase):
    """Records what collector_test() gives, every `collection_rate` seconds, for each node.

    With `per_gpu` for each GPU that the tasks of a node name in CUDA_VISIBLE_DEVICES and its like, with
    the tag `gpu`. Every task may call start(); the first one of a node, or with a GPU, collects.
    A class of the program's has collector_test(); as for all of multiprocessing's processes, it stands
    in a module, and the program's own work stands below `if __name__ == "__main__":`.
    """

    def __init__(
        self,
        metric_name: str = "user-cg",
        per_gpu: bool = False,
        collection_rate: float = 3,
        collector_args: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(metric_name=metric_name, collection_rate=collection_rate, **kwargs)
        self.per_gpu = per_gpu
        self.collector_args = collector_args
        self._collectors = _Workers()
        self._claims: list[Any] = []

    def start(self) -> None:
        for gpu in _gpus() if self.per_gpu else [None]:
            try:
                held = _process.claim(f"collector/{self.metric_name}/{gpu[1] if gpu else ''}")
            except OSError:  # nobody would record it
                break
            if held is None:
                continue
            self._claims.append(held)
            collect, arguments = self.collector_test, self.collector_args
            metric, rate = self.metric_name, self.collection_rate
            self._collectors.add(_collect, collect, arguments, metric, rate, gpu)
        super().start()

    def stop(self) -> None:
        self._collectors.stop()
        for held in self._claims:
            held.close()
        self._claims.clear()
        super().stop()

    @staticmethod
    def collector_test(collector_args: Any) -> float:
        """The value to record."""
        raise NotImplementedError("a CollectorGroup has its own collector_test()")


# --- Detectors


def _watch(
    connection: Any,
    detector: type[Detector],
    metric: str,
    rate: float,
    tags: Optional[list[str]],
    arguments: Any,
    sacred: list[str],
    ddicts: list[Any],
) -> None:
    client = AnalysisClient()
    try:
        client.connect(timeout=60)
    except RuntimeError:  # there is no telemetry
        return
    start, window, said = int(time.time()), float(_WINDOW), ""
    while not _is_over(connection, rate):
        try:
            since = max(start, time.time() - window)
            data = _one_each(client.get_data(metric, tags=tags, start_time=since), rate)
        except RuntimeError as error:
            code = getattr(error.__cause__, "code", None)
            if code in (LOST, OFF):  # the step's telemetry has ended
                return
            said = _say(f"sonde: a detector gets no data of {metric!r}: {error}\n", said)
            if code != TIMEOUT:  # such as that the answer would be too long
                window = max(window / 2, rate)
            continue
        try:
            restart, nodes = detector.analyze_data(data, arguments)
        except Exception:
            said = _say(traceback.format_exc(), said)
            continue
        if restart:
            detector.trigger_restart(nodes, sacred, ddicts)


def _say(what: str, said: str) -> str:
    """On standard error, unless it was said last; gives what was said."""
    if what != said:
        sys.stderr.write(what)
    return what


def _one_each(data: list[dict[str, Any]], rate: float) -> list[dict[str, Any]]:
    """Of each result a value for each time it was collected: a gauge has one at every tick."""
    interval = max(round(rate), 1)
    for one in data:
        newest = max(int(second) for second in one["dps"])
        one["dps"] = {
            second: value
            for second, value in one["dps"].items()
            if (newest - int(second)) % interval == 0
        }
    return data


class Detector(AnalysisGroupBase):
    """Has analyze_data() look at the metric every `collection_rate` seconds, in the step's first task.

    If that asks for a restart, trigger_restart() is called.
    """

    def __init__(
        self,
        metric_name: str = "user-cg",
        collection_rate: float = 3,
        sacred_nodes: Optional[list[str]] = None,
        restartable_ddicts: Optional[list[Any]] = None,
        tags: Optional[list[str]] = None,
        analysis_args: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(metric_name=metric_name, collection_rate=collection_rate, **kwargs)
        self.sacred_nodes = sacred_nodes
        self.restartable_ddicts = restartable_ddicts
        self.tags = tags
        self.analysis_args = analysis_args
        self._watcher = _Workers()

    def start(self) -> None:
        if os.environ.get("SLURM_PROCID", "0") == "0" and os.environ.get("SONDE_SOCKET"):
            self._watcher.add(
                _watch,
                type(self),
                self.metric_name,
                self.collection_rate,
                self.tags,
                self.analysis_args,
                self.sacred_nodes or [],
                self.restartable_ddicts or [],
            )
        super().start()

    def stop(self) -> None:
        self._watcher.stop()
        super().stop()

    @staticmethod
    def trigger_restart(
        nodes_to_remove: Iterable[str], sacred_nodes: Iterable[str], restartable_ddicts: list[Any]
    ) -> None:
        """Offers to run the job again without the nodes that are not sacred.

        Nothing ends here, so Dragon's dictionaries stay as they are.
        """
        removed = sorted(set(nodes_to_remove) - set(sacred_nodes))
        AnalysisClient().reboot(exclude_hostnames=removed)

    @staticmethod
    def analyze_data(data: list[dict[str, Any]], analysis_args: Any) -> tuple[bool, list[str]]:
        """Whether to restart, and without which nodes; `data` is what get_data() gives."""
        raise NotImplementedError("a Detector has its own analyze_data()")


class CollectorDetectorGroup(Detector, CollectorGroup):
    """Collects, and looks at what was collected."""

    def __init__(
        self,
        metric_name: str = "user-cg",
        per_gpu: bool = False,
        collection_rate: float = 3,
        sacred_nodes: Optional[list[str]] = None,
        restartable_ddicts: Optional[list[Any]] = None,
        tags: Optional[list[str]] = None,
        collector_args: Any = None,
        analysis_args: Any = None,
    ) -> None:
        super().__init__(
            metric_name=metric_name,
            per_gpu=per_gpu,
            collection_rate=collection_rate,
            sacred_nodes=sacred_nodes,
            restartable_ddicts=restartable_ddicts,
            tags=tags,
            collector_args=collector_args,
            analysis_args=analysis_args,
        )


class SlowGPUDetector(CollectorDetectorGroup):
    """Measures a small computation on each GPU, and tells of nodes with one that is slow.

    The same as an alarm of the step (docs/alarms.md), which names the node in the profile and tells
    whom the user wants told: slow_gpu, of the GPUs with the same number.
    """

    _WINDOW = 4  # values of each GPU that are compared
    _DEVIATIONS = 2.5  # from the mean of all

    def __init__(
        self,
        collection_rate: float = 3,
        restartable_ddicts: Optional[list[Any]] = None,
        analysis_args: Any = None,
        collector_args: Any = None,
    ) -> None:
        super().__init__(
            metric_name="slow-gpu",
            per_gpu=True,
            collection_rate=collection_rate,
            sacred_nodes=[self.sacred_hostname],
            restartable_ddicts=restartable_ddicts,
            tags=["host", "gpu"],
            collector_args=collector_args,
            analysis_args=analysis_args,
        )

    @property
    def sacred_hostname(self) -> str:
        """The node of the step's first task, where the detector runs, and which it never excludes."""
        return os.uname().nodename

    def start(self) -> None:
        super().start()
        if os.environ.get("SLURM_PROCID", "0") == "0":
            seconds = self._WINDOW * self.collection_rate
            try:
                with Query() as query:
                    query.alarm("slow_gpu", f"slow-gpu leads {self._DEVIATIONS} for {seconds:g}s")
            except QueryError as error:  # alarms are off: the detector works without
                print(f"sonde: SlowGPUDetector: no alarm: {error}", file=sys.stderr, flush=True)

    @staticmethod
    def collector_test(collector_args: Any) -> float:
        """Seconds that some products of small matrices take, on the GPU that the process has."""
        import torch  # type: ignore[import-not-found,unused-ignore]

        on_gpu = torch.cuda.is_available()
        matrix = torch.rand(256, 256, device="cuda" if on_gpu else "cpu")
        began = time.perf_counter()
        for _ in range(100):
            matrix = (matrix @ matrix) / 256  # its numbers stay below 1
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    @staticmethod
    def analyze_data(data: list[dict[str, Any]], analysis_args: Any) -> tuple[bool, list[str]]:
        """Nodes with a GPU whose mean lies far above that of all values."""
        window = SlowGPUDetector._WINDOW
        newest = [
            (one["tags"]["host"], [one["dps"][second] for second in sorted(one["dps"])[-window:]])
            for one in data
        ]
        values = [value for _, some in newest for value in some]
        if not newest or min(len(some) for _, some in newest) < window:
            return False, []
        mean, deviation = statistics.fmean(values), statistics.stdev(values)
        if deviation < 1e-9:
            return False, []
        limit = mean + SlowGPUDetector._DEVIATIONS * deviation
        slow = sorted({host for host, some in newest if statistics.fmean(some) > limit})
        return bool(slow), slow
