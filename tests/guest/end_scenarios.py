"""Steps that end in unusual ways."""

import contextlib
import glob
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request

from batch_job import BatchJob
from guest_cluster import (
    ALL, FAIL, GO, KILLED, NODES, UNTIL_GO, USER, cgroup, conf, finish, in_steps, lives, ours, read, require, see, tasks,
    until_started, wait_for,
)  # fmt: skip
from hung_mount import hung_mount


def plain(cluster):
    return see(cluster, lambda level: cluster.run(["srun", *level, "-N2", "sleep", "1"]))


def unwritable_output(cluster):
    words = ["-N2", "-o", "/nonexistent/%t.out", "sleep", "1"]
    return see(cluster, lambda level: cluster.run(["srun", *level, *words]))


def missing_program(cluster):
    return see(cluster, lambda level: cluster.run(["srun", *level, "-N2", "/nonexistent/app"]))


def missing_mpi(cluster):
    return see(cluster, lambda level: cluster.run(["srun", *level, "--mpi=nonsense", "-N2", "true"]))


def failing_prolog(cluster):
    words = ["-N2", "--task-prolog=/bin/false", "sleep", "1"]
    return see(cluster, lambda level: cluster.run(["srun", *level, *words]))


def unwritable_batch_output(cluster):
    def run(level):
        job = BatchJob(cluster, [*level, "-N2", "-o", "/nonexistent/%j.out"], "srun sleep 1")
        output = job.communicate(timeout=100)[0]
        return job.returncode, output

    return see(cluster, run)


def missing_container(cluster):
    """An OCI bundle that is not there: Slurm's own container support."""
    words = ["-N2", "--container=/nonexistent/bundle", "sleep", "1"]
    return see(cluster, lambda level: cluster.run(["srun", *level, *words]))


def epilog(seconds):
    """Slurm runs it when it has waited for the task, looks once a second whether it has ended, and tells plugins
    of the task's end only then."""

    def scenario(cluster):
        script = pathlib.Path("/tmp/task-epilog")
        script.write_text(f"#!/bin/sh\nexec sleep {seconds}\n")
        script.chmod(0o755)
        words = ["-N2", f"--task-epilog={script}", "sleep", "1"]
        return see(cluster, lambda level: cluster.run(["srun", *level, *words]), but=(KILLED,))

    return scenario


def all_metrics(cluster):
    return see(cluster, lambda level: cluster.run(["srun", *(level and ALL), "-N2", "sleep", "1"]), but=(KILLED,))


def killed_daemon(cluster):
    """Of one node, in the middle of the step."""

    def run(level):
        step = cluster.popen(["srun", *level, "-N2", "bash", "-c", UNTIL_GO])
        if level:
            nodes = lambda: [pid for pid, words in ours().items() if "--node" in words]
            require(lambda: len(nodes()) == 2, "the nodes' daemons")
            victim = nodes()[0]
            os.kill(victim, signal.SIGKILL)
            # One that is dying when its tasks end has died with them.
            require(lambda: not lives(victim), "the daemon's end")
        return finish(step)

    return see(cluster, run)


def stopped_daemon(cluster):
    """One that hangs when the tasks end."""

    def run(level):
        step = cluster.popen(["srun", *level, "-N2", "bash", "-c", UNTIL_GO])
        if level:
            nodes = lambda: [pid for pid, words in ours().items() if "--node" in words]
            require(lambda: len(nodes()) == 2, "the nodes' daemons")
            os.kill(nodes()[0], signal.SIGSTOP)
        return finish(step)

    return see(cluster, run)


STOPPER = """
import os, signal
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except OSError:
        pass
"""


def stopped_start(cluster):
    """A process of the user's, outside of the job, stops all of the user's processes while the job starts and
    until it has been cancelled."""

    def run(level):
        job = cluster.run(["sbatch", *level, "-N1", "--hold", "-o", "/dev/null", "--parsable", "--wrap", "sleep 1"])
        job = job[1].strip()
        stopper = subprocess.Popen(["/usr/bin/python3", "-c", STOPPER], user=USER, group=USER, extra_groups=[])
        try:
            cluster.run(["scontrol", "release", job], user=None)
            # slurmstepd waits for a daemon that is stopped before it runs, and goes on.
            begun = wait_for(tasks, 20)
            cluster.run(["scancel", job], user=None)
            states = cluster.settle()
        finally:
            stopper.kill()
            stopper.wait()
        return [bool(begun), states], stepds()

    return see(cluster, run)


