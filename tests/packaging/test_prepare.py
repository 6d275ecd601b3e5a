"""scripts/prepare makes an item once and wholly: whatever ends it half-way, nothing of that counts."""

import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds

# The script with items of a test's own. Each `make` is Python; what it appends to `tries` is how often it was made.
DRIVER = """
import importlib.machinery, importlib.util, os, pathlib, sys
loader = importlib.machinery.SourceFileLoader("prepare", {script!r})
prepare = importlib.util.module_from_spec(importlib.util.spec_from_loader("prepare", loader))
sys.dont_write_bytecode = True
loader.exec_module(prepare)
here = pathlib.Path({here!r})

def count(place):
    with open(here / "tries", "a") as tries:
        tries.write(place.name + chr(10))

def item(name, make, limit=60, asked=(), **more):
    def counted(place):
        count(place)
        make(place)
    prepare.ITEMS[name] = prepare.Item(name, "a thing", "a test", limit, counted, asked, **more)

def write(place):
    (place / "thing").write_text("whole")

def fail(place):
    prepare.run("sh", "-c", "echo much; echo it is broken >&2; exit 3")

def lack(place):
    raise prepare.Lacking("there is no network")

# Tells the processes that it is made of, and waits until somebody opens the other end of `go`.
def half(place):
    (place / "thing").write_text("half")
    prepare.run("sh", "-c", 'sh -c "echo \\\\$\\\\$ \\\\$PPID >{here}/begun; read word <{here}/go"; exit 0')
    write(place)

prepare.ITEMS.clear()
{items}
sys.exit(prepare.main(sys.argv[1:]))
"""


class Prepare:
    def __init__(self, here):
        self.here = here
        self.build = here / "build"
        self.made = self.build / "made"
        for name in ("begun", "go"):
            os.mkfifo(here / name)
        self.running = []

    def start(self, items, *names, **environment):
        driver = DRIVER.format(script=str(ROOT / "scripts" / "prepare"), here=str(self.here), items=items)
        process = subprocess.Popen(
            [sys.executable, "-c", driver, *names], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "SONDE_BUILD": str(self.build), **environment},
        )  # fmt: skip
        self.running.append(process)
        return process

    def end(self, process):
        """(exit code, lines about items)"""
        out, err = process.communicate(timeout=PATIENCE)
        assert err == ""
        return process.returncode, [line for line in out.splitlines() if not line.startswith("== what tests need")]

    def run(self, items, *names, **environment):
        return self.end(self.start(items, *names, **environment))

    def begun(self):
        """Waits until `half` has begun; descriptors of the processes that it is made of."""
        begun = os.open(self.here / "begun", os.O_RDONLY | os.O_NONBLOCK)
        assert readable(begun), "it does not begin"
        pids = os.read(begun, 100).split()
        os.close(begun)
        found = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                found.append(os.pidfd_open(int(pid)))
        return found

    def go(self):
        (self.here / "go").write_text("on\n")

    def tries(self):
        file = self.here / "tries"
        return file.read_text().split() if file.exists() else []

    def whole(self, name="one"):
        """Whether it counts as made, as tests/made.py tells it, and is."""
        return (self.made / name / "made_of.json").exists() and (self.made / name / "thing").read_text() == "whole"


@pytest.fixture
def prepare(tmp_path):
    own = Prepare(tmp_path)
    yield own
    for process in own.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def readable(descriptor):
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(PATIENCE * 1000))


def ended(descriptor):
    """Waits until a process has ended."""
    found = readable(descriptor)
    os.close(descriptor)
    return found


def without_times(lines):
    return [re.sub(r"in \d+ s$", "in N s", line) for line in lines]


ONE = 'item("one", write)'
HALF = 'item("one", half)'


def test_an_item_is_made_once(prepare):
    code, lines = prepare.run(ONE)
    assert (code, without_times(lines)) == (0, ["one: making a thing", "one: made in N s"])
    assert prepare.whole()
    assert prepare.run(ONE) == (0, ["one: is there"])
    assert prepare.tries() == ["one"]
    assert sorted(path.name for path in prepare.made.iterdir()) == ["one", "one.lock"]


def test_what_is_asked_for_now_is_made_anew(prepare):
    prepare.run('item("one", write, asked=("package==1",))')
    (prepare.made / "one" / "of-the-first").touch()
    prepare.run('item("one", write, asked=("package==2",))')
    assert prepare.tries() == ["one", "one"] and prepare.whole()
    assert not (prepare.made / "one" / "of-the-first").exists()
    assert prepare.run('item("one", write, asked=("package==2",))') == (0, ["one: is there"])


