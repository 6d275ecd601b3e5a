"""The periods that FTIO finds in the series of bench_periods, and how long it takes.

    periods_ftio.py DATA OUT    DATA: lines of "bench_periods --data"; OUT: lines "CASE PERIOD"
"""

import contextlib
import io
import json
import sys
import time

import numpy as np
from ftio.cli.ftio_core import core
from ftio.parse.args import parse_args


def main(data, out):
    with open(data, encoding="utf-8") as file:
        series = [np.array(json.loads(line)) for line in file]
    arguments = parse_args(["-e", "no", "--freq", "1"], "ftio")
    found, seconds = [], 0.0
    for values in series:
        times = np.arange(len(values), dtype=float)
        begin = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            said, _ = core(
                {"bandwidth": values, "time": times, "total_bytes": 0, "ranks": 1}, arguments
            )
        seconds += time.process_time() - begin
        frequencies, confidences = np.atleast_1d(said.dominant_freq), np.atleast_1d(said.conf)
        best = frequencies[int(np.argmax(confidences))] if len(frequencies) else 0
        found.append(1 / best if best > 0 else 0)
    with open(out, "w", encoding="utf-8") as file:
        for case, period in enumerate(found):
            print(case, period, file=file)
    print(f"figure periods.ftio.of_600_values {1e6 * seconds / len(series):.1f} us")


if __name__ == "__main__":
    main(*sys.argv[1:])
