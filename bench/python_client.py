#!/usr/bin/env python3
# What an update of a metric costs a Python program, beside an empty method and prometheus_client
"""Every figure is processor time per call, the best of many rounds, without the loop around it; those of
`_median` are elapsed time, of each call by itself and less that of an empty one."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["SONDE_BUILD"])
PACKAGE = BUILD / "libclient" / "python"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ROUNDS = 15
CALLS = 200_000


def best(work):
    """Processor seconds of the quickest round."""
    least = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least


def empty_loop():
    for _ in range(CALLS):
        pass


def measured(statement, calls=CALLS, **names):
    """ns per call of a statement, as it stands in a program's loop."""
    space = dict(names)
    exec(f"def work():\n    for _ in range({calls}):\n        {statement}", space)
    loop = best(empty_loop) * calls / CALLS
    return (best(space["work"]) - loop) / calls * 1e9


def median(call):
    """ns of a call, as a program meets them one by one."""
    clock = time.perf_counter_ns
    spent = []
    for work in (call, lambda: None):
        times = []
        for _ in range(CALLS):
            start = clock()
            work()
            times.append(clock() - start)
        spent.append(statistics.median(times))
    return spent[0] - spent[1]


def figure(name, value):
    print(f"figure python_client.{name} {value:.1f} ns", flush=True)


class Empty:
    def set(self, value):
        pass


def measure_ours(prefix=""):
    import sonde

    gauge, counter = sonde.gauge("bench_gauge"), sonde.counter("bench_total")
    histogram = sonde.histogram("bench_values")
    busy = sonde.counter("bench_seconds_total", "seconds")
    if gauge.recorded == bool(prefix):
        sys.exit(f"python_client: {gauge.status}")
    figure(prefix + "gauge_set", measured("gauge.set(1.5)", gauge=gauge))
    figure(prefix + "counter_add", measured("counter.add()", counter=counter))
    figure(prefix + "histogram_observe", measured("histogram.observe(1.5)", histogram=histogram))
    if prefix:
        return
    figure("gauge_set_integer", measured("gauge.set(3)", gauge=gauge))
    timed = sonde.gauge("bench_timed")
    figure("gauge_set_at", measured("timed.set_at(1.5, 1)", timed=timed))
    dragon = sonde.Telemetry()
    few = CALLS // 10
    figure("telemetry_add_data", measured("add('bench_data', 1.5)", few, add=dragon.add_data))
    figure("telemetry_add_data_median", median(lambda: dragon.add_data("bench_data", 1.5)))
    statement = "with timer(busy): pass"
    figure("timer_block", measured(statement, few, timer=sonde.timer, busy=busy))
    function = sonde.timer(busy)(lambda: None)
    figure("timer_decorated_call", measured("function()", few, function=function))
    figure("phase_block", measured("with phase('bench'): pass", few, phase=sonde.phase))
    # More than the daemon takes in a tick are left out.
    figure("annotate", measured("annotate('a remark')", few, annotate=sonde.annotate))


def measure_peers():
    figure("empty_method_call", measured("empty.set(1.5)", empty=Empty()))
    figure("builtin_call", measured("abs(1.5)"))
    try:
        import prometheus_client
    except ImportError:
        print("python_client: prometheus_client is not to be had", file=sys.stderr)
        return
    gauge = prometheus_client.Gauge("bench_gauge", "A gauge")
    counter = prometheus_client.Counter("bench_total", "A counter")
    histogram = prometheus_client.Histogram("bench_values", "A histogram")
    few = CALLS // 10
    figure("prometheus_client_gauge_set", measured("gauge.set(1.5)", few, gauge=gauge))
    figure("prometheus_client_counter_inc", measured("counter.inc()", few, counter=counter))
    statement = "histogram.observe(1.5)"
    figure("prometheus_client_histogram_observe", measured(statement, few, histogram=histogram))


def with_peer(directory):
    """A folder with prometheus_client from PyPI, if there is a network."""
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
    subprocess.run([*pip, directory, "prometheus_client"], capture_output=True, check=False)
    return directory


def main():
    if sys.argv[1:] == ["measure"]:
        measure_ours()
        measure_peers()
        return
    if sys.argv[1:] == ["measure-without"]:
        measure_ours("no_daemon_")
        return
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as directory:
        env = {**os.environ, "SONDE_BUILD": str(BUILD)}
        env.pop("SONDE_SOCKET", None)
        env["PYTHONPATH"] = f"{PACKAGE}:{with_peer(directory + '/peer')}"
        sonde = [BUILD / "cli" / "sonde", "--archive", directory + "/archive"]
        sonde += ["run", "--quiet", "--level", "1", "--"]
        subprocess.run([*sonde, PYTHON, __file__, "measure"], env=env, check=True)
        subprocess.run([PYTHON, __file__, "measure-without"], env=env, check=True)


if __name__ == "__main__":
    main()
