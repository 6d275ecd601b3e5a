"""The terms that Extra-P finds for the cases of bench_models, and how long it takes.

    models_extrap.py DATA OUT    DATA: lines of "bench_models --data"; OUT: lines "CASE N D L"
"""

import json
import sys
import time
import warnings

import numpy
from extrap.entities.callpath import Callpath
from extrap.entities.coordinate import Coordinate
from extrap.entities.measurement import Measurement
from extrap.entities.metric import Metric
from extrap.modelers.single_parameter.basic import SingleParameterModeler

CALLPATH, METRIC = Callpath("main"), Metric("time")


def measurements_of(case):
    return [
        Measurement(Coordinate(size), CALLPATH, METRIC, numpy.array(values))
        for size, values in zip(case["sizes"], case["values"])
    ]


def exponents(function):
    """As N, D and L of p^(N/D) * log2(p)^L; 0 1 0 of a constant."""
    power, logs = (0, 1), 0
    for term in function.compound_terms[:1]:
        for simple in term.simple_terms:
            if simple.term_type == "logarithm":
                logs = int(simple.exponent)
            else:
                power = (simple.exponent.numerator, simple.exponent.denominator)
    return *power, logs


def main(data, out):
    warnings.simplefilter("ignore")
    with open(data, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    models = []
    start = time.perf_counter()
    for case in cases:
        models.append(SingleParameterModeler().create_model(measurements_of(case)))
    seconds = time.perf_counter() - start
    with open(out, "w", encoding="utf-8") as file:
        for case, model in zip(cases, models):
            print(case["case"], *exponents(model.hypothesis.function), file=file)
    print(f"figure models.extrap.of_5_sizes {1e6 * seconds / len(cases):.1f} us")


if __name__ == "__main__":
    main(*sys.argv[1:])
