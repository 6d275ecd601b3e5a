"""Fixtures for tests on a real Slurm: a private cluster with Sonde's plugin, removed afterwards.

`cluster` is one per test module, of four nodes n1 to n4 with two CPUs each. `make_cluster` makes
others, for tests that need different options or break a cluster for good. SONDE_BUILD names the
build directory, build/release unless set. SONDE_SLURM names the release of Debian whose Slurm it is
(scripts/slurm), this machine's unless set. SONDE_PROGRAMS names another one to take sonded and sonde
from: one built with sanitizers, which cannot be loaded into Slurm. What they find in the daemons
fails the test that is running then. A cluster stops when pytest ends, however it ends. Others may run
on the host meanwhile: what a test asks about processes and sockets, it is told of its own clusters'.

Ordinary users are USER and OTHER_USER. Nothing here sleeps for a guessed time: wait for the event
with cluster.wait_for(). Where a step's own program sleeps, that is its work, and how long it takes
decides nothing: what must last until the test has done something waits for a file.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

import belongings
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import made  # noqa: E402  (of tests/, for which the path had to be set)
import releases  # noqa: E402

SCRIPT = ROOT / "scripts" / "cluster"
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release")).resolve()
# The release of Debian whose Slurm the clusters have; "" for this machine's own.
SLURM = os.environ.get("SONDE_SLURM", "")
# Where the compiler finds the headers of that Slurm; of this machine's it knows.
SLURM_HEADERS = []
PLUGIN = releases.plugin_of(BUILD, SLURM) if SLURM else BUILD / "spank" / "spank_sonde.so"
PROGRAMS = pathlib.Path(os.environ.get("SONDE_PROGRAMS", BUILD)).resolve()
LIBRARIES = BUILD / "libclient"
SONDED = PROGRAMS / "daemon" / "sonded"
SONDE = PROGRAMS / "cli" / "sonde"
# See sanitizer_options.cc.
REPORTS = PROGRAMS / "reports"
if PROGRAMS != BUILD or SLURM:
    # sonde looks for the plugin beside itself.
    os.environ["SONDE_PLUGIN"] = str(PLUGIN)
USER = "sonde-test1"
OTHER_USER = "sonde-test2"
# The last words of a salloc of Slurm 26.05 that waits for its own threads for ever, in conmgr_fini(): one of some 1,000
# on a busy machine, with Sonde or without.
HUNG = "salloc: Relinquishing job allocation"
REGISTRY = pathlib.Path("/run/sonde-clusters")
# ctest's SKIP_RETURN_CODE for these tests: shown as skipped, never as passed.
SKIPPED = 77

# What srun prints at the end has all that a test may look for; users get it in six lines.
FULL_REPORT = {"SONDE_REPORT": "full"}


def environment(more):
    """This one with more variables; None takes one away."""
    every = {**os.environ, **FULL_REPORT, **(more or {})}
    return {name: value for name, value in every.items() if value is not None}


PLUGSTACK = f"optional {PLUGIN} sonded={SONDED} sonde={SONDE} config=@DIR@/sonde.conf libraries={LIBRARIES} state=@DIR@/counters\n"


def pytest_sessionstart(session):
    if os.geteuid() != 0:
        pytest.exit("tests on a Slurm cluster need root", returncode=SKIPPED)
    if SLURM:
        find_slurm()


def find_slurm():
    """Sees that the other release's Slurm is there, and the plugin for it as the sources are now."""
    slurm = made.place(f"slurm-{SLURM}")
    if slurm is None:
        pytest.exit(made.why(f"slurm-{SLURM}"), returncode=SKIPPED)
    if not PLUGIN.exists():
        pytest.exit(made.why(f"plugin-{SLURM}"), returncode=SKIPPED)
    include = slurm / "include"
    SLURM_HEADERS.append(f"-I{include}")
    try:
        releases.plugin(BUILD, SLURM, include)
    except releases.BuildError as error:
        pytest.exit(f"the plugin for the Slurm of {SLURM} is not built: {error}", returncode=1)