def stepds():
    """Slurm's processes for steps, with their states and where they wait in the kernel."""
    stats = [path.parent for path in pathlib.Path("/proc").glob("[0-9]*/stat") if "(slurmstepd" in read(path)]
    return "\n".join(f"{read(at / 'stat')} {read(at / 'wchan')}" for at in stats)


def killed_slurmstepd(cluster):
    """Slurm ends the step; its tasks are killed by the test, for Slurm leaves them."""

    def run(level):
        step = cluster.popen(["srun", "-v", *level, "-N2", "--job-name=killed", "sleep", "100"])
        begun = until_started(step, 2)
        if level:
            require(lambda: len([pid for pid, words in ours().items() if "--node" in words]) == 2, "daemons")
        victims = [int(read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1]) for pid in tasks()]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        for pid in tasks():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # srun would not notice for minutes.
        cluster.run(["scancel", "--name=killed"], user=None)
        output = begun + step.communicate(timeout=100)[0]
        return step.returncode, output

    return see(cluster, run)


def key(cluster):
    """What a step's tasks, its batch script and the job's record show."""

    def run(level):
        script = "env; srun env; scontrol show job $SLURM_JOB_ID"
        job = BatchJob(cluster, [*level, "-N2", "-o", "/tmp/key.out"], script)
        job.communicate(timeout=100)
        return job.returncode, read("/tmp/key.out") + cluster.run(["srun", *level, "-N2", "env"])[1]

    return see(cluster, run)


def failing_plugin(callback, first=False):
    """Behind ours in Slurm's list of plugins, or before it: then ours is not called any more."""

    def scenario(cluster):
        plugstack = pathlib.Path(cluster.dir) / "etc" / "plugstack.conf"
        order = plugstack.read_text()

        def run(level):
            FAIL.write_text(callback)
            if first:
                plugstack.write_text("\n".join(reversed(order.splitlines())) + "\n")
            try:
                return cluster.run(["srun", *level, "-N2", "sleep", "1"])
            finally:
                FAIL.write_text("")
                plugstack.write_text(order)

        return see(cluster, run)

    return scenario


def cancelled(cluster):
    def run(level):
        step = cluster.popen(["srun", "-v", *level, "-N2", "--job-name=cancelled", "sleep", "100"])
        begun = until_started(step, 2)
        cluster.run(["scancel", "--name=cancelled"], user=None)
        output = begun + step.communicate(timeout=60)[0]
        return step.returncode, output

    return see(cluster, run)


def acting_head(cluster):
    """The head dies; the first node goes on in its place, its task ends, the second node's goes on."""

    def run(level):
        # What is waited for in the logs shall not be that of an earlier run.
        shutil.rmtree("/tmp/log", ignore_errors=True)
        os.makedirs("/tmp/log")
        os.chmod("/tmp/log", 0o1777)
        conf("log_dir = /tmp/log\nlog_level = debug\n")
        script = "if [ $SLURM_PROCID = 0 ]; then while [ ! -e /tmp/go ]; do sleep 0.1; done; else sleep 300; fi"
        step = cluster.popen(["srun", *level, "-N2", "--job-name=acting", "bash", "-c", script])
        require(lambda: any("sleep 300" in words for words in tasks().values()), "the second node's task")
        if level:
            logs = lambda: [read(log) for log in glob.glob("/tmp/log/*")]
            require(lambda: sum("2 nodes stand by" in log for log in logs()) == 2, "two that stand by")
            head = acting()
            for pid in head:
                os.kill(pid, signal.SIGKILL)
            require(lambda: set(acting()) - set(head), "an acting head")
        pathlib.Path("/tmp/go").touch()
        require(lambda: not any("/n1" in cgroup(pid) or "_n1" in cgroup(pid) for pid in tasks()),
                "the end of the first node's task")
        wait_for(lambda: not on_node(cluster, "n1"), 3.0)
        left = on_node(cluster, "n1")
        # Time for slurmstepd to find them.
        wait_for(lambda: "DRAIN" in cluster.node_states()["n1"], 25.0 if level else 0.0, 0.5)
        after = cluster.node_states()
        cluster.run(["scancel", "--name=acting"], user=None)
        output = step.communicate(timeout=60)[0]
        os.unlink("/tmp/go")
        conf("")
        return [left, {node: "DRAIN" in state for node, state in after.items()}], output

    return see(cluster, run)


