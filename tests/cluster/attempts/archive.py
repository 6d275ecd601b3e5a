"""Attempts at an archive, and with files of one."""

import json
import os
import pwd
import shutil

from attempts.making import READ, Refused, as_user, attempt, command, connected
from conftest import SONDE, USER


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
