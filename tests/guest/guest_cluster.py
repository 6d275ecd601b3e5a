"""The private cluster in the guest, and what a scenario sees there without telemetry and with it.

Only the standard library is here.
"""

import contextlib
import functools
import glob
import os
import pathlib
import pty
import pwd
import re
import select
import signal
import subprocess
import sys
import threading
import time

USER = "sonde-test1"
CLUSTER = "/share/scripts/cluster"
SONDE = "/share/sonde"
FAIL = pathlib.Path("/tmp/fail")
# With namespaces a job has another directory in the place of the first.
PRIVATE = "/run/private"
COUNTERS = f"{PRIVATE}/counters"
LEVEL = ["--telemetry-level=2", "--telemetry-period=200ms"]
ALL = ["--telemetry-level=4", "--telemetry-period=200ms"]
LEVELS = {"without": [], "with": LEVEL}
NODES = ("n1", "n2")
IDLE = dict.fromkeys(NODES, "IDLE")
# By then slurmstepd has given up: UnkillableStepTimeout is 10 s here.
SETTLED = 40.0
# s that a scenario's commands, and Slurm after them, may wait longer with telemetry (idle()): a daemon that has
# to be killed at its end takes 2 s, and all that Slurm waits for takes 5 s or more.
MORE = 3.0
# Only a failure lasts so long, however busy the machine is.
LIMIT = 120.0
GO = pathlib.Path("/tmp/go")
PROGRAMS = {"sonded", "sonded-head", "sonde"}

CGROUP_CONF = "\n".join([
    "CgroupPlugin=cgroup/v2", "IgnoreSystemd=yes", "ConstrainRAMSpace=yes", "ConstrainCores=no",
])  # fmt: skip

# Without it Slurm takes no notice of --container.
OCI_CONF = 'RunTimeQuery="true"\nRunTimeRun="true"\nRunTimeKill="true"\nRunTimeDelete="true"'

# Callbacks run in the job's mount namespace.
NAMESPACES = ["SlurmdParameters=config_overrides,contain_spank", "JobContainerType=job_container/tmpfs",
              "PrologFlags=Contain"]  # fmt: skip
JOB_CONTAINER_CONF = f"AutoBasePath=true\nBasePath=/run/namespaces\nDirs={PRIVATE}"


# Samples got, expected, and never taken since the daemon did not get to run in time.
COVERAGE = re.compile(r"Coverage [\d.]+ %: (\d+) of (\d+) node samples(?: (\d+) never taken)?")


def has_all_samples(report):
    """Or says what became of them: a busy machine may let a daemon miss some, and let few come too late."""
    text = " ".join(report.split())
    got, expected, skipped = (int(number or 0) for number in COVERAGE.search(text).groups())
    late = sum(map(int, re.findall(r"(\d+) samples came too late to be merged", text)))
    return expected - got - skipped == late <= max(2, expected / 10)


class NothingToSee(Exception):
    """What a scenario is about has not come about."""


@functools.cache
def has_cgroups():
    """Slurm 22.05 cannot start tasks in control groups of a kernel without cpuset, as the guest's is."""
    return "VERSION_CODENAME=bookworm" not in read("/etc/os-release")


def slurm_options(lines):
    """What scripts/cluster is told of the guest, and of lines of slurm.conf besides."""
    options = ["--proctrack", "cgroup" if has_cgroups() else "linuxproc"]
    for line in (f"TaskPlugin=task/{'cgroup' if has_cgroups() else 'none'}", "JobAcctGatherType=jobacct_gather/none",
                 "SelectTypeParameters=CR_CPU_Memory", "DefMemPerNode=200", "LaunchParameters=use_interactive_step",
                 *lines):  # fmt: skip
        options += ["--slurm-conf-extra", line]
    return [*options, "--etc", f"cgroup.conf={CGROUP_CONF}", "--etc", f"oci.conf={OCI_CONF}"]


