"""`sonde serve --site`: users of one machine, each with an archive, and what each is shown."""

import contextlib
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

import pytest
from conftest import OTHER_USER, SONDE, USER, wait_for
from prometheus import PROMETHEUS, prometheus
from telemetry import LEVEL, Step

PYTHON = shutil.which("python3", path="/usr/bin:/bin")
# GET over a Unix socket; prints the status and the body.
CLIENT = """
import http.client, json, socket, sys
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.settimeout(30)
connection.sock.connect(sys.argv[1])
for path in sys.argv[2:]:
    connection.request("GET", path)
    answer = connection.getresponse()
    print(json.dumps([answer.status, answer.read().decode()]))
    connection.close()
    if path != sys.argv[-1]:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(sys.argv[1])
"""


SECRET = "a secret of the proxy's"
BEHIND_A_PROXY = "site_user_header = X-Remote-User\nsite_proxy_secret = @DIR@/secret\n"


class Site:
    def __init__(self, cluster, directory, process, listen):
        self.cluster, self.directory, self.process, self.listen = cluster, directory, process, listen

    def ask(self, user, *paths):
        """(status, body) of each path, as that user asks over the socket."""
        done = self.cluster.run([PYTHON, "-c", CLIENT, self.listen, *paths], user=user)
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
        return {pathlib.Path(f"/proc/{pid}").owner() for pid in self.processes()}


@contextlib.contextmanager
def site(cluster, settings="", listen=None):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sonde-site"))
    directory.chmod(0o755)
    (directory / "sonde.conf").write_text(
        f"site_archives = {cluster.archive('%u')}\n" + settings.replace("@DIR@", str(directory))
    )
    (directory / "secret").write_text(f"{SECRET}\n")
    (directory / "secret").chmod(0o600)
    path = str(directory / "site.sock")
    with open(directory / "out", "w") as out, open(directory / "err", "w") as err:
        process = cluster.popen(
            [SONDE, "--config", directory / "sonde.conf", "serve", "--site", "--listen", listen or f"unix:{path}"],
            user="root", stdout=out, stderr=err,
        )  # fmt: skip
    try:
        wait_for(
            lambda: "Archives of all users" in (directory / "out").read_text() or process.poll() is not None,
            "the site's server",
            20,
        )
        assert process.poll() is None, (directory / "err").read_text()
        yield Site(cluster, directory, process, path)
        process.terminate()
        assert process.wait(20) == 0, (directory / "err").read_text()
        assert not pathlib.Path(path).exists(), "the socket is taken away"
    finally:
        process.kill()
        process.wait(20)
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
