#!/usr/bin/env python3
"""Records this machine's /proc as a CSV for the codec benchmark.

usage: record.py OUT.csv [SECONDS [PERIOD]]

One row per tick: the time in nanoseconds since the epoch, then one column per series, in base units
(seconds, bytes) as Sonde stores them. Counters count from the first row. A series that appears
later (a new device) is passed over; one that cannot be read is empty.
"""
import sys
import time

TICKS = 100  # USER_HZ


def stat():
    for line in open("/proc/stat"):
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            modes = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
            for mode, value in zip(modes, fields):
                yield f"cpu_seconds_total/{name}/{mode}", int(value), TICKS
        elif name in ("ctxt", "processes", "intr", "softirq"):
            yield f"{name}_total", int(fields[0]), 1
        elif name in ("procs_running", "procs_blocked"):
            yield name, int(fields[0]), 0


def meminfo():
    for line in open("/proc/meminfo"):
        name, value, *unit = line.replace(":", "").split()
        yield f"memory_{name}", int(value) * (1024 if unit else 1), 0


def vmstat():
    for line in open("/proc/vmstat"):
        name, value = line.split()
        yield f"vmstat_{name}", int(value), 0 if name.startswith("nr_") else 1


def net():
    for line in open("/proc/net/dev").readlines()[2:]:
        device, fields = line.split(":")
        for i, value in enumerate(fields.split()):
            yield f"network/{device.strip()}/{i}", int(value), 1


def disks():
    for line in open("/proc/diskstats"):
        _, _, device, *fields = line.split()
        if device.startswith(("loop", "ram")):
            continue
        for i, value in enumerate(map(int, fields)):
            if i in (2, 6, 13):
                yield f"disk/{device}/{i}", value * 512, 1
            elif i == 8:
                yield f"disk/{device}/{i}", value, 0
            else:
                yield f"disk/{device}/{i}", value, 1000 if i in (3, 7, 9, 10, 14, 16) else 1


def loadavg():
    one, five, fifteen, tasks, _ = open("/proc/loadavg").read().split()
    for name, value in (("1", one), ("5", five), ("15", fifteen)):
        yield f"load{name}", float(value), 0
    yield "tasks", int(tasks.split("/")[1]), 0


def pressure():
    for resource in ("cpu", "io", "memory"):
        for line in open(f"/proc/pressure/{resource}"):
            kind, *fields = line.split()
            for field in fields:
                name, value = field.split("=")
                if name == "total":
                    yield f"pressure/{resource}/{kind}/total", int(value), 1_000_000
                else:
                    yield f"pressure/{resource}/{kind}/{name}", float(value), 0


def sample():
    """name -> (value, scale): scale 0 is a gauge, otherwise a counter in 1/scale of its unit."""
    values = {}
    for source in (stat, meminfo, vmstat, net, disks, loadavg, pressure):
        try:
            values.update((name, (value, scale)) for name, value, scale in source())
        except OSError:
            pass
    return values


def text(now, first):
    value, scale = now
    if scale == 0:
        return repr(value)
    value -= first[0]
    return repr(value if scale == 1 else value / scale)


def main():
    path = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600
    period = int(float(sys.argv[3] if len(sys.argv) > 3 else 1) * 1e9)
    first = sample()
    with open(path, "w") as out:
        print("time", *first, sep=",", file=out)
        stop = time.time_ns() + int(seconds * 1e9)
        while (tick := (time.time_ns() // period + 1) * period) < stop:
            time.sleep((tick - time.time_ns()) / 1e9)
            now = sample()
            row = (text(now[n], first[n]) if n in now else "" for n in first)
            print(tick, *row, sep=",", file=out, flush=True)


if __name__ == "__main__":
    main()
