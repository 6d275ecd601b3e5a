"""Finds the rank that is slow while the job runs, by a metric of the program itself, and reacts.

Every rank works in rounds and says how long each one took, in the gauge round_seconds. Rank 0 is told
the value of every rank at every tick, compares each with the median of all, and reacts to one that
is slower by a factor for some ticks in a row: it asks for the rank's history, and lets the rank know,
here by a file, that it should do less. The straggler then gives up part of its work, as a program
would that balances its load, checkpoints, or leaves a bad node out.

    srun -N4 --telemetry-level=1 --telemetry-period=200ms python3 straggler.py DIRECTORY [SLOW_RANK]

Without telemetry the ranks work all the same, and nobody is found.
"""

import os
import pathlib
import statistics
import sys
import time

import sonde
from sonde.query import News, Query

ROUND_SECONDS = 0.02
SLOWNESS = 5.0
FACTOR = 2.0  # slower than the median by this is a straggler ...
TICKS = 3  # ... when it is so in as many ticks in a row
LIMIT_SECONDS = 30.0


class Detector:
    """Rank 0's: who has been slower than the others for long enough."""

    def __init__(self, query: Query, react):
        self._query, self._react = query, react
        self._suspect: dict[str, int] = {}
        self._told: set[str] = set()
        query.subscribe("round_seconds", self.on_tick, by=("host", "task"))

    def on_tick(self, news: News) -> None:
        if news.late or len(news.series) < 2:
            return
        median = statistics.median(series.value for series in news.series)
        for series in news.series:
            rank = series.tags["task"]
            slow = series.value > FACTOR * median
            self._suspect[rank] = self._suspect.get(rank, 0) + 1 if slow else 0
            if self._suspect[rank] == TICKS and rank not in self._told:
                self._told.add(rank)
                self._report(series.tags["host"], rank, series.value / median)

    def _report(self, host: str, rank: str, factor: float) -> None:
        (history,) = self._query.get("round_seconds", "max", last=60, tags={"task": rank})
        slowest = max(point.value for point in history.points)
        print(
            f"straggler: rank {rank} on {host} is {factor:.1f} times as slow as the median; its "
            f"slowest round took {slowest:.3f} s",
            flush=True,
        )
        self._react(rank)


def work(rank: str, slow: bool, directory: pathlib.Path, query) -> None:
    seconds = sonde.gauge("round_seconds", unit="seconds", help="Duration of a round of work")
    lighter, done = directory / f"lighter.{rank}", directory / "done"
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end and not done.exists():
        start = time.monotonic()
        time.sleep(ROUND_SECONDS * (SLOWNESS if slow else 1.0))
        seconds.set(time.monotonic() - start)
        if query:
            query.poll(0)
        if slow and lighter.exists():
            print(f"rank {rank}: works less from now on", flush=True)
            slow = False
            done.touch()


def main() -> int:
    directory = pathlib.Path(sys.argv[1])
    rank = os.environ.get("SLURM_PROCID", "0")
    slow_rank = sys.argv[2] if len(sys.argv) > 2 else "2"
    query = Query() if rank == "0" else None
    if query:
        Detector(query, lambda slow: (directory / f"lighter.{slow}").touch())
    work(rank, rank == slow_rank, directory, query)
    return 0


if __name__ == "__main__":
    sys.exit(main())
