"""`sonde serve --site`: users of one machine, each with an archive, and what each is shown."""

import base64
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

import pytest
from conftest import OTHER_USER, SONDE, USER, wait_for
from prometheus import PROMETHEUS, prometheus
from telemetry import LEVEL, Step

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin")
SSHD_DIRECTORY = pathlib.Path("/run/sshd")
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
# GET over a Unix socket, with that header if it is not empty; prints the status and the body.
CLIENT = """
import http.client, json, socket, sys
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.settimeout(30)
connection.sock.connect(sys.argv[1])
headers = {"Authorization": sys.argv[2]} if sys.argv[2] else {}
for path in sys.argv[3:]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    print(json.dumps([answer.status, answer.read().decode()]))
    connection.close()
    if path != sys.argv[-1]:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(sys.argv[1])
"""


# Of this run alone: test_attempts looks for it wherever other tests may be at work too.
SECRET = f"a secret of the proxy's that is long enough to be looked for {os.urandom(8).hex()}"
BEHIND_A_PROXY = "site_user_header = X-Remote-User\nsite_proxy_secret = @DIR@/secret\n"


class Site:
    def __init__(self, cluster, directory, listen, preload):
        self.cluster, self.directory = cluster, directory
        self.program = ["env", f"LD_PRELOAD={preload}", SONDE] if preload else [SONDE]
        self.listen = str(directory / "site.sock")
        self.where = listen or f"unix:{self.listen}"
        self.process = None

    def start(self):
        with open(self.directory / "out", "w") as out, open(self.directory / "err", "a") as err:
            self.process = self.cluster.popen(
                [*self.program, "--config", self.directory / "sonde.conf", "serve", "--site", "--listen", self.where],
                user="root", stdout=out, stderr=err,
            )  # fmt: skip
        wait_for(
            lambda: "Archives of all users" in (self.directory / "out").read_text() or self.process.poll() is not None,
            "the site's server",
            20,
        )
        assert self.process.poll() is None, (self.directory / "err").read_text()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(20) == 0, (self.directory / "err").read_text()
        assert not list(self.directory.glob("site.sock*[!y]")), "the sockets are taken away"

    def restart(self):
        self.stop()
        self.start()

    def token(self, user):
        done = self.cluster.run([SONDE, "url", "--site", "--token", "--socket", self.listen], user=user)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ask(self, user, *paths):
        """(status, body) of each path, as that user's program asks over the socket with their token."""
        return self.ask_as(user, self.token(user), *paths)

    def ask_as(self, user, token, *paths, at=None):
        """The same with that token, or none, and perhaps over another socket."""
        header = f"Bearer {token}" if token else ""
        done = self.cluster.run([PYTHON, "-c", CLIENT, at or self.listen, header, *paths], user=user)
        assert done.returncode == 0, done.stderr
        answers = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
        return answers if len(paths) > 1 else answers[0]

    def processes(self):
        """The pids of the server and of what it has started."""
        listed = subprocess.run(["ps", "-eo", "pid=,pgid="], capture_output=True, text=True, check=True)
        rows = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        return [pid for pid, group in rows if group == self.process.pid]

    def port(self):
        """Where it listens, if that is an address."""
        listening = subprocess.run(["ss", "-ltnp"], capture_output=True, text=True, check=True).stdout
        (port,) = {
            int(found)
            for pid in self.processes()
            for found in re.findall(rf"127\.0\.0\.1:(\d+)\s.*pid={pid},", listening)
        }
        return port

    def users_of_processes(self):
        owners = set()
        for pid in self.processes():
            with contextlib.suppress(OSError):  # it has just ended
                owners.add(pathlib.Path(f"/proc/{pid}").owner())
        return owners


@contextlib.contextmanager
def site(cluster, settings="", listen=None, preload=None):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sonde-site"))
    directory.chmod(0o755)
    (directory / "sonde.conf").write_text(
        f"site_archives = {cluster.archive('%u')}\n" + settings.replace("@DIR@", str(directory))
    )
    (directory / "secret").write_text(f"{SECRET}\n")
    (directory / "secret").chmod(0o600)
    served = Site(cluster, directory, listen, preload)
    try:
        served.start()
        yield served
        served.stop()
    finally:
        if served.process is not None:
            served.process.kill()
            served.process.wait(20)
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def steps(cluster):
    """A finished step of each user."""
    ids = {}
    for user in (USER, OTHER_USER):
        step = Step(cluster, ["srun", "-N1", *LEVEL, "sleep", "1"], user=user)
        assert step.wait()[0] == 0, step.stderr
        ids[user] = step.id
    return ids