def test_what_was_moved_is_made_anew(prepare):
    prepare.run(ONE)
    prepare.build.rename(prepare.here / "other")
    prepare.build = prepare.here / "other"
    code, lines = prepare.run(ONE)
    assert (code, lines[0]) == (0, "one: making a thing")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ended_half_way_nothing_is_made_and_nothing_runs_on(prepare, number):
    first = prepare.start(HALF)
    parts = prepare.begun()
    first.send_signal(number)
    assert all(ended(part) for part in parts)
    code, lines = prepare.end(first)
    assert code != 0 and not prepare.whole()
    if number in (signal.SIGTERM, signal.SIGINT):
        assert lines[-1] == f"one: could not be made: scripts/prepare was ended by {number.name}"
        assert not (prepare.made / "one").exists()
    assert prepare.run(ONE)[0] == 0
    assert prepare.whole() and prepare.tries() == ["one", "one"]


def test_a_process_that_does_not_heed_being_told_ends_too(prepare):
    stubborn = """
def deaf(place):
    prepare.run("sh", "-c", f"trap '' TERM; echo $$ $PPID >{here}/begun; while :; do read word <{here}/go; done")
prepare.GRACE = 1
item("one", deaf)
"""
    first = prepare.start(stubborn)
    parts = prepare.begun()
    first.send_signal(signal.SIGTERM)
    assert all(ended(part) for part in parts)
    assert prepare.end(first)[0] != 0


def test_what_an_item_leaves_running_ends(prepare):
    leaving = """
def leave(place):
    prepare.run("sh", "-c", f"sleep 1000 >/dev/null 2>&1 & echo $! >{here}/begun")
    write(place)
item("one", leave)
"""
    first = prepare.start(leaving)
    parts = prepare.begun()
    assert prepare.end(first)[0] == 0 and prepare.whole()
    assert all(ended(part) for part in parts)


def test_nobody_begins_before_what_was_left_has_ended(prepare):
    """The item's own process is killed together with the script, so nobody ends its command."""
    first = prepare.start(HALF)
    parts = prepare.begun()
    maker = int(pathlib.Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text())
    first.send_signal(signal.SIGSTOP)
    os.kill(maker, signal.SIGKILL)
    first.kill()
    second = prepare.start(ONE)
    assert second.stdout.readline() == "== what tests need\n"
    assert second.stdout.readline() == "one: somebody else is making it\n"
    prepare.go()
    code, lines = prepare.end(second)
    assert (code, lines[0]) == (0, "one: making a thing")
    assert prepare.whole() and all(ended(part) for part in parts)


def test_what_takes_too_long_is_ended(prepare):
    endless = """
def endless(place):
    prepare.run("sh", "-c", f"exec 3>{here}/alive; sh -c 'sleep 1000'; exit 0")
item("one", endless, limit=1); item("two", write)
"""
    os.mkfifo(prepare.here / "alive")
    alive = os.open(prepare.here / "alive", os.O_RDONLY | os.O_NONBLOCK)
    code, lines = prepare.run(endless)
    assert code == 78
    assert os.read(alive, 1) == b"", "somebody could still write"
    os.close(alive)
    assert without_times(lines)[1:] == [
        "one: could not be made: it took longer than 1 s: nothing was said", "two: making a thing", "two: made in N s",
    ]  # fmt: skip
    assert not (prepare.made / "one").exists() and prepare.whole("two")
    assert prepare.run(ONE)[0] == 0 and prepare.whole()


def test_two_at_once_make_it_once(prepare):
    first = prepare.start(HALF)
    parts = prepare.begun()
    second = prepare.start(HALF)
    assert second.stdout.readline() == "== what tests need\n"
    assert second.stdout.readline() == "one: somebody else is making it\n"
    prepare.go()
    assert prepare.end(first)[0] == 0
    assert prepare.end(second) == (0, ["one: is there"])
    assert prepare.tries() == ["one"] and prepare.whole() and all(ended(part) for part in parts)


def test_what_fails_says_why_and_does_not_stop_others(prepare):
    code, lines = prepare.run('item("bad", fail); item("one", write)')
    assert code == 78
    assert "bad: could not be made: sh: it is broken" in lines and prepare.whole()
    assert (prepare.made / "bad.why").read_text() == "sh: it is broken\n"
    assert (prepare.made / "bad.log").read_text().startswith("much\n")
    assert not (prepare.made / "bad").exists()
    code, lines = prepare.run('item("bad", write)')
    assert code == 0 and not (prepare.made / "bad.why").exists() and not (prepare.made / "bad.log").exists()


