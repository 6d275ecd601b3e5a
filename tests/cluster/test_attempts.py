"""What others get of a user's running step, archive and servers: nothing.

OTHER_USER, with processes on the same hosts, tries in six places what USER or root may do: on the nodes, at the head,
at the archive, at the server of a site, at the end of a tunnel, and with what a host shares. A third one hears the
wire. Each attempt is a function that gives what it got as text, or Refused with the words in which it was refused.
Where it has a `control`, it is first made by the one who may, who must get something: so nobody is refused for want of
a path, a port or a process. The table of all attempts stands at the end; docs/security.md says what follows.
"""

import base64
import contextlib
import functools
import hashlib
import hmac
import itertools
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading

import belongings
import pytest
from conftest import BUILD, OTHER_USER, ROOT, SONDE, USER, wait_for
from telemetry import LEVEL, Live, Step, complete, job_of, notes_of, sockets_of, tasks_of
from test_site import BEHIND_A_PROXY, PYTHON, SECRET, SSHD, site, tunnel
from test_spank_key import KEY

sys.path.append(str(ROOT / "tests" / "net"))
import strangers  # noqa: E402  (of tests/net/, for which the path had to be set)

REMARK = "a remark that is for nobody else"
METRIC = "attempts_marker_total"

# The application, and what a stranger makes of it: who is asked for the effective user says what the stranger likes,
# so libsonde takes the daemon of another user for its own.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libclient/sonde_query.h"
uid_t geteuid(void) { return getenv("PRETENDS") ? (uid_t)atoi(getenv("PRETENDS")) : getuid(); }
static int work(const char* until) {
  sonde_add(sonde_counter("%(metric)s", "1", "Work done", 1, NULL, 0), 1);
  sonde_annotate("%(remark)s");
  while (access(until, F_OK) != 0) usleep(20000);
  return 0;
}
static int tell(const char* name) {
  sonde_add(sonde_counter(name, "1", "Told", 1, NULL, 0), 1);
  printf("%%s\\n", sonde_strerror(sonde_status()));
  return 0;
}
static int ask(void) {
  int code = SONDE_OK;
  sonde_list_t* list = NULL;
  sonde_query_t* query = sonde_query_open(5000, &code);
  if (query != NULL) code = sonde_query_list(query, NULL, 5000, &list);
  for (size_t i = 0; list != NULL && i < list->metric_count; ++i) printf("%%s ", list->metrics[i].name);
  if (list == NULL) fprintf(stderr, code == SONDE_LOST ? "SONDE_LOST" : "code %%d", code);
  return list == NULL;
}
int main(int argc, char** argv) {
  if (strcmp(argv[1], "work") == 0) return work(argv[2]);
  return strcmp(argv[1], "tell") == 0 ? tell(argv[2]) : ask();
}
""" % {"metric": METRIC, "remark": REMARK}


# --- Attempts


class Refused(str):
    """Nothing was got; how it was refused."""


ATTEMPTS = {}  # name -> (name, place, what is tried, by whom it must succeed, the function)
TABLE = {}  # name -> (place, what was tried, what came of it)


def attempt(place, what, *, control=None, each=(), finding=None):
    """Registers function(world, user) as an attempt; with `each`, one for each of these, function(world, user, one).
    `finding`: why it gets something as yet."""

    def register(function):
        for one in each or [None]:
            name = f"{place}-{function.__name__}" + (f"-{one}" if each else "")
            bound = functools.partial(function, one=one) if each else function
            assert name not in ATTEMPTS
            marks = [pytest.mark.xfail(strict=True, reason=finding)] if finding else []
            ATTEMPTS[name] = pytest.param(name, place, what.format(one), control, bound, id=name, marks=marks)
        return function

    return register


def as_user(world, user, code, *arguments):
    """Runs `tries(*arguments)` of that code as the user: what it returns, or the error as which it was refused."""
    program = f"""
import ctypes, errno, json, os, resource, signal, socket, stat, sys
{textwrap.dedent(code)}
try:
    print(json.dumps([str(tries(*json.load(sys.stdin))), ""]))
except OSError as error:
    print(json.dumps(["", errno.errorcode.get(error.errno, type(error).__name__)]))
"""
    # Arguments may be secrets, which nobody is to find in a command line.
    done = world.cluster.run([PYTHON, "-c", program], user=user, input=json.dumps(arguments))
    assert done.returncode == 0, done.stderr
    got, refused = json.loads(done.stdout)
    assert bool(got) != bool(refused), "either something or a refusal"
    return got or Refused(refused)


def command(world, user, words):
    """A command as the user: what it prints, or the reason at the end of its complaint."""
    done = world.cluster.run(words, user=user)
    if done.returncode == 0 and done.stdout.strip():
        return done.stdout
    complaint = done.stderr.strip().splitlines()
    assert complaint, f"{words}: neither an answer nor a reason"
    return Refused(complaint[-1].rpartition(": ")[2])


HTTP = """
def tries(where, requests):
    answers = []
    for one in requests:
        if isinstance(where, str):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(20)
            connection.connect(where)
        else:
            connection = socket.create_connection(where, 20)
        answer = b""
        for words in one:
            connection.sendall(words.encode("latin-1"))
            while piece := connection.recv(65536):
                answer += piece
                if words is not one[-1] and b"\\r\\n\\r\\n" in answer:
                    break
        connection.close()
        answers.append(answer.decode("latin-1"))
    return json.dumps(answers)
"""


def request(target, method="GET", body="", keep=False, **fields):
    fields = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in fields.items()}}
    if body:
        fields.setdefault("Content-Type", "application/json")
    if body or method == "POST":
        fields["Content-Length"] = len(body)
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, f"Connection: {'keep-alive' if keep else 'close'}", "", body])


def answers(world, user, where, *requests):
    """(status, all of the answer) of each request, or list of requests on one connection; of these the last one's."""
    asked = [one if isinstance(one, list) else [one] for one in requests]
    said = as_user(world, user, HTTP, where, asked)
    assert not isinstance(said, Refused), f"no connection: {said}"
    found = []
    for text in json.loads(said):
        statuses = re.findall(r"^HTTP/1\.1 (\d+)", text, re.MULTILINE)
        assert statuses, f"no answer of HTTP: {text!r}"
        found.append((int(statuses[-1]), text))
    return found