@contextlib.contextmanager
def tunnel(directory, user, to):
    """`ssh -L`, as from that user's laptop: gives the laptop's end, to which everybody there may connect."""
    end, keys = directory / "laptop.sock", directory / "ssh"
    keys.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
    (keys / "sshd_config").write_text(
        f"HostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\nStrictModes no\nUsePAM yes\nPidFile none\n"
    )
    SSHD_DIRECTORY.mkdir(exist_ok=True)  # of sshd without rights; a machine that has booted has it
    command = ["ssh", "-N", "-F", "none", "-i", keys / "user", "-o", f"ProxyCommand={SSHD} -i -f {keys}/sshd_config"]
    for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "StreamLocalBindMask=0111",
                   "ExitOnForwardFailure=yes", "BatchMode=yes"):  # fmt: skip
        command += ["-o", option]
    with open(directory / "ssh.err", "w") as err:
        process = subprocess.Popen(
            [*command, "-L", f"{end}:{to}", f"{user}@login"], stdin=subprocess.DEVNULL, stdout=err, stderr=err
        )
    try:
        wait_for(lambda: end.exists() or process.poll() is not None, "the tunnel", 20)
        assert end.exists(), (directory / "ssh.err").read_text()
        yield str(end)
    finally:
        process.terminate()
        process.wait(20)


def served_get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.status, answer.read().decode()


def jobs(answer):
    status, body = answer
    assert status == 200, body
    return {job["jobid"] for job in json.loads(body)}


def test_everybody_sees_the_own_archive_and_nobody_elses(cluster, steps):
    with site(cluster) as served:
        for user, other in ((USER, OTHER_USER), (OTHER_USER, USER)):
            own, named, page = served.ask(user, "/job/list?limit=1000", f"/user/{user}/job/list?limit=1000", "/")
            assert steps[user] in jobs(own) and steps[other] not in jobs(own)
            assert jobs(own) == jobs(named)
            assert page[0] == 200 and "app.js" in page[1]
            status, who = served.ask(user, "/users")
            assert json.loads(who) == {"user": user, "admin": False, "users": [user]}
        assert {"root", "nobody", USER, OTHER_USER} <= served.users_of_processes()


@pytest.mark.skipif(SSHD is None, reason="needs sshd: scripts/deps")
def test_who_comes_by_a_users_tunnel_is_not_that_user(cluster, steps):
    """sshd's end of a tunnel is the user's process, whoever on the laptop connects to the other end."""
    with site(cluster) as served, tunnel(served.directory, USER, served.listen) as laptop:
        paths = ["/job/list?limit=1000", "/users", f"/user/{USER}/job/list?limit=1000", "/api/live"]
        for status, body in served.ask_as(OTHER_USER, "", *paths, at=laptop):
            assert status == 401 and steps[USER] not in body, body
            assert "sonde url --site" in body, "and says what to do"
        # The other one's own token is not that of the tunnel's user.
        for status, body in served.ask_as(OTHER_USER, served.token(OTHER_USER), *paths, at=laptop):
            assert status == 401 and steps[USER] not in body, body
        assert steps[USER] in jobs(served.ask_as(OTHER_USER, served.token(USER), paths[0], at=laptop))
        # Programs of the user on the host are told as well, and need it too.
        assert served.ask_as(USER, "", paths[0])[0] == 401