def test_exit_codes_tell_the_machines_faults_from_others(prepare):
    code, lines = prepare.run('item("one", lack); item("two", write)')
    assert code == 77 and "one: could not be made: there is no network" in lines
    assert prepare.run('item("one", lack); item("bad", fail)')[0] == 78
    assert prepare.run('item("one", lack); item("two", write)', "two") == (0, ["two: is there"])
    missing = 'item("one", lambda place: prepare.run("no-such-program"))'
    code, lines = prepare.run(missing)
    assert code == 77 and "no-such-program not found" in lines[-1]
    unforeseen = 'item("one", lambda place: 1 / 0)'
    code, lines = prepare.run(unforeseen)
    assert (code, lines[-1]) == (78, "one: could not be made: ZeroDivisionError: division by zero")


def test_what_few_want_is_made_for_who_names_it(prepare):
    few = 'item("few", write, only="SONDE_OF_FEW")'
    assert prepare.run(few) == (0, [])
    assert prepare.run(few, SONDE_OF_FEW="1")[0] == 0 and prepare.whole("few")
    assert prepare.run(few, "few") == (0, ["few: is there"])


def test_a_test_that_is_skipped_can_say_why(tmp_path):
    looked = subprocess.run(
        [sys.executable, "-c", "import made; print(made.place('mypy')); print(made.why('mypy'))"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), "SONDE_BUILD": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert looked.stdout.splitlines() == [
        "None",
        f"an environment with mypy is not there: nobody has made it; run SONDE_BUILD={tmp_path} scripts/prepare mypy",
    ]
    assert list(tmp_path.iterdir()) == []


# --- Packages of npm

REGISTRY = """
import base64, hashlib, http.server, io, json, tarfile, threading
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w:gz") as archive:
    for name, text in (("package/thing", b"whole"), ("package/lib/deep", b"x"), ("package/../../../escaped", b"x"),
                       ("/rooted", b"x")):
        member = tarfile.TarInfo(name)
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    link = tarfile.TarInfo("package/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive.addfile(link)
digest = "sha512-" + base64.b64encode(hashlib.sha512(packed.getvalue() + {more!r}).digest()).decode()
dist = {{"tarball": "https://registry.npmjs.org/thing/-/thing-1.0.0.tgz", "integrity": digest}}
texts = {{"/thing": json.dumps({{"versions": {{"1.0.0": {{"dist": dist}}}}}}).encode(),
         "/thing/-/thing-1.0.0.tgz": packed.getvalue()}}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in texts else 404)
        self.end_headers()
        self.wfile.write(texts.get(self.path, b""))
    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
(here / "home").mkdir(exist_ok=True)
lines = ["; mine", "@other:registry=http://127.0.0.1:9", "registry = http://127.0.0.1:%d/" % server.server_port]
(here / "home" / ".npmrc").write_text(chr(10).join(lines))
os.environ["HOME"] = str(here / "home")
for name in list(os.environ):
    if name.lower().startswith("npm_config_") or name.lower().endswith("_proxy"):
        del os.environ[name]
prepare.ITEMS["one"] = prepare.Item("one", "a thing", "a test", 60, **prepare.npm("thing", {version!r}))
"""


def test_a_package_comes_from_the_registry_that_the_user_has(prepare):
    assert prepare.run(REGISTRY.format(more=b"", version="1.0.0"))[0] == 0
    assert prepare.whole()
    found = sorted(str(path.relative_to(prepare.made)) for path in prepare.made.rglob("*") if not path.is_dir())
    assert found == ["one.lock", "one/lib/deep", "one/made_of.json", "one/rooted", "one/thing"]
    assert not (prepare.here / "escaped").exists()


def test_a_package_that_is_not_what_the_registry_says_is_refused(prepare):
    code, lines = prepare.run(REGISTRY.format(more=b"x", version="1.0.0"))
    assert code == 78 and "is not what http://127.0.0.1" in lines[-1]
    assert not (prepare.made / "one").exists()


def test_a_version_that_does_not_exist_is_no_fault_of_the_machine(prepare):
    code, lines = prepare.run(REGISTRY.format(more=b"", version="2.0.0"))
    assert code == 78 and "has no thing@2.0.0" in lines[-1]


def test_a_registry_that_does_not_answer_is_the_machines_fault(prepare):
    away = REGISTRY.format(more=b"", version="1.0.0") + "\nserver.shutdown()\nserver.server_close()\n"
    code, lines = prepare.run(away)
    assert code == 77 and "Connection refused" in lines[-1]