def start_cluster(contain):
    plugstack = (
        f"optional {SONDE}/spank/spank_sonde.so sonded={SONDE}/daemon/sonded sonde={SONDE}/cli/sonde"
        f" config=/tmp/sonde.conf libraries={SONDE}/libclient state={COUNTERS}\n"
        f"required {SONDE}/failing_plugin.so file={FAIL}\n"
    )
    os.makedirs(PRIVATE, exist_ok=True)
    # Slurm 22.05 makes its scope there and not what is above it.
    os.makedirs("/sys/fs/cgroup/system.slice", exist_ok=True)
    FAIL.write_text("")
    FAIL.chmod(0o644)
    conf("")
    command = [CLUSTER, "start", "--nodes", "2", "--owner", str(os.getpid()), "--plugstack", "/tmp/plugstack.conf"]
    pathlib.Path("/tmp/plugstack.conf").write_text(plugstack)
    # A requeued job begins anew when the credentials of its first run are over, and a step's launch has to end before,
    # however busy this machine is.
    lines = ["SlurmdTimeout=10", "AuthInfo=socket=@DIR@/run/munge.sock,cred_expire=15"]
    command += slurm_options(lines + (list(NAMESPACES) if contain else []))
    command += ["--etc", f"job_container.conf={JOB_CONTAINER_CONF}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the cluster did not start: {done.stderr}")
    return done.stdout.strip()


def conf(text):
    """Writes sonde.conf, with the whole report: tests look for its lines."""
    path = pathlib.Path("/tmp/sonde.conf")
    path.write_text(f"{text}\nreport = full\n")
    path.chmod(0o644)


class Cluster:
    def __init__(self, directory):
        self.dir = directory

        self._started_as = {}

    def popen(self, words, user=USER):
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            **self._start_as(user),
        )  # fmt: skip

    def _start_as(self, user):
        """Popen's arguments with which a command runs as `scripts/cluster run` has it: that takes 0.7 s here each
        time until the command begins, and is asked once."""
        if user not in self._started_as:
            command = [CLUSTER, "run", self.dir, *(["--user", user] if user else []), "--", "env", "--null"]
            shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            env = dict(line.split("=", 1) for line in shown.split("\0") if line)
            self._started_as[user] = {"env": env}
            if user:
                groups = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
                self._started_as[user] |= {"user": user, "group": user, "extra_groups": groups, "cwd": env["HOME"]}
        return self._started_as[user]

    def run(self, words, user=USER, timeout=100):
        process = self.popen(words, user)
        try:
            output = process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0] + "\n(timed out)"
        return process.returncode, output

    def on_terminal(self, words, typed, user=USER, timeout=100):
        """As run(), on a terminal at which somebody types."""
        master, slave = pty.openpty()
        process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, **self._start_as(user)
        )
        os.close(slave)
        os.write(master, typed)
        output, end = b"", time.monotonic() + timeout
        while time.monotonic() < end:
            if not select.select([master], [], [], 1.0)[0]:
                continue
            try:
                piece = os.read(master, 4096)
            except OSError:  # nobody has the other end any more
                break
            output += piece
        os.close(master)
        return process.wait(10), output.decode(errors="replace")

    def node_states(self):
        states = {}
        output = self.run(["scontrol", "--oneliner", "show", "node"], user=None)[1]
        for line in output.splitlines():
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if "NodeName" in fields:
                reason = line.partition(" Reason=")[2]
                # Behind a reason stands who gave it, and when.
                states[fields["NodeName"]] = (fields["State"] + " " + reason.partition(" [")[0]).strip()
        return states

    def settle(self):
        """The nodes' states once no job is there any more, or no more is to be expected."""
        return self.last_states(lambda states: states == IDLE, SETTLED)

    def last_states(self, settled, timeout):
        """The nodes' states when settled() is true of them, or at the end. To ask Slurm takes half a second."""
        states = {}

        def look():
            nonlocal states
            states = self.node_states()
            return settled(states)

        wait_for(look, timeout, 0.5)
        return states

    def restore(self, states=None):
        """What a scenario did to the nodes is not the next one's affair. `states`: theirs, where they are known."""
        for job in self.run(["squeue", "--noheader", "--format=%A"], user=None)[1].split():
            self.run(["scancel", job], user=None)
        for pid in ours():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        GO.unlink(missing_ok=True)
        if (states or self.node_states()) == IDLE:
            return
        for node in NODES:
            self.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], user=None)
        self.settle()


def idle():
    """Seconds since the guest's start in which its processor had nothing to do: what lives there waited. All
    else takes longer on a busy machine, and this does not."""
    waits = read("/proc/stat").split(maxsplit=6)[4:6]  # idle, and for files
    return sum(map(int, waits)) / os.sysconf("SC_CLK_TCK")


