"""Steps with telemetry as a user meets them: what srun says, what the running head answers, the
profile that stays.

Steps sample every 100 ms unless a test says otherwise, so tests are short.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import belongings
from conftest import BUILD, ROOT, SONDE, USER, sonded_processes, wait_for

LEVEL = ("--telemetry-level=2", "--telemetry-period=100ms")
# A node's stop (1.8 s), the head's (2 s), and a busy machine.
END_BOUND = 8.0


def ours(stderr):
    """Sonde's lines of what srun wrote to stderr before the report."""
    return [line for line in stderr.splitlines() if "sonde: " in line]


def step_id(stderr):
    found = re.search(r"sonde: telemetry level \d for step (\S+);", stderr)
    return found.group(1) if found else None


def report_of(stderr):
    """The closing report: from its first line to the end."""
    start = stderr.find("\nSonde: ")
    return stderr[start + 1 :] if start >= 0 else ""


def without_sonde(stderr):
    """What srun wrote to stderr besides Sonde's lines and report."""
    report = report_of(stderr)
    text = stderr[: len(stderr) - len(report)] if report else stderr
    return [line for line in text.splitlines() if "sonde: " not in line]


def normal(text, job):
    """Lines in one order, without the job's number: comparable between two runs."""
    return sorted(line.replace(str(job), "JOB") for line in text)


def show(cluster, step, user=USER):
    """The profile of a step as `sonde show --json` prints it; None if there is none."""
    done = cluster.run([SONDE, "show", "--json", step], user=user)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout) if done.returncode == 0 else None


def job_of(shown):
    return shown["profile"]["job"]


def coverage(shown):
    """Node samples that are in the profile and that a complete one would have, as a ratio."""
    counts = job_of(shown)["coverage"]
    return counts["got"] / counts["expected"]


TOO_LATE = re.compile(r"(\d+) samples came too late to be merged")


def notes_of(shown):
    """The profile's notes, but for that of samples that came too late, which complete() counts."""
    return [note for note in job_of(shown)["notes"] if not TOO_LATE.fullmatch(note)]


def complete(shown):
    """Every sample is there, or the profile says what became of it. A machine that also runs other tests
    may be too busy to take some, or to send them in time while links change: of the latter there are few."""
    counts = job_of(shown)["coverage"]
    late = sum(int(found[1]) for note in job_of(shown)["notes"] if (found := TOO_LATE.fullmatch(note)))
    missing = counts["expected"] - counts["got"] - counts["skipped"]
    return missing == late <= max(2, counts["expected"] / 10)


def counter(shown, name, **tags):
    """The entry of the footprint for one metric."""
    for entry in shown["profile"]["footprint"]:
        if entry["metric"] == name and tags.items() <= entry["tags"].items():
            return entry
    raise AssertionError(f"no {name} {tags} in the profile")


def build_counting(directory):
    """A program that adds to an application metric as often as its first argument says, then waits
    as many microseconds as its second one does."""
    source = directory / "counting.c"
    source.write_text(
        """
        #include <stdlib.h>
        #include <unistd.h>
        #include "libclient/sonde.h"
        int main(int argc, char** argv) {
          sonde_metric_t* done = sonde_counter("work_done_total", "1", "Work done", 1, NULL, 0);
          for (long i = 0; i < atol(argv[1]); ++i) sonde_add(done, 1);
          usleep(argc > 2 ? atoi(argv[2]) : 0);
          return 0;
        }"""
    )
    program = directory / "counting"
    # Beside it: a job in a container does not see every directory of the host.
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", directory)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(["cc", "-o", program, source, *flags, "-lsonde"], check=True)
    return program


def daemon(role, step, node=None):
    """The pid of a step's head, or of its daemon on a node: that is the child of no one, so the
    application's socket it listens at tells the node."""
    found = [pid for pid, command in sonded_processes() if command.endswith(f"--{role} {step}")]
    if node is None:
        return found
    return [pid for pid in found if f"/{step}.{node}." in sockets_of(pid)]


def sockets_of(pid):
    inodes = belongings.open_sockets(pid)
    names = []
    for line in open("/proc/net/unix", encoding="ascii").read().splitlines()[1:]:
        fields = line.split()
        if fields[6] in inodes and len(fields) == 8:
            names.append(fields[7])
    return " ".join(names)


