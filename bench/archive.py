"""Times of whole processes on an archive of 100,000 profiles. Run by bench/archive.sh.

Warm: everything lies in the page cache. Evicted: the files of the archive and the program were put out of
it before each run; what the disk's own cache has is not known. Medians of RUNS, with quartiles.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["SONDE_BUILD"])
PROFILES = int(os.environ.get("PROFILES", 100_000))
RUNS = int(os.environ.get("RUNS", 31))
SONDE = BUILD / "cli" / "sonde"
HELPER = BUILD / "bench" / "bench_archive"
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "200"}

# Name, arguments, and how many milliseconds it may take.
SEARCHES = {
    "cmd_state_since": "--cmd lammps --state failed --since 2026-08-01 --sort mem",
    "cmd": "--cmd case042",
    "name": "--name run-3-7",
    "node": "--node n0123 --sort cpu",
    "tag": "--tag campaign=winter --sort energy",
    "state": "--state out_of_memory --sort mem",
    "user": "--user user07 --sort time",
    "all_sorted": "--sort mem",
    "nothing": "--user nobody",
}


def figure(name, value, unit):
    print(f"figure archive.{name} {value:.4g} {unit}", flush=True)


def evict(archive):
    for path in [SONDE, HELPER, *(archive / "db").iterdir()]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def sonde(archive, *arguments):
    return [str(SONDE), "--archive", str(archive), *arguments]


def run(command):
    begin = time.perf_counter()
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    elapsed = (time.perf_counter() - begin) * 1000
    if done.returncode != 0:
        raise SystemExit(f"bench archive: {command} failed: {done.stderr}")
    return elapsed, done.stdout


def told(name, values):
    values = sorted(values)
    low, middle, high = statistics.quantiles(values, n=4)
    figure(name, middle, "ms")
    figure(f"{name}.quartile_low", low, "ms")
    figure(f"{name}.quartile_high", high, "ms")


def measure(name, archive, command_of, evicted, runs=RUNS):
    """command_of(i): the i-th command; the first one is not counted."""
    values = []
    for i in range(runs + 1):
        if evicted:
            evict(archive)
        values.append(run(command_of(i))[0])
    told(name + ("_evicted" if evicted else ""), values[1:])


def generated():
    archive = BUILD / "archive-bench" / str(PROFILES)
    if not (archive / "complete").exists():
        shutil.rmtree(archive, ignore_errors=True)
        archive.mkdir(parents=True, mode=0o700)
        begin = time.perf_counter()
        subprocess.run([HELPER, "generate", archive, str(PROFILES)], check=True)
        print(f"generated in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
        (archive / "complete").touch()
    size = sum(path.stat().st_size for path in (archive / "db").iterdir())
    figure("db", size / 2**20, "MiB")
    return archive


def show_command(archive):
    return lambda i: sonde(archive, "show", f"{1_000_000 + i * 7919 % PROFILES}.0")


def answer_to(connection, token, target):
    """Milliseconds until a server has answered a GET."""
    begin = time.perf_counter()
    connection.request("GET", target, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"bench archive: {target}: {answer.status} {answer.reason}")
    return (time.perf_counter() - begin) * 1000


def first_answer(server, begin):
    """Milliseconds from `begin` until a server says where it is, and until the list of jobs is there; a
    connection to it, and its token."""
    found = None
    while not found:
        line = server.stdout.readline()
        if not line:
            raise SystemExit("bench archive: sonde serve says nothing")
        found = re.search(r"http://([\d.]+):(\d+)/#token=(\S+)", line)
    up = (time.perf_counter() - begin) * 1000
    connection = http.client.HTTPConnection(found[1], int(found[2]), timeout=60)
    answer_to(connection, found[3], "/job/list")
    return up, (time.perf_counter() - begin) * 1000, connection, found[3]


def queried(archive):
    """What a dashboard asks a server that runs: for a step, for whatever ran in an hour, for names."""
    newest = json.loads(run(sonde(archive, "ls", "-n", "1", "--json"))[1])[0]["job"]
    step = f"{newest['job']}.{newest['step']}"
    end = newest["start"] // 10**9
    query = f"/api/query?start={end - 3600}&end={end}&m=sum:node_load1"
    targets = {
        "query_step": query + "%7B%7D%7Bjob=" + step + "%7D",
        "query_hour": query + "%7Bjob=*%7D",
        "suggest": "/api/suggest?type=metrics&q=node",
    }
    with subprocess.Popen(sonde(archive, "serve", "--listen", "127.0.0.1:0"), env=ENVIRONMENT,
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            _, _, connection, token = first_answer(server, time.perf_counter())
            for name, target in targets.items():
                values = [answer_to(connection, token, target) for _ in range(RUNS + 1)]
                told(f"serve_{name}", values[1:])
        finally:
            server.terminate()


def served(archive, evicted):
    """From the start of the process until the list of jobs has been answered."""
    values = []
    for _ in range(RUNS + 1):
        if evicted:
            evict(archive)
        begin = time.perf_counter()
        with subprocess.Popen(sonde(archive, "serve", "--listen", "127.0.0.1:0"), env=ENVIRONMENT,
                              stdout=subprocess.PIPE, text=True) as server:
            try:
                values.append(first_answer(server, begin))
            finally:
                server.terminate()
    name = "_evicted" if evicted else ""
    told("serve_up" + name, [value[0] for value in values[1:]])
    told("serve_first_answer" + name, [value[1] for value in values[1:]])


def ingested(archive):
    values = []
    for i in range(RUNS + 1):
        job = f"bench-{os.getpid()}-{i}"
        subprocess.run([HELPER, "step", archive, job], check=True)
        values.append(run([str(HELPER), "ingest", str(archive), job])[0])
        if any((archive / "live").glob(f"*.{job}.*")):
            raise SystemExit(f"bench archive: {job} was not taken in")
    told("ingest", values[1:])


def ingested_at_once(archive, steps=64):
    """Every step's own process takes it in, all at once, as heads do; then a command looks."""
    jobs = [f"many-{os.getpid()}-{i}" for i in range(steps)]
    for job in jobs:
        subprocess.run([HELPER, "step", archive, job], check=True)
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(steps) as pool:
        list(pool.map(lambda job: run([str(HELPER), "ingest", str(archive), job]), jobs))
    listed = json.loads(run(sonde(archive, "ls", "-n", str(steps), "--json"))[1])
    figure("at_once", (time.perf_counter() - begin) * 1000, "ms")
    there = {one["job"]["job"] for one in listed if not one["live"]}
    figure("at_once.steps_taken_in", len(there & set(jobs)), "of 64")
    if there != set(jobs):
        raise SystemExit("bench archive: steps are missing")


def main():
    archive = generated()
    for evicted in (False, True):
        runs = RUNS if not evicted else max(RUNS // 3, 3)
        measure("ls", archive, lambda i: sonde(archive, "ls"), evicted, runs)
        measure("ls_json", archive, lambda i: sonde(archive, "ls", "--json"), evicted, runs)
        for name, filters in SEARCHES.items():
            measure(f"search.{name}", archive, lambda i, f=filters: sonde(archive, "ls", *f.split()),
                    evicted, runs)
        measure("show", archive, show_command(archive), evicted, runs)
        measure("diff_cmd", archive, lambda i: sonde(archive, "diff", "--cmd", "case042", "--no-plot"),
                evicted, runs)
        served(archive, evicted)
    queried(archive)
    with tempfile.TemporaryDirectory(dir=archive.parent) as copy:
        # What comes in shall not stay: files of LevelDB do not change, so links will do.
        target = pathlib.Path(copy) / "archive"
        shutil.copytree(archive, target, copy_function=link_or_copy)
        ingested(target)
        ingested_at_once(target)


def link_or_copy(source, target):
    if source.endswith(".ldb"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


if __name__ == "__main__":
    main()
