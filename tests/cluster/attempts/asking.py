"""Requests of HTTP as another user makes them."""

import base64
import json
import re

from attempts.making import Refused, as_user

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


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def basic(token):
    return {"Authorization": "Basic " + base64.b64encode(f"user:{token}".encode()).decode()}


BROWSER = {"User-Agent": "Mozilla/5.0"}