# Seconds of idle() spent in own_time() so far; for timed().
_own_time = 0.0


@contextlib.contextmanager
def own_time():
    """What a scenario does for itself, which is more with telemetry: to wait for what it is about, to look at
    profiles."""
    global _own_time
    begin = idle()
    try:
        yield
    finally:
        _own_time += idle() - begin


def wait_for(predicate, timeout, interval=0.05, clock=time.monotonic):
    with own_time():
        end, limit = clock() + timeout, time.monotonic() + max(timeout, LIMIT)
        looked = time.monotonic()
        while not (value := predicate()) and clock() < end and time.monotonic() < limit:
            # To look takes the processor, which what is waited for needs.
            time.sleep(max(interval, time.monotonic() - looked))
            looked = time.monotonic()
        return value


def timed(run, *arguments):
    """What run() gives, and the seconds that it waited without those in own_time()."""
    begin, before = idle(), _own_time
    result = run(*arguments)
    return result, idle() - begin - (_own_time - before)


def none_left(look):
    """What look() still sees when a step's tasks are gone and all have had 3 s for their ends."""
    wait_for(lambda: not look(), 3.0, clock=idle)
    return look()


def require(predicate, what):
    """Waits for what a scenario is about; without it there is nothing to be seen."""
    if not wait_for(predicate, LIMIT):
        raise NothingToSee(f"waited in vain for {what}")


def until_started(step, nodes):
    """Waits until `srun -v` knows of all tasks that they run, which it does after they do: a step that ends before
    that has another exit status. What srun said until then."""
    said, end = "", time.monotonic() + LIMIT
    while said.count("tasks started") < nodes:
        ready = select.select([step.stdout], [], [], max(0, end - time.monotonic()))[0]
        part = os.read(step.stdout.fileno(), 1 << 16) if ready else b""
        if not part:
            raise NothingToSee(f"waited in vain for srun to start its tasks: {said}")
        said += part.decode()
    return said


def read(path):
    """With as few system calls as can be, which are slow here: this is asked of every process again and again."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        parts = iter(lambda: os.read(file, 65536), b"")
        return b"".join(parts).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def ours():
    """Processes of Sonde's, and those that the scenarios mark: pid -> command line, or what is left of it."""
    return only_ours(processes())


def only_ours(pids):
    commands = {pid: command_of_ours(pid) for pid in pids}
    return {pid: command for pid, command in commands.items() if command}


def command_of_ours(pid):
    """None if it is not."""
    words = read(f"/proc/{pid}/cmdline").split("\0")
    # A process that ends has no command line any more, and keeps its name.
    names = {os.path.basename(words[0]), comm(pid)}
    if not (names & PROGRAMS or "marked-by-the-test" in words) or not lives(pid):
        return None
    return " ".join(words).strip() or f"({comm(pid)}, which is ending)"


def processes():
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]


def comm(pid):
    return read(f"/proc/{pid}/comm").strip()


def lives(pid):
    """Whether one of its threads does: the kernel keeps a process that was killed until its last thread has
    come back from whatever it waits for."""
    return any(stat(path)[:1] not in ([], ["Z"], ["X"]) for path in glob.glob(f"/proc/{pid}/task/[0-9]*/stat"))


def stat(path):
    """The fields of a stat file behind the name, which may hold anything."""
    return read(path).rpartition(")")[2].split()


def of_steps():
    """What is in a step's control group: pid -> which one."""
    groups = {pid: cgroup(pid).rstrip() for pid in processes()}
    return {pid: group for pid, group in groups.items() if "/job_" in group or "/step_" in group}


def in_steps():
    """Those of ours that a step's control group holds."""
    return only_ours(of_steps())


def beside_slurmstepd():
    """Whatever lives in slurmstepd's own control group of a step and is none of Slurm's: pid -> name."""
    return {
        pid: comm(pid) for pid, group in of_steps().items()
        if group.endswith("/slurm") and not is_slurms(pid) and lives(pid)
    }  # fmt: skip


def is_slurms(pid):
    """slurmstepd, whose main thread may have a worker's name since 24.11, and what it has forked."""
    return comm(pid) == "slurmstepd" or read(f"/proc/{pid}/cmdline").startswith("slurmstepd: ")


def left_in_steps():
    return {**beside_slurmstepd(), **in_steps()}


