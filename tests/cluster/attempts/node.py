"""Attempts on the nodes of a step."""

import json
import os
import pathlib
import pwd
import re
import signal
import subprocess

import pytest
from attempts.making import KILL, READ, Refused, TRACE, as_user, attempt, command, connected
from conftest import OTHER_USER, USER, wait_for
from telemetry import LEVEL, sockets_of
from test_site import PYTHON


@attempt("node", "traces the step's daemon ({})", control="root", each=("head", "node"))
def trace(world, user, one):
    return as_user(world, user, TRACE, world.daemons[one])


@attempt("node", "reads /proc/PID/{} of a node's daemon", control="root",
         each=("mem", "environ", "maps", "fd", "exe", "cwd", "auxv", "syscall"))  # fmt: skip
def read_process(world, user, one):
    # Of the memory, what the daemon's first mapping holds.
    mapped = pathlib.Path(f"/proc/{world.node}/maps").read_text().partition("-")[0]
    return as_user(world, user, READ, f"/proc/{world.node}/{one}", int(mapped, 16) if one == "mem" else 0)


@attempt("node", "copies memory of the head by process_vm_readv", control="root")
def copy_memory(world, user):
    maps = pathlib.Path(f"/proc/{world.head}/maps").read_text().splitlines()
    start = next(int(line.partition("-")[0], 16) for line in maps if " rw-p " in line)
    return as_user(world, user, """
        def tries(pid, start):
            class Piece(ctypes.Structure):
                _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
            libc, buffer = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(16)
            to, of, one = Piece(ctypes.addressof(buffer), 16), Piece(start, 16), ctypes.c_ulong(1)
            size = libc.process_vm_readv(pid, ctypes.byref(to), one, ctypes.byref(of), one, ctypes.c_ulong(0))
            if size < 0:
                raise OSError(ctypes.get_errno(), "process_vm_readv")
            return f"{size} bytes"
        """, world.head, start)  # fmt: skip


DESCRIPTORS = {"a socket": r"socket:", "a perf event": r"anon_inode:\[perf_event\]", "its log": r".*\.log$"}


@attempt("node", "takes a descriptor of a node's daemon (pidfd_getfd): {}", control="root", each=DESCRIPTORS)
def take_descriptor(world, user, one):
    links = {int(fd.name): os.readlink(fd) for fd in pathlib.Path(f"/proc/{world.node}/fd").iterdir()}
    fd = next((fd for fd, link in links.items() if re.match(DESCRIPTORS[one], link)), None)
    if fd is None and "perf" in one:
        pytest.skip("no perf events here")
    return as_user(world, user, """
        def tries(pid, fd):
            libc = ctypes.CDLL(None, use_errno=True)
            taken = libc.syscall(438, os.pidfd_open(pid), fd, 0)  # the number of every architecture
            if taken < 0:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
            return f"descriptor {taken}"
        """, world.node, fd)  # fmt: skip


SIGNALS = ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGABRT")


@attempt("node", "ends or stops a daemon by {}", control=USER,
         each=[f"{number}-{role}" for number in SIGNALS for role in ("head", "node")])  # fmt: skip
def kill(world, user, one):
    number, role = one.split("-")
    return as_user(world, user, KILL, world.daemons[role], getattr(signal, number) if user == OTHER_USER else 0)


SLOW_DOWN = {
    "priority": "os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))",
    "processors": "os.sched_setaffinity(pid, os.sched_getaffinity(pid))",
    "limits": "resource.prlimit(pid, resource.RLIMIT_NOFILE, resource.prlimit(pid, resource.RLIMIT_NOFILE))",
}


@attempt("node", "slows a node's daemon down: its {}", control=USER, each=SLOW_DOWN)
def slow_down(world, user, one):
    return as_user(world, user, f"""
        def tries(pid):
            {SLOW_DOWN[one]}
            return "set"
        """, world.node)  # fmt: skip


@attempt("node", "has the kernel kill a node's daemon first (oom_score_adj)", control="root")
def first_to_be_killed(world, user):
    return as_user(world, user, """
        def tries(path, value):
            with open(path, "r+" if value is None else "w") as file:
                file.write(value or file.read())
            return "written"
        """, f"/proc/{world.node}/oom_score_adj", "1000" if user == OTHER_USER else None)  # fmt: skip


@attempt("node", "counts what a task of the step does (perf_event_open)", control="root")
def count_events(world, user):
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the call is known for x86_64 only")
    done = as_user(world, user, """
        def tries(pid):
            libc = ctypes.CDLL(None, use_errno=True)
            # A software event, the task's clock, in user mode.
            attributes = (ctypes.c_char * 128)(*(1).to_bytes(4, "little"), *(128).to_bytes(4, "little"), 1)
            attributes[40] = 1 << 5
            fd = libc.syscall(298, attributes, pid, -1, -1, 0)
            if fd < 0:
                raise OSError(ctypes.get_errno(), "perf_event_open")
            return f"descriptor {fd}"
        """, world.application)  # fmt: skip
    if user == "root" and isinstance(done, Refused):
        pytest.skip(f"root has no perf events here: {done}")
    return done


