"""Attempts at the server of a site, and at the end of a tunnel that leads to it."""

import pathlib
import signal

from attempts.asking import BROWSER, answers, basic, bearer, request
from attempts.making import KILL, READ, Refused, TRACE, as_user, attempt
from conftest import OTHER_USER, USER
from test_site import SECRET


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
