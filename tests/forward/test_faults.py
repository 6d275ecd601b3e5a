"""Receivers that do not do as they should: a stand-in answers what the test says."""

import collections
import http.server
import socket
import ssl
import subprocess
import threading

import pytest
from conftest import wait_for

ROWS = 60


class StandIn:
    """Answers the n-th request with the n-th of `answers`, the last one for ever: (status, headers,
    body), or a function that is given the handler."""

    def __init__(self, *answers, context=None):
        self.answers = collections.deque(answers)
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((dict(self.headers), body))
                answer = outer.answers.popleft() if len(outer.answers) > 1 else outer.answers[0]
                if callable(answer):
                    return answer(self)
                status, headers, text = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.server.shutdown()
        self.server.server_close()


OK = (204, {}, b"")


def export(archive, stand_in, *words, path="/write?db=x"):
    return archive.export("1.0", "--to", f"http://{stand_in.host}{path}", *words)


def lines(stand_in):
    return b"".join(body for _, body in stand_in.requests).decode().splitlines()


@pytest.mark.parametrize("answer", [
    (500, {}, b"no"), (503, {"Retry-After": "1"}, b""), (429, {}, b"slow down")])
def test_what_cannot_be_taken_now_comes_again(archive, answer):
    archive.add("1", ROWS)
    with StandIn(answer, answer, OK) as stand_in:
        done = export(archive, stand_in)
    assert done.returncode == 0, done.stderr
    bodies = [body for _, body in stand_in.requests]
    assert len(bodies) == 3 and bodies[0] == bodies[1] == bodies[2]


def test_a_receiver_that_never_takes_anything_is_given_up_and_nothing_is_lost(archive):
    archive.add("1", ROWS)
    with StandIn((503, {}, b"full")) as stand_in:
        done = export(archive, stand_in, "--give-up-after", "2s")
        assert done.returncode == 1 and "HTTP status 503: full" in done.stderr
        assert 2 <= len(stand_in.requests) <= 6
        stand_in.answers[0] = OK
        stand_in.requests.clear()
        assert export(archive, stand_in).returncode == 0
    assert len(lines(stand_in)) == sum(map(len, archive.expected(ROWS, "job").values()))


def test_nobody_there_is_said(archive):
    archive.add("1", ROWS)
    done = archive.export("1.0", "--to", "http://127.0.0.1:1/api/v1/write", "--give-up-after", "1s")
    assert done.returncode == 1
    assert "Connection refused" in done.stderr or "onnect" in done.stderr


def test_an_answer_that_is_lost_is_no_sample_twice(archive):
    """The receiver takes a request and dies before it answers: Prometheus then says that the same
    is out of order, which it is since it has it."""
    archive.add("1", ROWS)
    def dies(handler):
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True
    refuses = (400, {}, b"out of order sample")
    with StandIn(dies, refuses, OK) as stand_in:
        done = export(archive, stand_in, path="/api/v1/write")
    assert done.returncode == 0 and "refused" not in done.stderr, done.stderr
    bodies = [body for _, body in stand_in.requests]
    assert bodies[0] == bodies[1]


def test_out_of_order_at_the_first_try_is_refused(archive):
    archive.add("1", ROWS)
    with StandIn((400, {}, b"out of order sample")) as stand_in:
        done = export(archive, stand_in, path="/api/v1/write")
    assert done.returncode == 1 and "refuses every sample" in done.stderr
    assert len(stand_in.requests) < 200
    assert "\na\n" not in "".join(archive.records().values())


def test_what_is_wrong_is_found_and_the_rest_is_sent(archive):
    """A receiver that refuses whole requests for one series."""
    archive.add("1", ROWS)
    taken = []
    def judge(handler):
        body = stand_in.requests[-1][1]
        bad = b"app_heat" in body
        if not bad:
            taken.append(body)
        handler.send_response(400 if bad else 204)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    with StandIn(judge) as stand_in:
        done = export(archive, stand_in)
    heat = sum(1 for t in range(1, ROWS + 1) if t % 7)
    assert done.returncode == 0 and f"refused {heat}: HTTP status 400" in done.stderr
    sent = b"".join(taken).decode().splitlines()
    assert len(sent) == len(set(sent)) == 2 * ROWS


@pytest.mark.parametrize("path, body", [
    ("/write?db=x", b'{"error":"partial write: points beyond retention policy dropped=5"}'),
    ("/api/put", b'{"errors":[],"failed":5,"success":3}')])