def acting():
    return [pid for pid, words in ours().items() if "--head" in words]


def on_node(cluster, node):
    """Those of a node's step: under one kernel the daemons of all nodes are here."""
    return {
        pid: words for pid, words in in_steps().items() if f"/{node}" in cgroup(pid) or
        f"_{node}" in cgroup(pid)
    }  # fmt: skip


def followers(cluster):
    """What sends a batch script's series on has more to send when the script ends, and must not stay."""

    def run(level):
        conf("forward.nowhere = http://127.0.0.1:9/api/v1/write\n")
        job = BatchJob(cluster, [*level, "-N1", "-o", "/dev/null"], UNTIL_GO)
        if level:
            require(lambda: any("--forward" in words for words in ours().values()), "a sender")
        return finish(job)

    return see(cluster, run)


def failing_mpi_prefork(cluster):
    """What slurmstepd sets up for MPI fails after plugins were called and before there are tasks."""

    def run(level):
        config = cluster.run(["scontrol", "show", "config"], user=None)[1]
        job = re.search(r"^NEXT_JOB_ID\s*=\s*(\d+)", config, re.MULTILINE)[1]
        # Where pmi2 wants to bind its socket there is a directory already.
        for node in NODES:
            os.mkdir(f"{cluster.dir}/spool/{node}/sock.pmi2.{job}.0")
        return cluster.run(["srun", *level, "--mpi=pmi2", "-N2", "sleep", "1"])

    return see(cluster, run)


@contextlib.contextmanager
def silent_exporter():
    """Answers until it has been joined, and then no more: gives its port, and an event that is set once
    somebody waits for an answer."""
    waits, over = threading.Event(), threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        answered = 0

        def do_GET(self):
            if self.path != "/metrics":
                return self.send_error(404)
            # One to try it, and the first for the record.
            if Handler.answered == 2:
                waits.set()
                return over.wait(300)
            Handler.answered += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"queue 1\n")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], waits
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def exporters_readers(cluster):
    """A process that reads an exporter for the step, on the node, and waits for its answer."""

    def run(level):
        with silent_exporter() as (port, waits):
            step = cluster.popen(["srun", *level, "-N2", "bash", "-c", UNTIL_GO])
            if level:
                join(cluster, port)
                assert waits.wait(60), "nobody reads the exporter"
            return finish(step)

    return see(cluster, run)


def join(cluster, port):
    """Has the running step read an exporter."""
    live = f"{cluster.dir}/home/{USER}/.local/share/sonde/live/*/endpoint.json"

    def joined():
        # A head that was killed has left its own; the server comes before the nodes.
        for file in glob.glob(live):
            endpoint = json.loads(read(file))
            url = f"http://127.0.0.1:{endpoint['port']}/join?to=127.0.0.1:{port}&node=n1"
            request = urllib.request.Request(url, headers={"Authorization": f"Bearer {endpoint['token']}"})
            with contextlib.suppress(urllib.error.URLError):
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status == 200
        return False

    require(joined, "a node that reads the exporter")


def alarm_command(cluster, killed=False):
    """A command for alarms that is still running when the batch script ends, and what it left behind;
    of a daemon that goes on or that was killed before."""

    def run(level):
        script = pathlib.Path("/tmp/alarm-command")
        script.write_text("#!/bin/sh\nsetsid sh -c 'sleep 200' marked-by-the-test &\n"
                          "exec sh -c 'sleep 200; true' marked-by-the-test\n")
        script.chmod(0o755)
        conf(f"alarm_command = {script}\nalarm.always = node_memory_MemTotal_bytes > 0\n")
        job = BatchJob(cluster, [*level, "-N1", "-o", "/dev/null"], UNTIL_GO)
        if level:
            marked = lambda: [pid for pid, words in ours().items() if "marked-by-the-test" in words]
            require(lambda: len(marked()) >= 2, "the command for alarms")
        if level and killed:
            for pid in [pid for pid, words in ours().items() if "sonded" in words.split()[0]]:
                os.kill(pid, signal.SIGKILL)
        return finish(job)

    return see(cluster, run)