def asked(world, user, where, *requests):
    """What of the requests was answered, else with which statuses they were refused."""
    found = answers(world, user, where, *requests)
    for status, text in found:
        if status < 400:
            return f"{status} {text.rpartition(chr(10))[2][:80] or text[:80]}"
    return Refused("HTTP " + ", ".join(map(str, sorted({status for status, _ in found}))))


# --- The world


class Tap:
    """What TCP carries over the loopback until stop(): as much as MOST bytes."""

    MOST = 256 << 20
    IPV4 = 0x0800  # each packet once: as it comes in
    SO_RCVBUFFORCE = 33  # of asm-generic/socket.h, which the module socket does not have

    def __init__(self):
        self._packets, self._size, self._over = [], 0, threading.Event()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(self.IPV4))
        self._socket.setsockopt(socket.SOL_SOCKET, self.SO_RCVBUFFORCE, 64 << 20)
        self._socket.bind(("lo", self.IPV4))
        self._socket.settimeout(0.1)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self):
        with contextlib.suppress(BlockingIOError):  # all is read that had come before stop()
            while self._size < self.MOST:
                if self._over.is_set():
                    self._socket.settimeout(0)
                with contextlib.suppress(TimeoutError):
                    self._packets.append(self._socket.recv(1 << 17))
                    self._size += len(self._packets[-1])

    def end(self):
        self._over.set()
        self._thread.join()

    def stop(self):
        """Gives the streams, each with the ports of its ends."""
        self.end()
        self._socket.close()
        pieces = {}
        for packet in self._packets:
            if packet[9] == socket.IPPROTO_TCP:
                tcp = packet[(packet[0] & 15) * 4 :]
                source, to, number = struct.unpack_from("!HHI", tcp)
                pieces.setdefault((source, to), {})[number] = tcp[(tcp[12] >> 4) * 4 :]
        return {ends: b"".join(data for _, data in sorted(found.items())) for ends, found in pieces.items()}


class World:
    """A step of USER's that runs, one that has ended, and USER's servers; what a stranger may know of them, and what
    only root can."""

    def __init__(self, cluster, directory, stack):
        self.cluster, self.directory, self.stack = cluster, directory, stack
        self.archive, self.log_dir = cluster.archive(), cluster.dir / "tmp" / USER
        cluster.conf(f"log_dir = {self.log_dir}\nlog_level = debug\n")
        self.numbers = itertools.count()
        self.program = self._build()
        self._finish_one()
        tap = Tap()
        stack.callback(tap.end)
        self._start(stack)
        self.serve = self._serve(stack)
        self._watch()
        self.wire = tap.stop()
        self.site = stack.enter_context(site(cluster, BEHIND_A_PROXY))
        self.tokens = {user: self.site.token(user) for user in (USER, OTHER_USER)}

    def _build(self):
        (self.directory / "program.c").write_text(PROGRAM)
        program = self.directory / "program"
        flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", f"-Wl,-rpath,{BUILD / 'libclient'}"]
        subprocess.run(["cc", "-o", program, self.directory / "program.c", *flags, "-lsonde"], check=True)
        return program

    def _finish_one(self):
        step = Step(self.cluster, ["srun", "-N1", *LEVEL, "sleep", "0.3"])
        assert step.wait()[0] == 0, step.stderr
        self.finished = step.id
        # As homes are on many clusters: what protects is the modes that Sonde gives.
        home = self.cluster.home()
        for directory in (home, home / ".local", home / ".local" / "share", self.log_dir):
            directory.chmod(0o755)

    def _start(self, stack):
        self.until = self.directory / "until"
        stack.callback(self.until.touch)
        options = ["-N2", "--telemetry-level=3", LEVEL[1]]
        self.step = Step(self.cluster, ["srun", *options, self.program, "work", self.until])

        def both_and_the_remark():
            shown = self.step.profile()
            remarks = shown and [remark["text"] for remark in shown["profile"].get("moments", {}).get("remarks", [])]
            return shown and REMARK in remarks and len(job_of(shown)["nodes"]) == 2

        # By a command, for the token of this step must not be on the wire.
        wait_for(both_and_the_remark, "two nodes and the remark")
        self.notes = notes_of(self.step.profile())
        self.live = self.step.live()
        self.http = ("127.0.0.1", self.live.port)
        by_role = {}
        for pid, line in self.cluster.daemons():
            if line.endswith(f" {self.step.id}"):
                by_role.setdefault(line.split()[1].removeprefix("--"), []).append(pid)
        (self.head,), (self.node, _) = by_role["head"], by_role["node"]
        self.daemons = {"head": self.head, "node": self.node}
        self.rendezvous = next(port for _, port in belongings.listening(self.head) if port != self.live.port)
        self.application, environ = next(iter(tasks_of(self.program)))
        # Of the task's node, whichever of the two it is.
        pairs = (entry.decode().partition("=") for entry in environ if entry.startswith(b"SONDE_"))
        self.variables = {name: value for name, _, value in pairs}

    def _serve(self, stack):
        out = self.directory / "serve.out"
        out.touch(0o600)
        with open(out, "w") as file:
            self.server = self.cluster.popen([SONDE, "serve", "--port", "0"], user=USER, stdout=file)
        stack.callback(lambda: (self.server.terminate(), self.server.wait(20)))
        address = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)")
        found = wait_for(lambda: address.search(out.read_text()), "the address of sonde serve", 20)
        return Live("127.0.0.1", int(found[1]), found[2])

    def _watch(self):
        """What the wire is to carry besides: questions of the server and of commands to the head."""
        assert REMARK in self.serve.get(f"/api/v1/profile?job={self.step.id}")
        for words in (["show", self.step.id], ["url", self.step.id], ["hints", self.step.id]):
            self.cluster.run([SONDE, *words], user=USER)

    @functools.cached_property
    def key(self):
        """The step's: of the credentials of munge on the wire root opens the one that holds it."""
        if not self.credentials:
            pytest.skip("Slurm does not authenticate by munge here")
        for credential in self.credentials:
            for key in KEY.findall(self.unmunge(credential, "root")):
                token = hmac.digest(bytes.fromhex(key), b"http token", "sha256").hex()
                if token.startswith(self.live.token):
                    return key
        return pytest.fail("root does not find the step's key on the wire")

    @functools.cached_property
    def credentials(self):
        """Of munge, in the messages that tell the nodes of a step with telemetry."""
        told = [data for data in self.wire.values() if b"telemetry-rendezvous" in data]
        return {one.decode() for data in told for one in re.findall(rb"MUNGE:[A-Za-z0-9+/=]+:", data)}

    def unmunge(self, credential, user):
        words = ["unmunge", f"--socket={self.cluster.dir}/run/munge.sock"]
        return self.cluster.run(words, user=user, input=credential, errors="replace").stdout

    @functools.cached_property
    def laptop(self):
        """The end of USER's tunnel to the site's server, to which everybody on the laptop may connect."""
        if SSHD is None:
            pytest.skip("needs sshd: scripts/deps")
        directory = self.directory / "tunnel"
        directory.mkdir()
        return self.stack.enter_context(tunnel(directory, USER, self.site.listen))

    def unused(self, name):
        return f"{name}_{next(self.numbers)}"

    def own(self, user, *words):
        """Runs the program as that user as if it were in USER's step, and that user's."""
        given = {**self.variables, "PRETENDS": pwd.getpwnam(USER).pw_uid}
        variables = [f"{name}={value}" for name, value in given.items()]
        return self.cluster.run(["env", *variables, self.program, *words], user=user)

    @contextlib.contextmanager
    def archive_is_open(self):
        """As if USER had let others into the directories, but not into the files."""
        directories = [path for path in (self.archive, *self.archive.rglob("*")) if path.is_dir()]
        modes = [path.stat().st_mode for path in directories]
        try:
            for path in directories:
                path.chmod(0o755)
            yield
        finally:
            for path, mode in zip(directories, modes, strict=True):
                if path.exists():
                    path.chmod(mode)

    def check_undisturbed(self):
        """After all of it the step is complete and knows of nothing."""
        running = {pid for pid, _ in self.cluster.daemons()}
        assert {self.head, self.node} <= running and self.server.poll() is None
        self.until.touch()
        code, _ = self.step.wait()
        assert code == 0, self.step.stderr
        shown = self.step.profile()
        assert job_of(shown)["state"] == "completed" and len(job_of(shown)["nodes"]) == 2
        assert complete(shown) and notes_of(shown) == self.notes
        self.cluster.wait_clean()