def wait_for(predicate, what, timeout=30.0):
    """Polls until predicate() is true and returns its value; a clear failure otherwise. What it waits for
    is a text, or gives one at the end."""
    deadline = time.monotonic() + timeout
    while True:
        looked = time.monotonic()
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            what = what() if callable(what) else what
            pytest.fail(f"waited {timeout:g} s in vain for {what}; last value: {value!r}")
        # What is waited for needs the processors more than who looks.
        time.sleep(max(0.02, 2 * (time.monotonic() - looked)))


class Cluster:
    """A running private cluster. stop() may be called more than once."""

    def __init__(
        self,
        *,
        plugstack=PLUGSTACK,
        nodes=4,
        cpus_per_node=2,
        slurm_conf=(),
        etc=(),
        directory=None,
        address=None,
    ):
        self.dir = pathlib.Path()
        self._children = []
        command = [SCRIPT, "start", "--owner", str(os.getpid()), "--plugstack", "/dev/stdin"]
        command += ["--nodes", str(nodes), "--cpus-per-node", str(cpus_per_node)]
        for line in slurm_conf:
            command += ["--slurm-conf-extra", line]
        for file in etc:
            command += ["--etc", file]
        if directory:
            command += ["--dir", directory]
        if address:
            command += ["--address", address]
        env = {**os.environ, "SONDE_BUILD": str(BUILD)}
        done = subprocess.run(
            command, input=plugstack, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.fail(f"scripts/cluster start failed:\n{done.stderr}", pytrace=False)
        self.dir = pathlib.Path(done.stdout.strip())
        self.facts = json.loads((self.dir / "etc" / "cluster.json").read_text())
        self.nodes = list(self.facts["nodes"])
        path = ":".join([*self.facts["path"], os.environ["PATH"]])
        self._client = {**os.environ, "PATH": path, "SLURM_CONF": f"{self.dir}/etc/slurm.conf"}
        self.started = time.time()
        self.conf("")

    @contextlib.contextmanager
    def plugstack_argument(self, argument):
        """Steps that start meanwhile have one more argument of the plugin's: srun and slurmstepd read
        the file anew for every step."""
        file = self.dir / "etc" / "plugstack.conf"
        before = file.read_text()
        file.write_text(before.replace(" sonded=", f" {argument} sonded=", 1))
        try:
            yield
        finally:
            file.write_text(before)

    # --- Commands

    def command(self, command, user=USER):
        """The words that run a command, a list or a shell line, inside the cluster."""
        words = ["bash", "-c", command] if isinstance(command, str) else list(map(str, command))
        as_user = ["--user", user] if user != "root" else []
        return [str(SCRIPT), "run", str(self.dir), *as_user, "--", *words]

    def run(self, command, user=USER, timeout=60, env=None, again=True, **options):
        """Runs a command to its end: a CompletedProcess with text in stdout and stderr. `again`: once more if it is
        Slurm that hangs."""
        self._settle(command)
        try:
            return subprocess.run(
                self.command(command, user),
                timeout=timeout,
                env=environment(env),
                stdin=None if "input" in options else subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                **options,
            )
        except subprocess.TimeoutExpired as error:
            shown = command if isinstance(command, str) else shlex.join(map(str, command))
            output = "\n".join(
                part.decode(errors="replace") for part in (error.stdout, error.stderr) if part
            )
            if again and SLURM == "sid" and HUNG in output:
                return self.run(command, user, timeout, env, again=False, **options)
            pytest.fail(f"still running after {timeout} s: {shown}\n{output}")

    def popen(self, command, user=USER, env=None, **options):
        """Starts a command; its pid is the command's own. Killed when the cluster stops."""
        defaults = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "start_new_session": True,
        }
        self._settle(command)
        child = subprocess.Popen(
            self.command(command, user),
            env=environment(env),
            **{**defaults, **options},
        )
        self._children.append(child)
        return child

    def slurm(self, *command, timeout=20):
        """Runs a Slurm command as root, which must succeed; its output."""
        # Not by `scripts/cluster run`, which takes longer than they do: jobs are looked at often.
        done = subprocess.run(list(map(str, command)), env=self._client, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)  # fmt: skip
        assert done.returncode == 0, f"{shlex.join(map(str, command))}: {done.stderr}"
        return done.stdout

    def program(self, name):
        """The path of one of Slurm's programs, for what does not have this cluster's PATH."""
        return shutil.which(name, path=self._client["PATH"])

    def wait_for(self, predicate, what, timeout=30.0):
        return wait_for(predicate, what, timeout)

    # --- Jobs and nodes

    def _settle(self, command):
        """Before a new job, waits for the nodes of ended ones: it would get others, and tests say by
        name which node a task, a log line or a profile is of."""
        if not isinstance(command, str) and str(command[0]) in ("srun", "sbatch", "salloc"):
            self.settle(3)

    def settle(self, timeout=10):
        """Waits until no job is completing. No longer than this: where a job cannot end, a test has seen
        to that, and names its nodes."""
        deadline = time.monotonic() + timeout
        squeue = ["squeue", "--noheader", "--states=COMPLETING"]
        while time.monotonic() < deadline:
            if not subprocess.run(squeue, env=self._client, capture_output=True, check=False).stdout:
                return
            time.sleep(0.05)

    def jobs(self):
        """Job number -> state of the jobs that Slurm still knows, ended ones included."""
        output = self.slurm("squeue", "--noheader", "--states=all", "--format=%A %T")
        return {int(job): state for job, state in map(str.split, output.splitlines())}

    def sbatch(self, script, user=USER, options=()):
        """Submits a shell script; its job number. Its output lands in the user's home."""
        text = script if script.startswith("#!") else f"#!/bin/bash\n{script}\n"
        done = self.run(["sbatch", "--parsable", *options], user=user, input=text)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split(";")[0])

    def wait_job(self, job, timeout=60):
        """Waits until a job has ended; its final state, such as COMPLETED or TIMEOUT."""
        unfinished = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED")

        def ended():
            state = self.jobs().get(job)
            return state if state not in unfinished else None

        return self.wait_for(ended, f"the end of job {job}", timeout)

    def cancel_all(self):
        """Ends what a failed test may have left running."""
        for job, state in self.jobs().items():
            if state in ("PENDING", "RUNNING"):
                self.slurm("scancel", job)

    def expire(self, job):
        """Makes a running job reach its time limit, enforced by Slurm within 30 s.

        Slurm's time limits count in minutes and slurmctld looks at them every 30 s.
        """
        self.slurm("scontrol", "update", f"JobId={job}", "EndTime=now+1")

    def node(self, name, action):
        """kill (slurmd only), crash (everything of the node), start, pause or resume."""
        subprocess.run([SCRIPT, "node", self.dir, name, action], check=True)

    # --- Sonde

    def conf(self, text):
        """Writes sonde.conf. Steps started from now on read it."""
        path = self.dir / "sonde.conf"
        path.write_text(text)
        return path

    def home(self, user=USER):
        return self.dir / "home" / user

    def archive(self, user=USER):
        return self.home(user) / ".local" / "share" / "sonde"

    def leftovers(self):
        """What Sonde should have taken away with its steps; empty when it did.

        This cluster's daemons of this build, abstract sockets, shared memory of Sonde's and sockets in
        /tmp. A file of these does not tell its cluster but by the number of a job in its name, and a
        socket by who has it open; those of other users are of other tests.
        """
        return (
            [f"process {pid} {command}" for pid, command in self.daemons()]
            + [f"socket {name}" for name in belongings.abstract_sockets(self.dir)]
            + [f"file {path}" for path in self._files() if not self._foreign(path)]
        )

    def wait_clean(self, timeout=8.0):
        """Waits until nothing is left over, and says what is: a node's daemon has 1.8 s to stop and the
        head 2 s, on a busy machine more."""
        left = []

        def clean():
            left[:] = self.leftovers()
            return not left

        wait_for(clean, lambda: "the end of " + ", ".join(left), timeout)

    def daemons(self):
        """(pid, command line) of this cluster's living processes that run this build's daemon."""
        return belongings.running((str(SONDED), f"{SONDED}-head"), self.dir)

    def _files(self):
        memory = pathlib.Path("/dev/shm").glob("*sonde*")
        for path in [*memory, *pathlib.Path("/tmp").glob("sonde-*.proxy")]:
            try:
                if path.stat().st_mtime >= self.started and path.owner() in (USER, OTHER_USER):
                    yield path
            # Gone meanwhile, or of a user whom nobody knows.
            except (FileNotFoundError, KeyError):
                continue

    def _foreign(self, path):
        numbers = {int(digits) for digits in re.findall(r"\d+", path.name)}
        mine = range(self.facts["first_job"], self.facts["last_job"] + 1)
        # Also of `sonde run`, which has no number.
        if belongings.is_of_others(path, self.dir):
            return True
        if any(number in mine for number in numbers):
            return False
        return any(number in jobs for number in numbers for jobs in other_jobs(self.dir))

    # --- Logs and end

    def log(self, name):
        """The text of a log: slurmctld, or a node's name."""
        file = f"slurmd.{name}.log" if name in self.nodes else f"{name}.log"
        return (self.dir / "log" / file).read_text(errors="replace")

    def log_tails(self, lines=40):
        for name in ("slurmctld", *self.nodes):
            yield name, "\n".join(self.log(name).splitlines()[-lines:])

    def stop(self):
        for child in self._children:
            child.kill()
        subprocess.run([SCRIPT, "stop", self.dir], check=True)
        for child in self._children:
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
        self._children.clear()