def hung_filesystem(cluster):
    """Mounted on the nodes; the tasks do not use it. Its user would have the daemons ask it."""
    words = ["-N2", "--export=ALL,SONDE_ASK_FILESYSTEMS=fuse.*", "sleep", "3"]
    with hung_mount("/tmp/hung", "fuse.sshfs"):
        return see(cluster, lambda level: cluster.run(["srun", *level, *words]))


# Left behind by a command for alarms: says that it waits, kills its daemon when that stores the profile, says
# whether the script had ended by then, and stays.
ARCHIVE = "/tmp/killed-at-end"
SAYS = pathlib.Path("/tmp/killer-says")
KILLER_TRIES = 4
KILLER = f"""
import os, signal, time
if os.fork():
    os._exit(0)
os.setsid()
daemon = int(os.environ["SONDE_CHILD_OF"].split(".")[0])
says = open("{SAYS}", "w", buffering=1)
print("waits", os.getpid(), file=says)
while not os.path.exists("{ARCHIVE}/db"):
    time.sleep(0.0005)
os.kill(daemon, signal.SIGKILL)
print("killed", "at its end" if os.path.exists("{GO}") else "too early", file=says)
time.sleep(300)
"""


def killed_at_end(cluster):
    """The daemon of a batch script dies while it finishes, as when memory is short."""

    def run(level):
        for _ in range(KILLER_TRIES):
            code, output = try_to_kill(level)
            if not level or "killed" in output:
                break
        return code, output

    def try_to_kill(level):
        script = pathlib.Path("/tmp/alarm-command")
        shutil.rmtree(ARCHIVE, ignore_errors=True)
        SAYS.unlink(missing_ok=True)
        script.write_text(f"#!/usr/bin/python3\nimport os\n"
                          f"os.execv('/usr/bin/python3', ['python3', '-c', {KILLER!r}, 'marked-by-the-test'])\n")
        script.chmod(0o755)
        conf(f"alarm_command = {script}\nalarm.always = node_memory_MemTotal_bytes > 0\n")
        words = ["-N1", "-o", "/dev/null", f"--export=ALL,SONDE_ARCHIVE={ARCHIVE}"]
        job = BatchJob(cluster, [*level, *words], UNTIL_GO)
        if level:
            require(lambda: read(SAYS).endswith("\n"), "the command")
            # The daemon ends it when the profile is stored.
            os.setpriority(os.PRIO_PROCESS, int(read(SAYS).split()[1]), -20)
        code, output = finish(job)
        return code, output + read(SAYS)

    return see(cluster, run)


SCENARIOS = {
    "plain": plain,
    "unwritable_output": unwritable_output,
    "unwritable_batch_output": unwritable_batch_output,
    "missing_program": missing_program,
    "missing_mpi": missing_mpi,
    "missing_container": missing_container,
    "short_epilog": epilog(0.3),
    "slow_epilog": epilog(2),
    "all_metrics": all_metrics,
    "killed_daemon": killed_daemon,
    "stopped_daemon": stopped_daemon,
    "stopped_start": stopped_start,
    "killed_slurmstepd": killed_slurmstepd,
    "key": key,
    "failing_prolog": failing_prolog,
    "cancelled": cancelled,
    "acting_head": acting_head,
    "hung_filesystem": hung_filesystem,
    "failing_mpi_prefork": failing_mpi_prefork,
    "exporters_readers": exporters_readers,
    "followers": followers,
    "alarm_command": alarm_command,
    "killed_at_end": killed_at_end,
    "alarm_command_of_killed": lambda cluster: alarm_command(cluster, killed=True),
    **{f"failing_{name}": failing_plugin(name) for name in (
        "init_post_opt", "user_init", "task_init_privileged", "task_init", "task_post_fork", "task_exit")},
    "failing_task_exit_first": failing_plugin("task_exit", first=True),
}  # fmt: skip
