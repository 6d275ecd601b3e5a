"""An exporter for tests: serves OpenMetrics of known values on a free port of the loopback.

Run as a task: prints "port N", serves until "stop" exists in the directory that is its argument, and
prints what its counter had in the last answer it gave. It counts its scrapes; after the fifth the
gauge `fleeting` is served no more. With a second argument it has a page that says so at every other
path, as many exporters have. Started without arguments it is only a module.
"""

import http.server
import pathlib
import sys
import threading
import time

TEXT = """# TYPE scrapes counter
# HELP scrapes How often it was asked
scrapes_total {scrapes}
# TYPE queue gauge
queue{{lane="a"}} 3.5
queue{{lane="b",task="7"}} 4.5
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
wait_seconds_bucket{{le="0.1"}} {scrapes}
wait_seconds_bucket{{le="+Inf"}} {double}
wait_seconds_sum {double}.25
wait_seconds_count {double}
{fleeting}process_start_time_seconds {start}
# EOF
"""
START = time.time()


class Handler(http.server.BaseHTTPRequestHandler):
    scrapes = 0
    landing = False

    def do_GET(self):
        if self.path != "/metrics" and not Handler.landing:
            return self.send_error(404)
        if self.path != "/metrics":
            return self.answer(b"<html><a href='/metrics'>Metrics</a></html>", "text/html")
        Handler.scrapes += 1
        body = TEXT.format(
            scrapes=self.scrapes,
            double=2 * self.scrapes,
            start=START,
            fleeting="fleeting 1\n" if self.scrapes <= 5 else "",
        ).encode()
        self.answer(body, "application/openmetrics-text; version=1.0.0")

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    stop = pathlib.Path(sys.argv[1]) / "stop"
    Handler.landing = len(sys.argv) > 2
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("port", server.server_port, flush=True)
    while not stop.exists():
        time.sleep(0.02)
    server.shutdown()
    print("scrapes", Handler.scrapes, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
