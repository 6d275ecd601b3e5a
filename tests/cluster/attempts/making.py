"""What attempts are made of: how each is registered, and run as a user; see ../test_attempts.py."""

import functools
import json
import textwrap

import pytest
from test_site import PYTHON


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


def connected(code):
    """The code with connect(name), to a Unix socket of that type and name; @ is for an abstract one."""
    return """
def connect(name, kind):
    end = socket.socket(socket.AF_UNIX, kind)
    end.settimeout(10)
    end.connect("\\0" + name[1:] if name[0] == "@" else name)
    return end
""" + textwrap.dedent(code)


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
