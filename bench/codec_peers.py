#!/usr/bin/env python3
# Bytes per value of a CSV on disk: Sonde beside Prometheus and VictoriaMetrics

"""usage: codec_peers.py FILE.csv          with SONDE_BUILD set

FILE.csv: a time in nanoseconds, then one column per series (bench/codec_record.sh). Every value
that is there counts once.

Prometheus: `promtool tsdb create-blocks-from openmetrics`; the size of the chunks, and of the
whole blocks with index. VictoriaMetrics: /api/v1/import, then /internal/force_flush and
/internal/force_merge, until its data no longer change; the size of values and times (values.bin,
timestamps.bin), and of the whole data folder. Their times are in milliseconds.
"""
import csv
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def read(path):
    with open(path, newline="") as file:
        rows = csv.reader(file)
        names = next(rows)[1:]
        times, columns = [], [[] for _ in names]
        for row in rows:
            times.append(int(row[0]))
            for column, value in zip(columns, row[1:]):
                column.append(value)
    return times, columns


def size(folder, names=None):
    files = (p for p in pathlib.Path(folder).rglob("*") if p.is_file())
    return sum(p.stat().st_size for p in files if names is None or p.name in names)


def prometheus(times, columns, folder):
    source = folder / "metrics"
    with open(source, "w") as out:
        for i, column in enumerate(columns):
            out.write(f"# TYPE m{i} unknown\n")
            for at, value in zip(times, column):
                if value:
                    out.write(f"m{i} {value} {at / 1e9:.3f}\n")
        out.write("# EOF\n")
    blocks = folder / "blocks"
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", source, blocks],
        check=True, stdout=subprocess.DEVNULL,
    )
    chunks = sum(size(p) for p in blocks.glob("*/chunks"))
    return chunks, size(blocks)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(url, data=None):
    with urllib.request.urlopen(url, data, timeout=60) as answer:
        return answer.read()


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            if what():
                return
        except OSError:
            pass
        if time.monotonic() > end:
            sys.exit("codec_peers: VictoriaMetrics did not answer in time")
        time.sleep(0.2)


def victoria_metrics(times, columns, folder):
    base = f"http://127.0.0.1:{free_port()}"
    storage = folder / "victoria"
    log = open(folder / "victoria.log", "w")
    server = subprocess.Popen(
        ["victoria-metrics", f"-storageDataPath={storage}", f"-httpListenAddr={base[7:]}",
         "-retentionPeriod=100y"],
        stdout=log, stderr=log,
    )
    try:
        wait_for(lambda: ask(base + "/health"))
        for i, column in enumerate(columns):
            pairs = [(at // 1_000_000, float(v)) for at, v in zip(times, column) if v]
            if pairs:
                line = {"metric": {"__name__": f"m{i}"}, "values": [v for _, v in pairs],
                        "timestamps": [t for t, _ in pairs]}
                ask(base + "/api/v1/import", json.dumps(line).encode())
        ask(base + "/internal/force_flush")
        ask(base + "/internal/force_merge")
        sizes = []

        def settled():
            sizes.append(size(storage / "data"))
            time.sleep(1)
            return len(sizes) > 4 and len(set(sizes[-4:])) == 1

        wait_for(settled)
        return size(storage / "data", {"values.bin", "timestamps.bin"}), size(storage / "data")
    finally:
        server.terminate()
        server.wait()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    times, columns = read(sys.argv[1])
    values = sum(1 for column in columns for v in column if v)
    print(f"{len(times)} rows of {len(columns)} series, {values} values", flush=True)
    subprocess.run([os.environ["SONDE_BUILD"] + "/bench/bench_codec", sys.argv[1]], check=True)
    peers = {"promtool": ("prometheus", prometheus),
             "victoria-metrics": ("victoriametrics", victoria_metrics)}
    for program, (name, measure) in peers.items():
        if shutil.which(program) is None:
            print(f"  {program} is not installed: scripts/deps install bench")
            continue
        with tempfile.TemporaryDirectory() as folder:
            data, whole = measure(times, columns, pathlib.Path(folder))
        print(f"figure codec_peers.{name}_data {data / values:.3f} bytes")
        print(f"figure codec_peers.{name}_whole {whole / values:.3f} bytes", flush=True)


if __name__ == "__main__":
    main()