# Of this test run, as make_cluster made them.
own_clusters = []


def sonded_processes():
    """(pid, command line) of the daemons of this test run's clusters."""
    return [found for cluster in own_clusters for found in cluster.daemons()]


def other_jobs(own_dir):
    """The job numbers of the other clusters on this host, as ranges."""
    for entry in REGISTRY.glob("cluster.*"):
        try:
            directory = pathlib.Path(json.loads(entry.read_text())["dir"])
            if directory != own_dir:
                facts = json.loads((directory / "etc" / "cluster.json").read_text())
                yield range(facts["first_job"], facts["last_job"] + 1)
        except (OSError, ValueError):
            continue


@pytest.fixture(scope="module")
def make_cluster():
    """Starts clusters with options of one's own; all are stopped at the module's end."""
    clusters = []

    def make(**options):
        clusters.append(Cluster(**options))
        own_clusters.append(clusters[-1])
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.stop()
        own_clusters.remove(cluster)


@pytest.fixture(scope="module")
def cluster(make_cluster):
    """The module's cluster, with Sonde's plugin from SONDE_BUILD."""
    missing = [str(path) for path in (PLUGIN, SONDED) if not path.exists()]
    if missing:
        pytest.fail(f"not built: {', '.join(missing)}; set SONDE_BUILD or build", pytrace=False)
    require_reachable(SONDED)
    running = make_cluster()
    running.conf("")
    return running


@pytest.fixture(autouse=True)
def sanitizers_find_nothing():
    """Fails a test during which a daemon under sanitizers wrote a report."""
    before = set(REPORTS.glob("sonded.*"))
    yield
    found = sorted(set(REPORTS.glob("sonded.*")) - before)
    if found:
        texts = "\n".join(f"{path}:\n{path.read_text(errors='replace')}" for path in found)
        pytest.fail(f"what sanitizers found in sonded:\n{texts}", pytrace=False)


def require_reachable(path):
    """The daemon runs as the job's user, so that user must be able to reach the build."""
    for parent in path.parents:
        if not parent.stat().st_mode & 0o001:
            pytest.fail(f"{parent} is closed to ordinary users, so jobs cannot run {path}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the tails of Slurm's logs to the report of a failed test."""
    outcome = yield
    report = outcome.get_result()
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster) and cluster.dir.name:
        try:
            for name, tail in cluster.log_tails():
                report.sections.append((f"log of {name}", tail))
        except OSError as error:
            print(f"no logs: {error}", file=sys.stderr)