def test_partial_errors_are_counted(archive, path, body):
    archive.add("1", ROWS)
    with StandIn((400, {}, body), OK) as stand_in:
        done = export(archive, stand_in, path=path)
    assert done.returncode == 0 and "refused 5" in done.stderr
    assert len(stand_in.requests) == 1


def test_a_token_goes_in_the_header_and_nowhere_else(archive, tmp_path):
    archive.add("1", ROWS)
    token = tmp_path / "token"
    token.write_text("s3cret\nsecond line")
    token.chmod(0o600)
    with StandIn(OK) as stand_in:
        done = export(archive, stand_in, "--token-file", token, path="/api/v1/write")
        assert done.returncode == 0 and "s3cret" not in done.stderr
        before = len(stand_in.requests)
        assert {headers["Authorization"] for headers, _ in stand_in.requests} == {"Bearer s3cret"}
        token.chmod(0o644)
        done = export(archive, stand_in, "--token-file", token, "--again", path="/api/v1/write")
        assert done.returncode == 1 and "chmod" in done.stderr
        assert len(stand_in.requests) == before
    assert "s3cret" not in "".join(archive.records().values())


def test_a_token_that_is_not_accepted_is_said_at_once(archive):
    archive.add("1", ROWS)
    with StandIn((401, {}, b"who are you")) as stand_in:
        done = export(archive, stand_in)
    assert done.returncode == 1 and "HTTP status 401: who are you" in done.stderr
    assert len(stand_in.requests) == 1


def test_a_password_in_the_url_is_refused(archive):
    archive.add("1", ROWS)
    done = archive.export("1.0", "--to", "http://ada:secret@127.0.0.1:1/api/v1/write")
    assert done.returncode == 2 and "password_file" in done.stderr
    assert done.stderr.count("secret") <= 1


def test_certificates_are_verified(archive, tmp_path):
    archive.add("1", ROWS)
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with StandIn(OK, context=context) as stand_in:
        to = f"https://{stand_in.host}/api/v1/write"
        done = archive.export("1.0", "--to", to)
        assert done.returncode == 1 and "certificate" in done.stderr
        assert stand_in.requests == []
        done = archive.export("1.0", "--to", to, "--ca-file", cert)
        assert done.returncode == 0, done.stderr
        assert stand_in.requests


def test_memory_does_not_grow_with_what_waits(archive):
    """The archive is the queue: a receiver that takes nothing does not fill the memory."""
    archive.add("1", 20000)
    with StandIn((503, {}, b"")) as stand_in:
        child = subprocess.Popen(archive.command(
            "export", "1.0", "--to", f"http://{stand_in.host}/write?db=x", "--scope", "node",
            "--batch", 1000), stderr=subprocess.PIPE)
        try:
            wait_for(lambda: len(stand_in.requests) >= 3, "requests")
            status = open(f"/proc/{child.pid}/status").read()
            peak = int(status.split("VmHWM:")[1].split()[0])
        finally:
            child.kill()
            child.communicate()
    assert peak < 64 * 1024, f"{peak} KiB"


def test_two_at_a_time_do_not_send_the_same(archive):
    archive.add("1", ROWS)
    gate = threading.Event()
    def waits(handler):
        gate.wait(60)
        handler.send_response(204)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    with StandIn(waits) as stand_in:
        words = archive.command("export", "1.0", "--to", f"http://{stand_in.host}/write?db=x")
        first = subprocess.Popen(words, stderr=subprocess.PIPE)
        wait_for(lambda: stand_in.requests, "a request")
        second = subprocess.run(words, capture_output=True, text=True, timeout=60)
        gate.set()
        first.communicate(timeout=60)
    assert second.returncode == 1 and "another process sends it" in second.stderr
    assert first.returncode == 0 and len(stand_in.requests) == 1


def test_a_torn_record_is_read_and_a_wrong_one_is_named(archive):
    archive.add("1", ROWS)
    with StandIn(OK) as stand_in:
        assert export(archive, stand_in).returncode == 0
        folder = archive.directory / "forward"
        (record,) = [p for p in folder.iterdir() if p.suffix != ".lock"]
        assert record.stat().st_mode & 0o777 == 0o600
        record.write_text(record.read_text().replace("d\n", "m 17"))
        assert export(archive, stand_in).returncode == 0
        record.write_text("sonde forward 1\nwhat\n")
        done = export(archive, stand_in)
    assert done.returncode == 1 and "line 2 is wrong" in done.stderr
