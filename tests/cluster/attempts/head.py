"""Attempts at the head of a step: at its meeting place, and over HTTP."""

import base64
import hashlib
import hmac
import json
import os
import random
import re
import socket
import struct
import sys

from attempts.asking import BROWSER, answers, asked, basic, bearer, request
from attempts.making import Refused, as_user, attempt
from conftest import ROOT, USER
from telemetry import notes_of
from test_site import SECRET

sys.path.append(str(ROOT / "tests" / "net"))
import strangers  # noqa: E402  (of tests/net/, for which the path had to be set)

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
    # But for the files of the page, which are for everybody.
    paths = [path for path, found in described.items() if found.get("get", {}).get("security") != []]
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
