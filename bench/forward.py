#!/usr/bin/env python3
# Sending an archived profile on: the CPU time of `sonde export` for a sample, and its bytes, by protocol.
"""A receiver that only counts takes 340,000 samples of two nodes over the loopback."""

import http.server
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ["SONDE_BUILD"])
ROWS = 60000


class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def measure(archive, to):
    """Samples, bytes, seconds of CPU, seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(
        [BUILD / "cli" / "sonde", "--archive", archive, "--config", "/dev/null", "export", "1.0",
         "--scope", "node", "--to", to], capture_output=True, text=True, check=True)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    samples, size = re.search(r"(\d+) samples in \d+ requests, (\d+) bytes", done.stderr).groups()
    return int(samples), int(size), cpu, wall


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_address[1]}"
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([BUILD / "tests" / "forward" / "make_archive", directory, "1",
                        str(int(time.time()) - ROWS - 10), str(ROWS)], check=True)
        for protocol in ("prometheus", "influx", "opentsdb"):
            samples, size, cpu, wall = measure(directory, f"{protocol}+http://{address}/x")
            print(f"figure forward.{protocol}_cpu {1e9 * cpu / samples:.0f} ns/sample")
            print(f"figure forward.{protocol}_rate {samples / wall:.0f} samples/s")
            print(f"figure forward.{protocol}_bytes {size / samples:.1f} B/sample")
    server.shutdown()


main()