@pytest.fixture(scope="module")
def world(cluster):
    # Not below pytest's own directory, which each run of pytest closes to others when it starts.
    directory = cluster.dir / "attempts"
    directory.mkdir(mode=0o755)
    with contextlib.ExitStack() as stack:
        made = World(cluster, directory, stack)
        yield made
        made.check_undisturbed()


def connected(code):
    """The code with connect(name), to a Unix socket of that type and name; @ is for an abstract one."""
    return """
def connect(name, kind):
    end = socket.socket(socket.AF_UNIX, kind)
    end.settimeout(10)
    end.connect("\\0" + name[1:] if name[0] == "@" else name)
    return end
""" + textwrap.dedent(code)


# --- On a node

READ = """
def tries(path, start=0):
    if os.path.islink(path):
        return os.readlink(path)
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(1 << 16 if start == 0 else 64)
"""
TRACE = """
def tries(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, pid, 0, 0) != 0:  # PTRACE_SEIZE; the end of this process lets go
        raise OSError(ctypes.get_errno(), "ptrace")
    return "traced"
"""
# With 0 it does nothing but ask for the same right.
KILL = """
def tries(pid, number):
    os.kill(pid, number)
    return "sent"
"""


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


# --- At the head

KNOCKS = {
    "nonsense": random.Random(1).randbytes(4096),
    "a length beyond all bounds": b"\xff\xff\xff\xff\x01",
    "half a hello": strangers.hello()[:20],
    "a hello alone": strangers.hello(),
    "a hello and a guessed entry": strangers.hello() + strangers.entry_with_a_wrong_key(),
    "a public key with which everybody knows the secret": strangers.message(
        strangers.HELLO, bytes([strangers.VERSION]) + strangers.text(bytes(32))
    ) + strangers.entry_with_a_wrong_key(),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


def frames(data):
    """Whole messages of daemons, and what is left."""
    found = []
    while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack_from("<I", data)[0]) and size:
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found, data


def knock(world, user, data):
    """What the head answers at its rendezvous before it closes, but for the one offer that everybody gets: a public
    key, and the head's proof that it knows the step's."""
    said = as_user(world, user, """
        def tries(port, words):
            end = socket.create_connection(("127.0.0.1", port), 10)
            end.settimeout(20)
            end.sendall(bytes.fromhex(words))
            end.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while piece := end.recv(65536):
                    answer += piece
            except ConnectionResetError:
                pass
            return "heard " + answer.hex()
        """, world.rendezvous, data.hex())  # fmt: skip
    if isinstance(said, Refused):
        return said
    whole, rest = frames(bytes.fromhex(said.partition(" ")[2]))
    offers = [one for one in whole if one[0] == 2 and len(one) < 100]
    if rest or len(offers) > 1 or len(whole) > len(offers):
        return f"{len(whole)} messages, {len(rest)} more bytes"
    return Refused("closed" + (" after its offer" if offers else ""))


@attempt("head", "says {} at the rendezvous", each=KNOCKS)
def say(world, user, one):
    said = knock(world, user, KNOCKS[one])
    if one.startswith("a hello"):
        assert "offer" in said, f"it was no hello: {said}"
    return said


@attempt(
    "head", "has the profile say that a node's data is missing, by a hello of an earlier version",
    finding="the head believes in the version of a peer that has proved nothing, and notes it once for a step",
)  # fmt: skip
def leave_a_note(world, user):
    refused = knock(world, user, strangers.message(strangers.HELLO, bytes([1]) + strangers.text(os.urandom(32))))
    notes = [note for note in notes_of(world.step.profile()) if note not in world.notes]
    world.notes += notes
    return f"the note: {notes[0]}" if notes else refused


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def basic(token):
    return {"Authorization": "Basic " + base64.b64encode(f"user:{token}".encode()).decode()}