@pytest.mark.skipif(SSHD is None, reason="needs sshd: scripts/deps")
def test_a_browser_behind_a_tunnel_shows_the_token_of_the_address(cluster, steps):
    with site(cluster) as served, tunnel(served.directory, USER, served.listen) as laptop:

        def get(path, **headers):
            connection = http.client.HTTPConnection("localhost:4242")
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(laptop)
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            with contextlib.closing(connection):
                return answer.status, answer.headers, answer.read().decode()

        done = cluster.run([SONDE, "url", "--site", "--socket", served.listen])
        assert f"-L 4242:{served.listen} {USER}@" in done.stdout or f"-NL 4242:{served.listen}" in done.stdout, done.stdout
        token = re.search(r"http://localhost:4242/#token=(\S+)", done.stdout)[1]
        status, headers, page = get("/")
        assert status == 200 and "app.js" in page and steps[USER] not in page
        assert "Set-Cookie" not in headers
        assert steps[USER] in get("/job/list?limit=1000", Sonde_Token=token)[2]
        # What a browser sends by itself, and what another origin's page cannot have it send.
        password = {"Authorization": "Basic " + base64.b64encode(f":{token}".encode()).decode(), "User-Agent": "Mozilla/5.0"}
        assert get("/job/list?limit=1000", **password)[0] == 200
        assert get("/job/list?limit=1000", **password, Sec_Fetch_Site="cross-site")[0] == 403
        assert get("/job/list?limit=1000", **password, Origin="http://localhost:9999")[0] == 403
        assert get("/job/list?limit=1000", **password, Origin="http://localhost:4242")[0] == 200
        # What changes something is no GET of a browser's.
        assert get("/alarms/del?name=x", **password)[0] == 405


def test_a_token_lasts_until_the_host_is_booted_anew(cluster):
    """Programs keep it: a server that is started again takes it, and so does no other file than its own."""
    with site(cluster) as served:
        token = served.token(USER)
        key = served.directory / "site.sock.key"
        assert key.stat().st_mode & 0o777 == 0o600 and key.owner() == "root"
        assert served.token(OTHER_USER) != token
        served.restart()
        assert served.token(USER) == token
        assert served.ask_as(USER, token, "/job/list")[0] == 200
        served.stop()
        key.unlink()
        served.start()
        assert served.token(USER) != token
        assert served.ask_as(USER, token, "/job/list")[0] == 401


def test_no_route_tells_a_stranger_anything(cluster, steps):
    with site(cluster) as served:
        status, description = served.ask(USER, "/api/openapi.json")
        paths = sorted(json.loads(description)["paths"])
        assert len(paths) > 40
        job = steps[USER]
        paths += [f"/job/?job={job}", f"/api/v1/profile?job={job}", f"/metrics?job={job}"]
        answers = served.ask(OTHER_USER, *(f"/user/{USER}{path}" for path in paths))
        absent = served.ask(OTHER_USER, *(f"/user/no-such-user{path}" for path in paths))
        for path, found, none in zip(paths, answers, absent, strict=True):
            assert found[0] == none[0] == 404, path
            assert found[1].replace(USER, "NAME") == none[1].replace("no-such-user", "NAME"), path
        # Nor by asking for another's step in the own archive.
        status, body = served.ask(OTHER_USER, f"/api/v1/profile?job={job}")
        assert status == 404, body


def test_an_administrator_sees_all_and_it_is_in_the_log(cluster, steps):
    with site(cluster, f"site_admins = {OTHER_USER}\n") as served:
        (listed, who) = served.ask(OTHER_USER, f"/user/{USER}/job/list?limit=1000", "/users")
        assert steps[USER] in jobs(listed)
        who = json.loads(who[1])
        assert who["admin"] is True and {USER, OTHER_USER} <= set(who["users"])
        assert served.ask(USER, f"/user/{OTHER_USER}/job/list?limit=1000")[0] == 404
        err = served.directory / "err"
        wait_for(lambda: f"{OTHER_USER} looks at the archive of {USER}" in err.read_text(), "the log")
        # root of this machine needs not be named.
        assert steps[USER] in jobs(served.ask("root", f"/user/{USER}/job/list?limit=1000"))
        status, body = served.ask("root", "/job/list?limit=1000")
        assert status == 503 and "root's archive is not served" in body


def test_a_running_step_is_shown_to_its_user(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "120"])
    step.wait_nodes(2)
    with site(cluster) as served:
        status, body = served.ask(USER, f"/api/v1/profile?job={step.id}")
        assert status == 200 and len(json.loads(body)["job"]["nodes"]) == 2
        query = "/api/query?start=1h-ago&m=max:node_load1{host=*}{job=%s}" % step.id
        status, body = served.ask(USER, query)
        assert status == 200 and len(json.loads(body)) == 2, body
        status, body = served.ask(OTHER_USER, f"/api/v1/profile?job={step.id}")
        assert status == 404
    cluster.slurm("scancel", step.job)
    step.wait()


