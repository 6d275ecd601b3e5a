"""Attempts with what the users of a host share: ports, process numbers, files."""

import contextlib
import json
import os
import pwd
import signal

from attempts.making import Refused, as_user, attempt
from conftest import SONDE, USER, wait_for
from test_site import PYTHON, SECRET

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
