"""Runs on a node that is a guest of its own, and does there what the main guest asks.

A connection brings one line of JSON and takes another one back. The network is that of the guests alone.
Only the standard library is here.
"""

import json
import pathlib
import socketserver
import subprocess

from guest_cluster import Cluster, left_in_steps, ours, tasks

PORT = 7000
# Where the cluster's directory is, on all guests.
DIRECTORY = "/tmp/cluster"


def shell(script, timeout):
    """As root, with what the node has, whether there is a cluster or not."""
    done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)  # fmt: skip
    return done.returncode, done.stdout


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        question = json.loads(self.rfile.readline())
        if "shell" in question:
            answer = shell(question["shell"], question["timeout"])
        elif "run" in question:
            answer = Cluster(DIRECTORY).run(question["run"], question["user"], question["timeout"])
        else:
            answer = {"left_in_steps": left_in_steps(), "ours": ours(), "tasks": tasks()}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def serve():
    # What a scenario does to the node's memory shall not end who looks at it, and munged, its child.
    pathlib.Path("/proc/self/oom_score_adj").write_text("-1000")
    Server(("", PORT), Handler).serve_forever()