def cgroup(pid):
    return read(f"/proc/{pid}/cgroup")


def tasks():
    """Processes in the control groups of tasks, or without these below slurmstepd: pid -> command line."""
    if has_cgroups():
        pids = [pid for pid, group in of_steps().items() if "/user/task_" in group]
    else:
        pids = [pid for pid in processes() if is_below_slurmstepd(pid)]
    return {pid: read(f"/proc/{pid}/cmdline").replace("\0", " ").strip() for pid in pids}


def is_below_slurmstepd(pid):
    for _ in range(16):
        fields = stat(f"/proc/{pid}/stat")
        if len(fields) < 2 or int(fields[1]) <= 1:
            return False
        pid = int(fields[1])
        if comm(pid) == "slurmstepd":
            return True
    return False


class Watch:
    """Looks, as long as a scenario runs, when there were tasks and when processes of ours in a step. To look takes
    the processor's time, which is then not idle() when all else waits."""

    INTERVAL = 0.5

    def __enter__(self):
        self.first = self.last = self.task = None
        self._present = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _look(self):
        while not self._end.wait(self.INTERVAL):
            if any(not command_of_ours(pid) for pid in tasks()):
                self.task = idle()
            if not in_steps():
                self._present = False
                continue
            self.last = idle()
            if not self._present:
                self._present, self.first = True, self.last

    def stayed(self):
        """Seconds of idle() that the last of ours were seen longer than the last task, or than their own first sight: a
        step's tasks may be too short to be seen."""
        return 0.0 if self.last is None else max(0.0, self.last - max(self.task or 0.0, self.first))


# srun of 26.05 destroys a lock when it ends, before plugins hear of it, and aborts if another thread of its own
# has the lock at that moment.
ABORTED = "step_launch_state_destroy: pthread_mutex_destroy()"
# Of a step whose daemon was killed at its end: it has 2 s of the clock, which on a busy machine may be too little.
KILLED = "its record stops before its end"


def see(cluster, run, more=MORE, but=()):
    """What a scenario shows, without telemetry and with it. Its commands may wait `more` s longer with it. A run whose
    output has words of `but` shows nothing: then there are two more at most."""

    def look(level):
        with Watch() as watch:
            (code, output), waited = timed(run, level)
            done = idle()
            left = none_left(left_in_steps)
        nodes = cluster.settle()
        seen = {
            "code": code, "output": output, "waited": waited, "settled": idle() - done, "left": left,
            "stayed": watch.stayed(), "nodes": nodes, "left_at_all": none_left(ours),
        }  # fmt: skip
        cluster.restore(nodes)
        return seen

    def look_again(level):
        for _ in range(3):
            seen = look(level)
            said = " ".join(str(seen["output"]).split())
            if not any(words in said for words in (ABORTED, *but)):
                break
        return seen

    return compare(look_again, more)


def compare(look, more):
    """What look() shows, without telemetry and with it. If it waits too long with it, look again: other work
    of the machine may hold up one run, and for what telemetry waits, it waits each time."""
    seen = {how: look(level) for how, level in LEVELS.items()}
    looks = 1
    while looks < 3 and is_late(seen, more):
        for how, level in LEVELS.items():
            again = look(level)
            for time_of in ("waited", "settled"):
                seen[how][time_of] = min(seen[how][time_of], again[time_of])
        looks += 1
    return {**seen, "more": more, "looks": looks}


def is_late(seen, more):
    """And not because a node was drained, which is a finding already."""
    without, watched = seen["without"], seen["with"]
    late = watched["waited"] > without["waited"] + more or watched["settled"] > without["settled"] + MORE
    return late and watched["nodes"] == without["nodes"]


def see_all(cluster, scenarios, names):
    """Scenario -> what it shows, or why it shows nothing, which is no matter of the next one's."""
    seen = {}
    for name in names:
        begin = time.monotonic()
        try:
            seen[name] = scenarios[name](cluster)
        except (NothingToSee, subprocess.TimeoutExpired) as failure:
            seen[name] = {"failed": str(failure)}
            cluster.restore()
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return seen


UNTIL_GO = f"until [ -e {GO} ]; do sleep 0.1; done"


def finish(job):
    """Lets a step or script of UNTIL_GO end; its code and output."""
    GO.touch()
    output = job.communicate(timeout=60)[0]
    GO.unlink()
    conf("")
    return job.returncode, output