class Live:
    """HTTP of a running step's head."""

    def __init__(self, host, port, token):
        self.host, self.port, self.token = host, port, token

    def status(self, path, token=None):
        """The status code of a GET, with that token or none."""
        try:
            with self._open(path, token, None) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def get(self, path):
        with self._open(path, self.token, None) as answer:
            return answer.read().decode()

    def query(self, metric, aggregator="sum", start="1h-ago", **more):
        return self.queries([{"metric": metric, "aggregator": aggregator, **more}], start=start)

    def queries(self, queries, **more):
        body = {"queries": queries, **more}
        with self._open("/api/query", self.token, json.dumps(body).encode()) as answer:
            return json.loads(answer.read())

    def _open(self, path, token, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            return urllib.request.urlopen(request, timeout=10)
        except urllib.error.HTTPError as error:
            if error.code == 500:
                error.add_note(f"{path}: {error.read().decode(errors='replace')}")
            raise


FIRST = -15  # as nice(1) has it


def tasks_of(program):
    """(pid, environment) of the processes that run it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if not file.read().startswith(str(program).encode()):
                    continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                yield int(pid), file.read().split(b"\0")
        except OSError:
            continue


def go_first(step, program, count):
    """What a program does shows where it has processors of its own: as on a node of a real cluster its tasks do
    not wait for what else runs on this machine."""
    job = f"SLURM_JOB_ID={step.job}".encode()

    def begun():
        found = [pid for pid, environ in tasks_of(program) if job in environ]
        if len(found) >= count:
            return found
        assert step.process.poll() is None, f"srun has ended: {step.stderr}"
        return None

    for pid in wait_for(begun, f"{count} tasks of {step.job}"):
        with contextlib.suppress(OSError):  # it has ended, or we may not
            os.setpriority(os.PRIO_PROCESS, pid, FIRST)
            # A session of its own has a priority of its own: autogroup in sched(7).
            with open(f"/proc/{pid}/autogroup", "w", encoding="utf-8") as file:
                file.write(str(FIRST))


class Step:
    """An srun in the background; its output goes to files, so it never waits for a reader."""

    count = 0

    def __init__(self, cluster, words, user=USER, env=None):
        Step.count += 1
        self.cluster, self.user = cluster, user
        self.files = [cluster.dir / f"step{Step.count}.{name}" for name in ("out", "err")]
        with open(self.files[0], "w") as out, open(self.files[1], "w") as err:
            self.process = cluster.popen(words, user=user, env=env, stdout=out, stderr=err)

    @property
    def stdout(self):
        return self.files[0].read_text()

    @property
    def stderr(self):
        return self.files[1].read_text()

    @property
    def id(self):
        return wait_for(lambda: step_id(self.stderr), "srun's line with the step", 20)

    @property
    def job(self):
        return int(self.id.split(".")[0])

    def live_directory(self):
        """That of the head that there is: the one of a head that was killed may still be there. One that is being
        made has a name with a dot in front; any may go meanwhile."""
        changed = {}
        for directory in (self.cluster.archive(self.user) / "live").glob(f"[!.]*.{self.id}.*"):
            with contextlib.suppress(FileNotFoundError):
                changed[directory] = directory.stat().st_mtime_ns
        return max(changed, key=changed.get, default=None)

    def live(self):
        """Waits until the step's head serves."""

        def endpoint():
            directory = self.live_directory()
            with contextlib.suppress(FileNotFoundError):
                return json.loads((directory / "endpoint.json").read_text()) if directory else None
            return None

        found = wait_for(endpoint, f"the endpoint of {self.id}")
        return Live(found["host"], found["port"], found["token"])

    def wait_output(self, text, timeout=20):
        return wait_for(lambda: text in self.stdout, f"{text!r} on stdout", timeout)

    def wait_nodes(self, count):
        """Waits until that many nodes are in two ticks; gives the live head."""
        live = self.live()

        def there():
            with contextlib.suppress(urllib.error.HTTPError):  # 400: nothing is measured yet
                counted = live.query("sonde_samples_total", aggregator="count")
                return counted and sum(n >= count for n in counted[0]["dps"].values()) >= 2
            return False

        wait_for(there, f"{count} nodes of {self.id}")
        return live

    def wait(self, timeout=30):
        """Waits for srun's end; gives its exit code and how long that took."""
        start = time.monotonic()
        code = self.process.wait(timeout)
        return code, time.monotonic() - start

    def profile(self):
        return show(self.cluster, self.id, self.user)


@contextlib.contextmanager
def served(cluster):
    """`sonde serve` of the user."""
    out = cluster.dir / f"serve{Step.count}.out"
    with open(out, "w") as file:
        process = cluster.popen([SONDE, "serve", "--port", "0"], user=USER, stdout=file)
    try:
        found = wait_for(
            lambda: re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", out.read_text()),
            "the address of sonde serve",
            20,
        )
        yield Live("127.0.0.1", int(found.group(1)), found.group(2))
    finally:
        process.terminate()
        process.wait(20)
