#!/usr/bin/env python3
"""The metrics of an application in Python, in as few lines as it takes: pi by Leibniz's series.

    srun --telemetry-level=1 python3 example.py [BLOCKS]

It runs just the same without telemetry: then every update does nothing.
"""

import math
import sys

import sonde

BLOCK = 100_000  # terms


def main(blocks: int) -> None:
    # A gauge is what is true now; a counter only grows; a histogram is how values are distributed.
    # Tags tell apart what is counted under one name. The rank is a tag of every series already.
    error = sonde.gauge("example_error", "1", "Distance from pi")
    terms = [
        sonde.counter("example_terms_total", "1", "Terms of the series", tags={"kind": kind})
        for kind in ("positive", "negative")
    ]
    correction = sonde.histogram("example_correction", "1", "What a block adds to the sum")

    total = 0.0
    with sonde.phase("sum"):  # a band on every plot
        for block in range(blocks):
            with sonde.timer("example_block_seconds", help="Time of a block"):
                before = total
                for n in range(block * BLOCK, (block + 1) * BLOCK):
                    total += (-4.0 if n % 2 else 4.0) / (2 * n + 1)
                for term in terms:
                    term.add(BLOCK // 2)
            error.set(abs(total - math.acos(-1)))
            correction.observe(abs(total - before))
    sonde.annotate("the sum is there")
    sonde.figure("example_pi", total, "1")  # what the run is judged by
    print(f"pi is about {total:.9f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