def test_a_proxy_is_believed_with_its_secret_only(cluster, steps):
    with site(cluster, BEHIND_A_PROXY, "127.0.0.1:0") as served:
        port = served.port()

        def get(path, **headers):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
            for name, value in headers.items():
                request.add_header(name.replace("_", "-"), value)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        secret = {"Sonde_Proxy_Secret": SECRET}
        assert steps[USER] in jobs(get("/job/list?limit=1000", X_Remote_User=USER, **secret))
        assert steps[USER] not in jobs(get("/job/list?limit=1000", X_Remote_User=OTHER_USER, **secret))
        assert get("/job/list?limit=1000", X_Remote_User=USER)[0] == 403
        assert get("/job/list?limit=1000", X_Remote_User=USER, Sonde_Proxy_Secret="a guess, as long as it")[0] == 403
        assert get("/job/list?limit=1000", **secret)[0] == 403
        assert get(f"/user/{USER}/job/list?limit=1000", X_Remote_User=OTHER_USER, **secret)[0] == 404


@contextlib.contextmanager
def reverse_proxy(port, user):
    """One that says to the site's server on that port who asks; gives its own port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{self.path}")
            for name in ("Host", "Accept"):
                request.add_header(name, self.headers.get(name, ""))
            request.add_header("X-Remote-User", user)
            request.add_header("Sonde-Proxy-Secret", SECRET)
            try:
                answer = urllib.request.urlopen(request, timeout=30)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                body = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(PROMETHEUS is None, reason="needs prometheus: scripts/deps")
def test_prometheus_finds_a_users_steps_at_the_site(cluster):
    step = Step(cluster, ["srun", "-N2", *LEVEL, "sleep", "120"])
    step.wait_nodes(2)
    with site(cluster, BEHIND_A_PROXY, "127.0.0.1:0") as served, reverse_proxy(served.port(), USER) as port:
        config = f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: sonde
    honor_labels: true
    http_sd_configs:
      - url: http://127.0.0.1:{port}/user/{USER}/api/sd
        refresh_interval: 1s
"""
        selector = f'node_memory_MemTotal_bytes{{job="{step.id}"}}'
        with prometheus(config) as ask:
            [sample] = wait_for(lambda: ask(selector), "a scraped sample", 60)
            targets = ask(f'up{{instance="127.0.0.1:{port}"}}')
            assert [target["value"][1] for target in targets] == ["1"]
        plot = f"/trace/plot?jobid={step.id}&filter=node_memory_MemTotal_bytes"
        status, body = served_get(port, f"/user/{USER}{plot}")
        assert status == 200 and float(sample["value"][1]) == json.loads(body)[-1][1]
    cluster.slurm("scancel", step.job)
    step.wait()


def test_an_archive_that_cannot_be_opened_is_named_and_the_others_are_served(cluster, steps):
    root = pathlib.Path(cluster.archive(OTHER_USER))
    with site(cluster) as served:
        mode = root.stat().st_mode
        root.chmod(0)
        try:
            status, body = served.ask(OTHER_USER, "/job/list?limit=1000")
            assert steps[USER] in jobs(served.ask(USER, "/job/list?limit=1000"))
        finally:
            root.chmod(mode)
        assert status == 503 and f"open the archive {root}: Permission denied" in body, body
        assert steps[OTHER_USER] in jobs(served.ask(OTHER_USER, "/job/list?limit=1000"))


def test_a_link_into_anothers_archive_leads_nowhere(cluster, steps):
    mine, yours = (pathlib.Path(cluster.archive(user)) for user in (OTHER_USER, USER))
    aside = mine.with_name("aside")
    mine.rename(aside)
    try:
        mine.symlink_to(yours)
        with site(cluster) as served:
            status, body = served.ask(OTHER_USER, "/job/list?limit=1000")
            assert status == 503 and steps[USER] not in body
    finally:
        mine.unlink()
        aside.rename(mine)