# What is sent without the token; T is the right one, in a place where it does not count, or a part of it.
CREDENTIALS = {
    "nothing": lambda t: {},
    "an empty token": lambda t: bearer(""),
    "a guessed token": lambda t: bearer("0" * len(t)),
    "all but the last digit": lambda t: bearer(t[:-1]),
    "the token and more": lambda t: bearer(t + "0"),
    "a guessed password": lambda t: basic("0" * len(t)),
    "no password": lambda t: basic(""),
    "the token as the user's name": lambda t: {"Authorization": "Basic " + base64.b64encode(f"{t}:".encode()).decode()},
    "the token in a cookie": lambda t: {
        "Cookie": f"sonde={t}; token={t}; sonde-{hashlib.sha256(t.encode()).hexdigest()[:8]}={t}"
    },
    "Sonde-By-Browser": lambda t: {"Sonde-By-Browser": "1"},
    "a proxy's headers": lambda t: {"X-Remote-User": USER, "X-Forwarded-User": USER, "Sonde-Proxy-Secret": SECRET},
    "an address of the host's own": lambda t: {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"},
}


def shows(world, user, credential):
    """What is sent by user: USER has the token."""
    return bearer(world.live.token) if user == USER else CREDENTIALS[credential](world.live.token)


@attempt("head", "asks HTTP for the profile with {}", control=USER, each=CREDENTIALS)
def ask_http(world, user, one):
    return asked(world, user, world.http, request(f"/api/v1/profile?job={world.step.id}", **shows(world, user, one)))


@attempt("head", "asks HTTP for every path that there is, without the token", control=USER)
def ask_every_path(world, user):
    described = json.loads(world.live.get("/api/openapi.json"))["paths"]
    public = re.compile(r"/$|.*\.(js|css|html)$|/vendor/|/job/?$")
    paths = [path for path in described if not public.match(path)]
    assert len(paths) > 60
    if user == USER:
        return asked(world, user, world.http, request("/job/list", **bearer(world.live.token)))
    found = answers(world, user, world.http, *(request(path) for path in [*paths, "/no/such/path"]))
    open_ones = [path for path, (status, _) in zip(paths, found, strict=False) if status != 401]
    assert len({text.rpartition("\n")[2] for _, text in found}) == 1, "they do not tell what exists"
    return f"other answers from {open_ones}" if open_ones else Refused(f"HTTP 401, {len(found)} times the same")


CHANGES = {
    "alarms/add": ("/alarms/add?name=other&target=main&metric=node_load1&operation=%3E&value=1000000", ""),
    "alarms/del": ("/alarms/del?name=other", ""),
    "push": ("/push?key=pushed_total&doc=Pushed", ""),
    "set": ("/set?key=pushed_total&value=1", ""),
    "accumulate": ("/accumulate?key=pushed_total&value=1", ""),
    "api/put": ("/api/put", '{"metric":"pushed_total","timestamp":1,"value":1,"tags":{"a":"b"}}'),
    "api/annotation": ("/api/annotation", '{"startTime":1,"description":"pushed"}'),
    "join": ("/join?to=127.0.0.1:1", ""),
}


@attempt("head", "changes something over HTTP without the token: {}", each=CHANGES)
def change(world, user, one):
    target, body = CHANGES[one]
    methods = ["POST"] if body else ["GET", "POST"]
    said = asked(world, user, world.http, *(request(target, method, body) for method in methods))
    if one in ("push", "alarms/add"):  # with the token they change something
        assert asked(world, USER, world.http, request(target, **bearer(world.live.token))).startswith("200")
        asked(world, USER, world.http, request("/alarms/del?name=other", **bearer(world.live.token)))
    return said


def proof(token, nonce, answer, address, method, target):
    """The header that shows the token after the head's answer to the nonce (web/http/proof.h)."""
    found = re.search(r"nonce=([0-9a-f]{64})", answer)
    digest = hashlib.sha256(b"").hexdigest()
    lines = "".join(f"{part}\n" for part in ("asker", nonce, found[1], address, method, target, digest))
    shown = hmac.digest(token.encode(), lines.encode(), "sha256").hex()
    return {"Authorization": f"Sonde proof={shown}, body={digest}"}


def with_proof(world, token, proven="/job/list"):
    """The status of a request for the list of jobs with a proof of what is `proven` by that token; made here, for the
    proof is about what the head said on the same connection."""
    nonce = os.urandom(32).hex()
    with socket.create_connection(world.http, 20) as connection:
        connection.sendall(request("/api/v1/proof", keep=True, Authorization=f"Sonde nonce={nonce}").encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(4096)
        header = proof(token, nonce, answer.decode(), f"127.0.0.1:{world.live.port}", "GET", proven)
        connection.sendall(request("/job/list", **header).encode())
        answer = connection.recv(4096)
    status = int(answer.split()[1])
    return f"HTTP {status}" if status < 400 else Refused(f"HTTP {status}")


@attempt("head", "proves a guessed token", control=USER)
def prove_a_guess(world, user):
    return with_proof(world, world.live.token if user == USER else "0" * 32)


@attempt("head", "has a proof of one request count for another", control=USER)
def prove_another(world, user):
    return with_proof(world, world.live.token, proven="/job/list" if user == USER else "/metrics")


BROWSER = {"User-Agent": "Mozilla/5.0"}
# Requests that a page has a browser make: with the password that it keeps for this address.
PAGES = {
    "of another site": {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
    "of another port of this host": {"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-site"},
    "in a frame without an origin": {"Origin": "null"},
    "that tells no origin, only its site": {"Sec-Fetch-Site": "cross-site"},
}


@attempt("head", "has the user's browser ask for a page {}", control=USER, each=PAGES)
def ask_from_a_page(world, user, one):
    page = {"Sec-Fetch-Site": "same-origin"} if user == USER else PAGES[one]
    return asked(world, user, world.http, request("/job/list", **basic(world.live.token), **BROWSER, **page))


@attempt("head", "has the user's browser change something by a link or a form, with its password", control=USER)
def change_from_a_page(world, user):
    # To another host than the loopback browsers do not say whose page sends a GET.
    fields = {**basic(world.live.token), **BROWSER}
    if user == USER:
        rule = json.dumps({"name": "mine", "rule": "node_load1 > 1000000"})
        return asked(world, user, world.http, request("/alarms/add", "POST", rule, **fields))
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    return asked(
        world, user, world.http,
        request("/alarms/add?name=x&rule=node_load1%3E1", **fields),
        request("/push?key=x_total", **fields),
        request("/alarms/add", "POST", "name=x", **fields, **form),
        request("/push?key=x_total", "POST", "a=b", **fields, **{"Content-Type": "text/plain"}),
    )  # fmt: skip


@attempt("head", "leads a name of its own to the head's address (DNS rebinding)", control=USER)
def rebind(world, user):
    # The browser has neither a password nor the page's token for that name.
    fields = bearer(world.live.token) if user == USER else {"Origin": "http://evil.example:4242", **BROWSER}
    fields = {"Host": "evil.example:4242", "Sec-Fetch-Site": "same-origin", **fields}
    return asked(world, user, world.http, request("/job/list", **fields))


@attempt("head", "reads an answer from another origin's page (CORS)")
def read_from_a_page(world, user):
    origin = {"Origin": "http://evil.example", "Access-Control-Request-Headers": "authorization"}
    found = answers(
        world, user, world.http,
        request("/job/list", "OPTIONS", Access_Control_Request_Method="GET", **origin),
        request("/job/list", **origin, **bearer(world.live.token)),
    )  # fmt: skip
    allowed = [text for _, text in found if "access-control-allow" in text.lower()]
    return allowed[0] if allowed else Refused("no Access-Control-Allow-Origin")


@attempt("head", "goes to data by a path that looks like the page's", control=USER)
def ask_by_a_trick(world, user):
    if user == USER:
        return asked(world, user, world.http, request("/job/list", **bearer(world.live.token)))
    tricks = ("//job/list", "/./job/list", "/app.js/../job/list", "/app.js/%2e%2e/job/list", "/%6aob/list",
              "/job/list;.js", "/job/list%00.js", "/job/list?x=/app.js", "/vendor/../job/list",
              "http://localhost/job/list")  # fmt: skip
    return asked(world, user, world.http, *map(request, tricks))


# --- The archive


def place_of(world, one):
    return world.archive / one.replace("STEP", world.step.live_directory().name)


PATHS = (".", "db", "db/CURRENT", "db.owner", "db.format", "live", "live/STEP", "live/STEP/endpoint.json",
         "live/STEP/description.json", "live/STEP/blocks/CURRENT", "waiting")  # fmt: skip


@attempt("archive", "reads {}", control=USER, each=PATHS)
def read_archive(world, user, one):
    place_of(world, "waiting").mkdir(mode=0o700, exist_ok=True)
    os.chown(place_of(world, "waiting"), pwd.getpwnam(USER).pw_uid, -1)
    return as_user(world, user, READ, str(place_of(world, one)))


FILES = [path for path in PATHS if path not in (".", "db", "live", "live/STEP", "waiting")]


@attempt("archive", "reads {} where USER has opened the directories to all", control=USER, each=FILES)
def read_open_archive(world, user, one):
    with world.archive_is_open():
        return as_user(world, user, READ, str(place_of(world, one)))


PLANTED = {
    "a link": "os.symlink('/etc/passwd', path)",
    "a FIFO": "os.mkfifo(path)",
    "a file": "os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))",
}


@attempt("archive", "plants {} where Sonde will look", control=USER, each=PLANTED)
def plant(world, user, one):
    code = f"""
        def tries(paths):
            made = []
            for path in paths:
                try:
                    {PLANTED[one]}
                except OSError as error:
                    last = error
                    continue
                made.append(path)
                os.unlink(path)
            if not made:
                raise last
            return made
        """
    name = world.unused("planted")
    places = (name, f"live/{name}", f"waiting/{name}", f"db/{name}", f"live/STEP/{name}", f"live/STEP/blocks/{name}")
    temporary = [str(world.cluster.dir / "tmp" / USER / name), str(world.cluster.home() / name)]
    return as_user(world, user, code, [*(str(place_of(world, place)) for place in places), *temporary])


@attempt("archive", "makes a name of its own for a file of USER's (a hard link)")
def link_file(world, user):
    with world.archive_is_open():
        return as_user(world, user, """
            def tries(path, own):
                os.link(path, own)
                with open(own, "rb") as file:
                    return file.read()
            """, str(place_of(world, "live/STEP/endpoint.json")), str(world.cluster.home(user) / "mine"))  # fmt: skip


COMMANDS = {
    "ls": ["ls"],
    "show": ["show", "JOB"],
    "show (running)": ["show", "RUNNING"],
    "url": ["url", "RUNNING"],
    "diff": ["diff", "JOB", "JOB"],
    "export": ["export", "JOB", "--to", "csv:-"],
    "tag": ["tag", "JOB", "of=other"],
    "verify": ["archive", "verify"],
}


@attempt("archive", "calls sonde --archive of USER's: {}", control=USER, each=COMMANDS)
def command_on_archive(world, user, one):
    named = {"JOB": world.finished, "RUNNING": world.step.id}
    return command(world, user, [SONDE, "--archive", world.archive, *(named.get(word, word) for word in COMMANDS[one])])


@attempt("archive", "writes a profile of its own into USER's archive (SONDE_ARCHIVE)", control=USER)
def write_profile(world, user):
    mark = world.unused("mark")
    env = {"SONDE_ARCHIVE": str(world.archive)}
    done = world.cluster.run([SONDE, "run", "-q", "--tag", f"by={mark}", "--", "true"], user=user, env=env)
    listed = world.cluster.run([SONDE, "ls", "--json", "--tag", f"by={mark}"])
    return "a profile" if json.loads(listed.stdout or "[]") else Refused(done.stderr.strip().rpartition(": ")[2])


@attempt("archive", "asks the server at db.sock, which USER has opened to all", control=USER)
def ask_keeper(world, user):
    with world.archive_is_open():
        keeper = world.archive / "db.sock"
        keeper.chmod(0o666)
        try:
            return as_user(world, user, connected("""
                def tries(path):
                    end = connect(path, socket.SOCK_STREAM)
                    end.sendall(b"ingest\\n")
                    answer = end.recv(4096).decode()
                    if not answer:
                        raise ConnectionError(0, "closed")
                    return answer
                """), str(keeper))  # fmt: skip
        finally:
            keeper.chmod(0o600)


@attempt("archive", "acts at USER's terminal by a profile of its own, which USER imports")
def act_at_terminal(world, user):
    acts, mark, imported = "\x1b]0;owned\x07", world.unused("mark"), world.directory / "imported"
    assert world.cluster.run(f"{SONDE} run --tag by={mark} -q -- true '{acts}'", user=user).returncode == 0
    given = world.cluster.home(user) / "given.sonde"
    (one,) = json.loads(world.cluster.run([SONDE, "ls", "--json", "--tag", f"by={mark}"], user=user).stdout)
    step = ".".join(one["key"].split(".")[1:3])
    assert world.cluster.run([SONDE, "export", step, "--to", given], user=user).returncode == 0
    shutil.copy(given, world.directory)
    (world.directory / given.name).chmod(0o644)
    imported.mkdir()
    os.chown(imported, pwd.getpwnam(USER).pw_uid, -1)
    mine = [SONDE, "--archive", imported / "archive"]
    assert world.cluster.run([*mine, "import", world.directory / given.name]).returncode == 0
    shown = [world.cluster.run([*mine, *words]) for words in (["show"], ["grep", "owned"], ["show", "--json"], ["ls"])]
    assert all(done.returncode == 0 for done in shown)
    assert all("owned" in done.stdout for done in shown[:3]), "it is there"
    got = [done.args for done in shown if acts in done.stdout or "\x1b" in done.stdout]
    return f"its control characters, by {got}" if got else Refused("control characters are not printed")


# --- The site's server


def listed(world, user, target="/job/list?limit=1000", **fields):
    """What a request tells of USER's steps, else how it was refused or that it shows the visitor's own."""
    (found,) = answers(world, user, world.site.listen, request(target, **fields))
    for step in (world.finished, world.step.id):
        if step in found[1] or f'"{step.partition(".")[0]}"' in found[1]:
            return f"{step} is there"
    return Refused(f"HTTP {found[0]}" + ("" if found[0] >= 400 else ", without USER's"))


def own_token(world, user):
    return bearer(world.tokens[user])


@attempt("site", "asks for {}", control=USER,
         each=[f"/user/{USER}/{one}" for one in ("job/list", "api/v1/profile?job=JOB", "metrics?job=JOB")])  # fmt: skip
def ask_for_user(world, user, one):
    return listed(world, user, one.replace("JOB", world.finished), **own_token(world, user))


@attempt("site", "finds another way to USER's archive: {}",
         each=("/user/OTHER/../USER/job/list", "/user/OTHER/%2e%2e/USER/job/list", "//user/USER/job/list",
               "/./user/USER/job/list", "/user/%73onde-test1/job/list", "/user/USER%00/job/list",
               "/user//USER/job/list", "/USER/job/list", "/user/OTHER/job/list?user=USER",
               "/user/OTHER/user/USER/job/list", "/job/list?archive=../USER",
               "http://localhost/user/USER/job/list"))  # fmt: skip
def ask_by_another_path(world, user, one):
    target = one.replace("OTHER", OTHER_USER).replace("USER", USER)
    return listed(world, user, target, **own_token(world, user))


@attempt("site", "shows {}", control=USER, each=("no token", "USER's token, which it was told", "a guessed token"))
def show_token(world, user, one):
    right = own_token(world, USER)
    fields = {"no token": {}, "a guessed token": bearer("0" * 32)}.get(one, right)
    return listed(world, user, **(right if user == USER else fields))


@attempt("site", "asks the socket of the tokens for USER's", control=USER)
def ask_for_token(world, user):
    found = answers(
        world, user, f"{world.site.listen}.token",
        request("/"), request(f"/?user={USER}"), request(f"/user/{USER}/", X_Remote_User=USER), request(f"/{USER}"),
    )  # fmt: skip
    told = any(world.tokens[USER] in text for _, text in found)
    return "USER's token" if told else Refused("its own token, HTTP " + ", ".join(str(status) for status, _ in found))


PROXY = {
    "the header alone": {"X-Remote-User": USER},
    "a guessed secret": {"X-Remote-User": USER, "Sonde-Proxy-Secret": "x" * len(SECRET)},
    "the secret's beginning": {"X-Remote-User": USER, "Sonde-Proxy-Secret": SECRET[:-1]},
    "an empty secret": {"X-Remote-User": USER, "Sonde-Proxy-Secret": ""},
    "a mark of the door's own": {"Sonde-By-Browser": "1", "Sonde-User": USER, "X-Forwarded-User": USER},
}


@attempt("site", "says that it is USER's proxy, by {}", control=USER, each=PROXY)
def be_the_proxy(world, user, one):
    right = {"X-Remote-User": USER, "Sonde-Proxy-Secret": SECRET}
    token = own_token(world, user) if user == OTHER_USER else {}
    return listed(world, user, **(right if user == USER else PROXY[one]), **token)


@attempt("site", "hides a second request behind its own")
def smuggle_to_site(world, user):
    hidden = request(f"/user/{USER}/job/list", X_Remote_User=USER)
    token = own_token(world, user)
    found = answers(
        world, user, world.site.listen,
        request("/job/list", keep=True, **token) + hidden,
        request("/job/list", body=hidden, **token),
    )  # fmt: skip
    got = [text for _, text in found if world.finished in text]
    return got[0] if got else Refused("one request to a connection")


def process_of(world, owner):
    """The site's process of that user, which is there once one has asked."""
    answers(world, USER, world.site.listen, request("/job/list", **own_token(world, USER)))
    answers(world, OTHER_USER, world.site.listen, request("/job/list", **own_token(world, OTHER_USER)))
    return next(pid for pid in world.site.processes() if pathlib.Path(f"/proc/{pid}").owner() == owner)


@attempt("site", "kills a process of the server: {}'s", control="root", each=("root", "nobody", USER))
def kill_server(world, user, one):
    return as_user(world, user, KILL, process_of(world, one), signal.SIGKILL if user == OTHER_USER else 0)


@attempt("site", "traces a process of the server: {}'s", control="root", each=("root", "nobody", USER, OTHER_USER))
def trace_server(world, user, one):
    """Also the one that has become the stranger: it must not hold what others' requests had."""
    return as_user(world, user, TRACE, process_of(world, one))


@attempt("site", "reads {}", control="root", each=("site.sock.key", "secret"))
def read_site_secret(world, user, one):
    return as_user(world, user, READ, str(world.site.directory / one))


@attempt("site", "puts an own socket in place of the server's")
def replace_site(world, user):
    return as_user(world, user, """
        def tries(path):
            os.rename(path, path + ".old")
            return "moved"
        """, world.site.listen)  # fmt: skip


# --- A tunnel of USER's


TUNNELLED = {
    "without a token": lambda world: {},
    "with its own token": lambda world: own_token(world, OTHER_USER),
    "with the proxy's header": lambda world: {"X-Remote-User": USER},
    "by another site's page, with the browser's password": lambda world: {
        **basic(world.tokens[USER]), **BROWSER, "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"
    },
    "by DNS rebinding": lambda world: {"Host": "evil.example:4242", **basic(world.tokens[USER]), **BROWSER},
}  # fmt: skip


@attempt("tunnel", "asks at the end of USER's tunnel {}", control=USER, each=TUNNELLED)
def ask_by_tunnel(world, user, one):
    fields = own_token(world, USER) if user == USER else TUNNELLED[one](world)
    (found,) = answers(world, user, world.laptop, request("/job/list?limit=1000", **fields))
    return "USER's steps" if world.finished in found[1] else Refused(f"HTTP {found[0]}")


@attempt("tunnel", "asks at the end of USER's tunnel for USER's token")
def ask_token_by_tunnel(world, user):
    found = answers(world, user, world.laptop, *map(request, ("/", "/.token", f"/user/{USER}/", "/users")))
    assert found[0][0] == 200, "the page is for everybody"
    got = [text for _, text in found if world.tokens[USER] in text or world.finished in text]
    return got[0] if got else Refused("the page's files and HTTP 401")


# --- What a host shares


PORTS = ("the head's port of HTTP", "the rendezvous", "sonde serve's port")


@attempt("host", "takes {} while it is in use", each=PORTS)
def take_port(world, user, one):
    ports = dict(zip(PORTS, (world.live.port, world.rendezvous, world.serve.port), strict=True))
    return as_user(world, user, """
        def tries(port):
            for address in ("127.0.0.1", "0.0.0.0"):
                try:
                    end = socket.socket()
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                    end.bind((address, port))
                    end.listen()
                    return address
                except OSError as error:
                    last = error
            raise last
        """, ports[one])  # fmt: skip


STRANGER = """
import json, socket, sys
to = int(sys.argv[1])
zeros = 64 * b"0"
end = socket.socket()
end.bind(("127.0.0.1", 0))
end.listen()
end.settimeout(20)
print(end.getsockname()[1], flush=True)
while True:
    one, _ = end.accept()
    one.settimeout(5)
    heard = b""
    try:
        heard = one.recv(65536)
        if to:
            head = socket.create_connection(("127.0.0.1", to), 5)
            head.settimeout(5)
            answer = b""
            head.sendall(heard)
            one.sendall(head.recv(65536))
            more = one.recv(65536)
            heard += more
            if more:
                head.sendall(more)
                answer = head.recv(65536)
        else:
            answer = b""
            begin = b"HTTP/1.1 204 No Content\\r\\nSonde-Proof: nonce="
            one.sendall(begin + zeros + b", proof=" + zeros + b"\\r\\n\\r\\n")
            heard += one.recv(65536)
    except OSError:
        pass
    print(json.dumps([heard.decode("latin-1"), answer.decode("latin-1")]), flush=True)
    one.close()
"""


@contextlib.contextmanager
def stranger_in_place_of_the_head(world, user, passes_on):
    """The step's file names the port at which the stranger listens, as if the head had had it before."""
    listener = world.cluster.popen([PYTHON, "-c", STRANGER, str(world.live.port if passes_on else 0)], user=user)
    endpoint = world.step.live_directory() / "endpoint.json"
    before = endpoint.read_text()
    try:
        port = int(listener.stdout.readline())
        endpoint.write_text(json.dumps({**json.loads(before), "port": port}))
        yield listener
    finally:
        endpoint.write_text(before)
        listener.kill()
        listener.wait()


@attempt("host", "listens where a command takes the head to be, and {}", each=("answers for it", "passes all on to it"))
def be_the_head(world, user, one):
    with stranger_in_place_of_the_head(world, user, passes_on="passes" in one) as listener:
        done = world.cluster.run([SONDE, "show", "--json", world.step.id])
        heard, answer = json.loads(listener.stdout.readline())
    assert "Sonde nonce=" in heard, f"the command did not come: {heard}"
    if world.live.token in heard:
        return "the token"
    if "HTTP/1.1 200 " in answer:
        return "the head's answer"
    assert done.returncode == 0, done.stderr
    return Refused("it heard " + ("a proof for another address" if "proof=" in heard else "one random number"))


def secrets(world):
    key = [world.key] if world.credentials else []
    return [world.live.token, world.serve.token, world.tokens[USER], SECRET, *key]


@attempt("host", "looks for tokens and keys in what ps shows of all processes")
def read_command_lines(world, user):
    shown = as_user(world, user, """
        def tries():
            lines = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        lines.append(file.read().decode("latin-1"))
                except OSError:
                    pass
            return "\\n".join(lines)
        """)  # fmt: skip
    assert f"--head\0{world.step.id}" in shown, "it sees the daemons"
    assert "serve\0--port\0" in shown, "and the server"
    return found_in(world, shown, "command lines")


def found_in(world, text, what):
    found = [secret[:4] + "..." for secret in secrets(world) if secret in text]
    return f"{found} in {what}" if found else Refused("none is there")


@attempt("host", "looks for tokens and keys in what Slurm shows of jobs and steps")
def read_records(world, user):
    shown = ""
    for words in (["scontrol", "show", "job", "-dd"], ["scontrol", "show", "step"], ["squeue", "--format=%all"]):
        shown += world.cluster.run(words, user=user).stdout
    assert str(world.step.job) in shown
    return found_in(world, shown, "Slurm's records")


@attempt("host", "looks for tokens and keys in files below /tmp, /var/tmp, /dev/shm and /run/sonde", control="root")
def read_shared_files(world, user):
    # Whoever may read everything finds them: in the archive, which is below /tmp in these tests.
    read = as_user(world, user, """
        def tries(since, tops):
            text = []
            for top in tops:
                for directory, _, names in os.walk(top):
                    for name in names:
                        path = os.path.join(directory, name)
                        try:
                            info = os.lstat(path)
                            if info.st_mtime < since or info.st_size > 1 << 20 or not stat.S_ISREG(info.st_mode):
                                continue
                            with open(path, "rb") as file:
                                text.append(file.read().decode("latin-1"))
                        except OSError:
                            pass
            return "\\n".join(["read"] + text)
        """, world.cluster.started, ["/tmp", "/var/tmp", "/dev/shm", "/run/sonde", str(world.cluster.dir)])  # fmt: skip
    return found_in(world, read, "files")


@attempt("host", "reads what is left of a server of USER's that crashed")
def read_core(world, user):
    place = world.directory / "crash"
    place.mkdir()
    place.chmod(0o777)
    token = "".join("0123456789abcdef"[byte % 16] for byte in os.urandom(32))
    given = world.cluster.home() / "crash.token"
    given.write_text(token)
    given.chmod(0o600)
    os.chown(given, pwd.getpwnam(USER).pw_uid, -1)
    serve = f"{SONDE} --archive {place}/archive serve --token-file {given}"
    words = ["bash", "-c", f"cd {place}; ulimit -c unlimited; exec {serve}"]
    out = world.directory / "crash.out"
    with open(out, "w") as file:
        server = world.cluster.popen(words, stdout=file)
    wait_for(lambda: "Open http" in out.read_text(), "the server")
    given.unlink()
    out.unlink()
    server.send_signal(signal.SIGSEGV)
    assert server.wait(20) == -signal.SIGSEGV
    left = as_user(world, user, """
        def tries(top):
            text = ["files: "]
            for directory, _, names in os.walk(top):
                for name in names:
                    try:
                        with open(os.path.join(directory, name), "rb") as file:
                            text.append(file.read().decode("latin-1"))
                    except OSError as error:
                        text.append(str(error))
            return "".join(text)
        """, str(place))  # fmt: skip
    cores = [path.name for path in place.glob("*core*")]
    return "the token" if token in left else Refused("a core of mode 0600" if cores else "no core that all may read")


# --- On the wire


def among_daemons(world):
    """What was said to the head but for HTTP, which is not encrypted, and what Slurm's own programs said."""
    clear = {world.live.port, world.serve.port}
    return {ends: data for ends, data in world.wire.items() if not clear & set(ends)}


def heard(streams, *texts):
    found = [ends for ends, data in streams.items() if any(text in data for text in texts)]
    size = sum(map(len, streams.values()))
    return f"heard between ports {found[0]}" if found else Refused(f"not in {size} bytes of {len(streams)} streams")


@attempt("wire", "hears the step's key")
def hear_key(world, user):
    raw = bytes.fromhex(world.key)
    forms = [world.key.encode(), world.key.upper().encode(), raw, base64.b64encode(raw)]
    return heard(world.wire, *forms)


@attempt("wire", "opens what munge wrapped, which it heard, as {}", control="root", each=(OTHER_USER, USER))
def open_credentials(world, user, one):
    opened = [world.unmunge(credential, user if user == "root" else one) for credential in world.credentials]
    return "the key" if any(world.key in text for text in opened) else Refused(f"munge opens none of {len(opened)}")


@attempt("wire", "hears the token that commands and sonde serve show to the head")
def hear_token(world, user):
    # What is sent as it is can be heard: the test showed the server's token so.
    assert not isinstance(heard(world.wire, world.serve.token.encode()), Refused)
    assert not isinstance(heard(world.wire, b"Authorization: Sonde proof="), Refused)
    token = world.live.token.encode()
    # As a password it would be in base64, at one of three places.
    return heard(world.wire, token, *(base64.b64encode(bytes(n) + token)[4:-4] for n in range(3)))


@attempt("wire", "hears what the application told between daemons: {}", each=("a remark", "a metric's name"))
def hear_application(world, user, one):
    text = (REMARK if "remark" in one else METRIC).encode()
    # Over HTTP, which is not encrypted, it can be heard.
    assert not isinstance(heard(world.wire, text), Refused)
    daemons = among_daemons(world)
    assert any(world.rendezvous in ends and len(data) > 1000 for ends, data in daemons.items()), "they talked"
    return heard(daemons, text)


@attempt("wire", "says again to the head what a node's daemon said")
def replay_node(world, user):
    said = {ends: data for ends, data in world.wire.items() if ends[1] == world.rendezvous and data}
    # The same words had the head talk to their first speaker: more than the offer.
    ends, words = max(said.items(), key=lambda one: len(one[1]))
    back = world.wire[(ends[1], ends[0])]
    assert len(frames(words)[0]) > 2 and len(frames(back)[0]) > 2
    return knock(world, user, words)


@attempt("wire", "sends again a proof that a command has sent")
def replay_proof(world, user):
    for ends, data in world.wire.items():
        if ends[1] == world.live.port and b"Authorization: Sonde proof=" in data:
            first, proven = [part + b"\r\n\r\n" for part in data.split(b"\r\n\r\n")[:2]]
            break
    assert b"Sonde nonce=" in first and b"Sonde proof=" in proven
    assert b"HTTP/1.1 200 " in world.wire[(ends[1], ends[0])], "it was answered when it was new"
    proven = proven.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n").decode("latin-1")
    return asked(world, user, world.http, proven, [first.decode("latin-1"), proven])


# --- All of them


@pytest.mark.parametrize(("name", "place", "what", "control", "function"), ATTEMPTS.values())
def test_attempt(world, name, place, what, control, function):
    TABLE[name] = (place, what, "was not made to the end")
    try:
        possible = control and function(world, control)
        assert not isinstance(possible, Refused), f"{control} gets nothing either: {possible}"
        got = function(world, OTHER_USER)
    except pytest.skip.Exception as why:
        TABLE[name] = (place, what, f"skipped: {why}")
        raise
    refused = isinstance(got, Refused)
    TABLE[name] = (place, what, f"nothing: {got}" if refused else f"GOT {got}")
    assert refused, f"{OTHER_USER} {what}: got {got}"


def test_none_of_them_got_anything():
    """Last: shows the table, of the attempts that were made."""
    print()
    for place in dict.fromkeys(place for place, _, _ in TABLE.values()):
        print(place)
        for _, what, came in (row for row in TABLE.values() if row[0] == place):
            print(f"  {what:<88} {came[:100]}")
    print(f"{len(TABLE)} attempts")
    got = {name for name, (_, _, came) in TABLE.items() if came.startswith("GOT")}
    assert not got - {name for name, param in ATTEMPTS.items() if param.marks}