@attempt("node", "tells the daemon a metric over the application's socket", control=USER)
def tell(world, user):
    def told():
        return json.loads(world.live.get("/api/suggest?type=metrics&q=told&max=1000"))

    name = world.unused("told")
    done = world.own(user, "tell", name)
    if user == USER:
        wait_for(lambda: name in told(), f"{name}: {done.stdout}")
    else:
        # Whatever the other one told came before this.
        last = world.unused("told")
        world.own(USER, "tell", last)
        wait_for(lambda: last in told(), last)
    if name in told():
        return name
    logs = "".join(path.read_text() for path in world.log_dir.glob(f"sonded.{world.step.id}.*"))
    return Refused(re.search(r"belongs to user \d+, the step to user \d+", logs)[0])


@attempt("node", "asks the daemon for the step's metrics over the questions' socket", control=USER)
def ask(world, user):
    done = world.own(user, "ask")
    return done.stdout.strip() or Refused(done.stderr)


@attempt("node", "listens where an application looks for its daemon", control=USER)
def be_the_daemon(world, user):
    name = f"sonde/{world.unused('nowhere')}.{os.getpid()}"
    listener = world.cluster.popen([PYTHON, "-c", """
import socket, sys
end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
end.bind("\\0" + sys.argv[1])
end.listen()
end.settimeout(20)
print("listening", flush=True)
one, _ = end.accept()
heard, descriptors, _, _ = socket.recv_fds(one, 4096, 4)
print(len(heard), len(descriptors), flush=True)
""", name], user=user)  # fmt: skip
    try:
        assert listener.stdout.readline() == "listening\n", listener.stderr.read()
        given = [f"{key}={value}" for key, value in {**world.variables, "SONDE_SOCKET": name}.items()]
        done = world.cluster.run(["env", *given, world.program, "tell", "nothing"], user=USER)
        heard, descriptors = listener.stdout.readline().split()
        return f"{heard} bytes, {descriptors} descriptor" if heard != "0" else Refused(done.stdout.strip())
    finally:
        listener.kill()
        listener.wait()


@attempt("node", "opens the memory in which the application keeps its metrics", control=USER)
def read_metrics(world, user):
    fds = pathlib.Path(f"/proc/{world.application}/fd")
    memory = next(fd for fd in fds.iterdir() if os.readlink(fd).startswith("/memfd:sonde"))
    return as_user(world, user, READ, str(memory))


@attempt("node", "reads the environment of a task, which names the daemon's sockets", control=USER)
def read_environment(world, user):
    return as_user(world, user, READ, f"/proc/{world.application}/environ")


def proxy_socket(world):
    return next(name for name in sockets_of(world.node).split() if name.endswith(".proxy"))


@attempt("node", "connects to the socket for programs of metric-proxy", control=USER)
def connect_proxy(world, user):
    return as_user(world, user, connected("""
        def tries(path):
            connect(path, socket.SOCK_STREAM)
            return "connected"
        """), proxy_socket(world))  # fmt: skip


@attempt("node", "puts something else in place of that socket")
def replace_proxy(world, user):
    assert os.path.exists(proxy_socket(world))
    return as_user(world, user, """
        def tries(path):
            os.unlink(path)
            return "removed"
        """, proxy_socket(world))  # fmt: skip


@attempt("node", "reads a daemon's log", control=USER)
def read_log(world, user):
    log = next(world.log_dir.glob(f"sonded.{world.step.id}.n*"))
    return as_user(world, user, READ, str(log))


@attempt("node", "writes where the plugin keeps the node's counters", control="root")
def write_counters(world, user):
    return as_user(world, user, """
        def tries(path):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            os.unlink(path)
            return "made"
        """, str(world.cluster.dir / "counters" / "other.prom"))  # fmt: skip


@attempt("node", "reads in the node's counters, which are for all, whose step ran")
def read_counters(world, user):
    (counters,) = {str(path) for path in (world.cluster.dir / "counters").glob("n1.prom")}
    text = as_user(world, user, READ, counters)
    assert "sonde" in text
    told = [name for name in (USER, str(world.step.job), world.program.name, str(world.archive)) if name in text]
    return f"{told}" if told else Refused("numbers without names")


PRELOADED = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
  FILE* file = fopen(getenv("LOADED_INTO"), "a");
  if (file == NULL) return;
  fprintf(file, "%d %d\\n", (int)getuid(), (int)geteuid());
  fclose(file);
}
"""


@attempt("node", "gives an own step LD_PRELOAD and USER's SONDE_* variables")
def preload(world, user):
    library, loaded = world.directory / "preloaded.so", world.cluster.home(user) / "loaded"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=PRELOADED, text=True, check=True)
    given = {**world.variables, "LD_PRELOAD": library, "LOADED_INTO": loaded}
    words = ["env", *(f"{name}={value}" for name, value in given.items()), "srun", "-N1", *LEVEL, "true"]
    done = world.cluster.run(words, user=user)
    assert done.returncode == 0, done.stderr
    users = set(loaded.read_text().split())
    own = str(pwd.getpwnam(user).pw_uid)
    assert own in users, "it was loaded at all"
    return f"loaded into processes of {users - {own}}" if users - {own} else Refused("own processes only")


@attempt("node", "starts a step in the job, with telemetry", control=USER)
def join_job(world, user):
    words = ["srun", f"--jobid={world.step.job}", "--overlap", "-N1", "-n1", *LEVEL, "id", "-un"]
    return command(world, user, words)
