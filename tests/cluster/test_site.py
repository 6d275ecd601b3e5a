"""`sonde serve --site`: users of one machine, each with an archive, and what each is shown."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest
from conftest import OTHER_USER, SONDE, USER, wait_for
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

    def users_of_processes(self):
        return {pathlib.Path(f"/proc/{pid}").owner() for pid in self.processes()}


@contextlib.contextmanager
def site(cluster, settings="", listen=None):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sonde-site"))
    directory.chmod(0o755)
    (directory / "sonde.conf").write_text(
        f"site_archives = {cluster.archive('%u')}\n" + settings.replace("@DIR@", str(directory))
    )
    (directory / "secret").write_text("a secret of the proxy's\n")
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


def jobs(answer):
    status, body = answer
    assert status == 200, body
    return {job["jobid"] for job in json.loads(body)}


def test_everybody_sees_the_own_archive_and_nobody_elses(cluster, steps):
    with site(cluster) as served:
        for user, other in ((USER, OTHER_USER), (OTHER_USER, USER)):
            own, named, page = served.ask(user, "/job/list", f"/user/{user}/job/list", "/")
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
        (listed, who) = served.ask(OTHER_USER, f"/user/{USER}/job/list", "/users")
        assert steps[USER] in jobs(listed)
        who = json.loads(who[1])
        assert who["admin"] is True and {USER, OTHER_USER} <= set(who["users"])
        assert served.ask(USER, f"/user/{OTHER_USER}/job/list")[0] == 404
        err = served.directory / "err"
        wait_for(lambda: f"{OTHER_USER} looks at the archive of {USER}" in err.read_text(), "the log")
        # root of this machine needs not be named.
        assert steps[USER] in jobs(served.ask("root", f"/user/{USER}/job/list"))
        status, body = served.ask("root", "/job/list")
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
    settings = "site_user_header = X-Remote-User\nsite_proxy_secret = @DIR@/secret\n"
    with site(cluster, settings, "127.0.0.1:0") as served:
        (port,) = {
            int(found)
            for pid in served.processes()
            for found in re.findall(
                rf"127\.0\.0\.1:(\d+)\s.*pid={pid},",
                subprocess.run(["ss", "-ltnp"], capture_output=True, text=True, check=True).stdout,
            )
        }

        def get(path, **headers):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
            for name, value in headers.items():
                request.add_header(name.replace("_", "-"), value)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        secret = {"Sonde_Proxy_Secret": "a secret of the proxy's"}
        assert steps[USER] in jobs(get("/job/list", X_Remote_User=USER, **secret))
        assert steps[USER] not in jobs(get("/job/list", X_Remote_User=OTHER_USER, **secret))
        assert get("/job/list", X_Remote_User=USER)[0] == 403
        assert get("/job/list", X_Remote_User=USER, Sonde_Proxy_Secret="a guess, as long as it")[0] == 403
        assert get("/job/list", **secret)[0] == 403
        assert get(f"/user/{USER}/job/list", X_Remote_User=OTHER_USER, **secret)[0] == 404


def test_an_archive_that_cannot_be_opened_is_named_and_the_others_are_served(cluster, steps):
    root = pathlib.Path(cluster.archive(OTHER_USER))
    with site(cluster) as served:
        mode = root.stat().st_mode
        root.chmod(0)
        try:
            status, body = served.ask(OTHER_USER, "/job/list")
            assert steps[USER] in jobs(served.ask(USER, "/job/list"))
        finally:
            root.chmod(mode)
        assert status == 503 and f"open the archive {root}: Permission denied" in body, body
        assert steps[OTHER_USER] in jobs(served.ask(OTHER_USER, "/job/list"))


def test_a_link_into_anothers_archive_leads_nowhere(cluster, steps):
    mine, yours = (pathlib.Path(cluster.archive(user)) for user in (OTHER_USER, USER))
    aside = mine.with_name("aside")
    mine.rename(aside)
    try:
        mine.symlink_to(yours)
        with site(cluster) as served:
            status, body = served.ask(OTHER_USER, "/job/list")
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
