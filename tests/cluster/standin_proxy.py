"""A stand-in for a metric-proxy, for where the real one cannot be built: serves its page and its job
`main`, in its JSON, on a free port of the loopback. Run as a task: prints "port N", and serves until
"stop" exists in the directory that is its argument. While "dead" exists there, it closes every
connection without an answer. Its counter counts the scrapes.
"""

import http.server
import json
import pathlib
import sys
import threading
import time


def counter(name, value):
    return {"name": name, "doc": f"Of {name}.", "ctype": {"Counter": {"ts": 1, "value": value}}}


class Handler(http.server.BaseHTTPRequestHandler):
    scrapes = 0
    directory = None

    def do_GET(self):
        if (self.directory / "dead").exists():
            self.close_connection = True
            return
        if self.path == "/is_admire_proxy.html":
            return self.answer("<html></html>", "text/html")
        if self.path != "/job?job=main":
            return self.send_error(404)
        Handler.scrapes += 1
        gauge = {"Gauge": {"min": 1.0, "max": 9.0, "hits": 4.0, "total": 10.0}}
        counters = [
            counter("scrapes_total", float(self.scrapes)),
            counter('calls{function="MPI_Send"}', 2.0 * self.scrapes),
            {"name": "load", "doc": "", "ctype": gauge},
        ]
        self.answer(json.dumps({"desc": {"jobid": "main"}, "counters": counters}), "application/json")

    def answer(self, text, kind):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    Handler.directory = pathlib.Path(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"port {server.server_address[1]}", flush=True)
    while not (Handler.directory / "stop").exists():
        time.sleep(0.02)


if __name__ == "__main__":
    main()
