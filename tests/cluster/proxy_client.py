"""A program for metric-proxy v2, in the place of one that is linked with its client library.

Connects as that library does, once, when it begins: at PROXY_PATH, else at the library's own path; if
there is no file it says "Not Connected" and counts nothing. What a counter has counted since it was
sent last is sent, and is zero then.

    proxy_client.py [STOP] WORD...

Each WORD is NAME+=AMOUNT, a counter, or NAME=VALUE, a gauge; {rank} in it is the rank. Sends these,
and ends. With a STOP, a path, it waits until that exists before it ends.
"""

import json
import os
import pathlib
import socket
import sys
import time


class Client:
    def __init__(self):
        path = os.environ.get("PROXY_PATH", f"/tmp/metric-proxy-{os.getuid()}.socket")
        self.socket = None
        self.described = set()
        if not os.path.exists(path):
            print("Not Connected", flush=True)
            return
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        job = {"jobid": os.environ.get("SLURM_JOBID", ""), "command": " ".join(sys.argv), "size": 2}
        places = {"nodelist": "", "partition": "", "cluster": "", "run_dir": os.getcwd()}
        self.send({"JobDesc": {**job, **places, "start_time": int(time.time() * 1000), "end_time": 0}})

    def send(self, message):
        if self.socket:
            self.socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\0")

    def describe(self, name, kind):
        if name not in self.described:
            self.described.add(name)
            self.send({"Desc": {"name": name, "doc": f"What {name} is", "ctype": kind}})

    def count(self, name, amount):
        self.describe(name, {"Counter": {"ts": 0, "value": 0.0}})
        kind = {"Counter": {"ts": int(time.time() * 1e6), "value": amount}}
        self.send({"Value": {"name": name, "value": kind}})

    def set(self, name, value):
        self.describe(name, {"Gauge": {"min": 0.0, "max": 0.0, "hits": 0.0, "total": 0.0}})
        kind = {"Gauge": {"min": value, "max": value, "hits": 1.0, "total": value}}
        self.send({"Value": {"name": name, "value": kind}})


def main(words):
    stop = pathlib.Path(words.pop(0)) if words and words[0].startswith("/") else None
    client = Client()
    client.count("has_started", 1.0)
    for word in words:
        word = word.replace("{rank}", os.environ.get("SLURM_PROCID", "0"))
        name, _, value = word.rpartition("=")
        if name.endswith("+"):
            client.count(name[:-1], float(value))
        else:
            client.set(name, float(value))
    if stop:
        print("sent", flush=True)
        while not stop.exists():
            time.sleep(0.02)
    client.count("has_finished", 1.0)


if __name__ == "__main__":
    main(sys.argv[1:])
