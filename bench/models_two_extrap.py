"""What Extra-P predicts for the cases of bench_models_two, and how long it takes.

    models_two_extrap.py DATA OUT    DATA: lines of "bench_models_two --data"; OUT: lines "CASE VALUE"
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
from extrap.modelers.multi_parameter.multi_parameter_modeler import MultiParameterModeler

CALLPATH, METRIC = Callpath("main"), Metric("time")


def main(data, out):
    warnings.simplefilter("ignore")
    with open(data, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    predicted = []
    start = time.process_time()
    for case in cases:
        measured = [
            Measurement(Coordinate(*place), CALLPATH, METRIC, numpy.array([value]))
            for place, value in zip(case["places"], case["values"])
        ]
        model = MultiParameterModeler().create_model(measured)
        predicted.append(float(model.hypothesis.function.evaluate(tuple(case["larger"]))))
    seconds = time.process_time() - start
    with open(out, "w", encoding="utf-8") as file:
        for case, value in enumerate(predicted):
            print(case, value, file=file)
    print(f"figure models_two.extrap.of_25_places {1e6 * seconds / len(cases):.1f} us")


if __name__ == "__main__":
    main(*sys.argv[1:])
