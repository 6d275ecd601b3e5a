"""An application's own metrics in the record of its job step.

    import sonde

    loss = sonde.gauge("train_loss", help="Cross entropy of the last batch")
    steps = sonde.counter("train_steps_total")
    for batch in batches:
        with sonde.phase("train"):
            loss.set(train(batch))
        steps.add()
    sonde.figure("accuracy", accuracy)

Nothing has to be opened or closed. Without telemetry, all of it does nothing. Threads and forked
processes, such as those of multiprocessing, may use what they inherit. A name, tag or level that is
not allowed raises ValueError or TypeError, with telemetry and without; a value never does, unless
it is no number.
"""

from __future__ import annotations

from ._sonde import (
    Counter,
    Gauge,
    Histogram,
    annotate,
    counter,
    figure,
    finalize,
    gauge,
    histogram,
    init,
    phase_begin,
    phase_end,
    status,
)
from ._spans import Phase, Timer, phase, timer
from ._telemetry import Telemetry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._analysis import AnalysisClient
    from ._detector import CollectorDetectorGroup, CollectorGroup, Detector, SlowGPUDetector

__version__ = "@PROJECT_VERSION@"

__all__ = [
    "AnalysisClient",
    "CollectorDetectorGroup",
    "CollectorGroup",
    "Counter",
    "Detector",
    "Gauge",
    "Histogram",
    "Phase",
    "SlowGPUDetector",
    "Telemetry",
    "Timer",
    "annotate",
    "counter",
    "figure",
    "finalize",
    "gauge",
    "histogram",
    "init",
    "phase",
    "phase_begin",
    "phase_end",
    "status",
    "timer",
]


# Only programs that ask pay for what asking needs.
_LATER = {
    "AnalysisClient": "_analysis",
    "CollectorDetectorGroup": "_detector",
    "CollectorGroup": "_detector",
    "Detector": "_detector",
    "SlowGPUDetector": "_detector",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'sonde' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_LATER[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]