def memory_of(pid):
    """What a process may write to and read from, as root sees it."""
    pieces = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            begin, end = (int(part, 16) for part in place.split("-"))
            memory.seek(begin)
            with contextlib.suppress(OSError):  # such as [vvar]
                pieces.append(memory.read(end - begin))
    return b"".join(pieces)


def test_a_users_process_has_no_secret_and_its_own_limits(cluster, steps):
    with site(cluster, BEHIND_A_PROXY) as served:
        key = (served.directory / "site.sock.key").read_bytes().strip()
        assert len(key) >= 16
        assert served.ask(USER, "/job/list?limit=1")[0] == 200
        by_user = {pathlib.Path(f"/proc/{pid}").owner(): pid for pid in served.processes()}
        assert by_user.keys() == {"root", "nobody", USER}
        # Memory that was given back has new bytes at its beginning.
        ends = (SECRET[24:].encode(), key[16:])
        door = memory_of(by_user["nobody"])
        assert all(end in door for end in ends), "where they are needed"
        for user in ("root", USER):
            memory = memory_of(by_user[user])
            assert not [end for end in ends if end in memory], user
        of_process = pathlib.Path(f"/proc/{by_user[USER]}")
        assert (of_process / "oom_score_adj").read_text() == "500\n"
        assert re.search(r"^Max data size +2147483648 ", (of_process / "limits").read_text(), re.MULTILINE)


HANGS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
int access(const char* path, int mode) {
  while (strcmp(path, HANGS_AT) == 0) pause();
  return ((int (*)(const char*, int))dlsym(RTLD_NEXT, "access"))(path, mode);
}
"""


def test_a_process_that_hangs_is_killed_and_others_are_served(cluster, steps, tmp_path):
    """As at a file server that does not answer: what looks at the user's archive waits for ever."""
    (tmp_path / "hangs.c").write_text(HANGS)
    at = f'-DHANGS_AT="{cluster.archive(USER)}"'
    subprocess.run(["cc", "-shared", "-fPIC", at, "-o", tmp_path / "hangs.so", tmp_path / "hangs.c"], check=True)
    with site(cluster, preload=tmp_path / "hangs.so") as served:
        status, body = served.ask(USER, "/job/list?limit=1")
        assert status == 503 and "does not answer" in body, body
        assert served.ask(OTHER_USER, "/job/list?limit=1")[0] == 200
        wait_for(lambda: USER not in served.users_of_processes(), "its end", 30)


def test_a_user_has_two_processes_however_many_he_stops(cluster, steps):
    """Of one archive at a time; who is stopped does not end when another archive is opened."""
    with site(cluster, "site_open = 1\n") as served:

        def of_user():
            return {pid for pid in served.processes() if pathlib.Path(f"/proc/{pid}").owner() == USER}

        def is_served(user):
            """Where there are too many processes it may be asked again."""
            return wait_for(lambda: served.ask(user, "/job/list?limit=1")[0] == 200, f"an answer for {user}", 20)

        for _ in range(4):
            assert is_served(USER)
            for pid in of_user():
                os.kill(pid, signal.SIGSTOP)
            assert is_served(OTHER_USER)
            wait_for(lambda: len(of_user()) <= 2, "the end of those before")


def test_what_is_not_safe_does_not_start(cluster):
    def refused(settings, listen, user="root"):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
            conf.write(settings)
            conf.flush()
            pathlib.Path(conf.name).chmod(0o644)
            done = cluster.run([SONDE, "--config", conf.name, "serve", "--site", "--listen", listen], user=user)
        assert done.returncode != 0
        return done.stderr

    assert "started as root" in refused("", "unix:/tmp/x.sock", user=USER)
    assert "known only by a proxy's secret" in refused("", "127.0.0.1:0")
    assert "a proxy needs both" in refused("site_user_header = X-Remote-User\n", "unix:/tmp/x.sock")
    assert "there is no account nobody-here" in refused("site_account = nobody-here\n", "unix:/tmp/x.sock")
    assert "site_account: expected an account other than root" in (
        refused("site_account = root\n", "unix:/tmp/x.sock")
    )
    assert "site_open" in refused("site_open = 0\n", "unix:/tmp/x.sock")
