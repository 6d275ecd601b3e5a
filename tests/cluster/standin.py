#!/usr/bin/python3 -IS
"""Stands in for sonded where the plugin is tested by itself; speaks launcher/launch.h.

Writes what it sees, one JSON object a line, into RECORDS/ROLE.STEP.HOST.PID, where RECORDS is the
folder "records" beside this program. SONDE_STANDIN, which the plugin passes on like every SONDE_*
variable, says what it does:

  (unset)   records packets until end of file, sends a report if it is a head, ends
  die       ends before reading anything
  crash     kills itself after the launch message
  hang      reads no packet after the launch message and ends 30 s later
  slow      takes 0.5 s to finish
  linger    on a node, says that it has finished 0.5 s before it ends
  flood     as a head, sends more report than a pipe holds
"""

import json
import os
import resource
import signal
import socket
import struct
import sys
import time

LIFELINE, LISTEN = 3, 4
MODE = os.environ.get("SONDE_STANDIN", "")
# type, leader, config, config1, config2: page faults and context switches as a group, then one
# that no kernel gives to a task, and a hardware event that a virtual machine may lack.
EVENTS = [(1, 1, 2, 0, 0), (1, 0, 3, 0, 0), (2, 1, 1, 0, 0), (0, 1, 1, 0, 0)]


def read_status():
    with open("/proc/self/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def myself():
    status = read_status()
    fds = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            fds[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:  # the one listdir used
            continue
    with open("/proc/self/oom_score_adj", encoding="ascii") as file:
        oom = int(file.read())
    return {
        "pid": os.getpid(), "sid": os.getsid(0), "cwd": os.getcwd(), "argv": sys.argv,
        "env": dict(os.environ), "fds": fds, "oom": oom, "uids": status["Uid"].split(),
        "gids": status["Gid"].split(), "groups": status["Groups"].split(),
        "blocked": status["SigBlk"], "ignored": status["SigIgn"], "caps": status["CapPrm"],
        "umask": status["Umask"], "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "cpus": sorted(os.sched_getaffinity(0)), "data": resource.getrlimit(resource.RLIMIT_DATA)[0],
    }  # fmt: skip


class Recorder:
    def __init__(self, launch):
        here = os.path.dirname(os.path.realpath(sys.argv[0]))
        name = f"{launch['role']}.{launch['job']}.{launch['step']}.{launch['host']}.{os.getpid()}"
        self.file = open(f"{here}/records/{name}", "w", encoding="utf-8")
        self.write("launch", **launch)

    def write(self, kind, **fields):
        self.file.write(json.dumps({"kind": kind, "at": time.monotonic(), **fields}) + "\n")
        self.file.flush()


def parse(packet):
    return dict(line.split("=", 1) for line in packet[1:].decode().splitlines())


def counters(fds):
    """What read() of each descriptor gives: [number, enabled, running, value...]."""
    found = []
    for fd in fds:
        data = os.read(fd, 256)
        found.append(list(struct.unpack(f"={len(data) // 8}Q", data)))
    return found


def main():
    facts = myself()
    if MODE == "die":
        return
    lifeline = socket.socket(fileno=LIFELINE)
    launch = parse(lifeline.recv(32768))
    if launch["step"] in ("batch", "interactive") and launch["role"] != "solo":
        sys.exit(f"role {launch['role']}")
    recorder = Recorder(launch)
    recorder.write("self", **facts)
    if MODE == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "hang":
        time.sleep(30)
        return
    if int(launch["level"]) >= 3 and launch["role"] != "head":
        packed = b"".join(struct.pack("=IIQQQ", *event) for event in EVENTS)
        lifeline.send(b"E" + bytes([len(EVENTS)]) + packed + bytes([0]))
    perf = {}
    while True:
        packet, fds, _, _ = socket.recv_fds(lifeline, 32768, 24)
        if not packet:
            break
        kind = {84: "task", 86: "variables", 88: "exit"}[packet[0]]
        fields = parse(packet)
        if kind == "task":
            perf[fields["rank"]] = fds
            fields["comm"] = comm(fields["pid"])
        elif perf.get(fields.get("rank")):
            fields["counters"] = counters(perf[fields["rank"]])
        recorder.write(kind, fds=len(fds), **fields)
    recorder.write("finish")
    if MODE == "slow":
        time.sleep(0.5)
    if launch["role"] == "head":
        text = "x" * 30000 if MODE == "flood" else f"report of {launch['job']}.{launch['step']}\n"
        for _ in range(10 if MODE == "flood" else 1):
            lifeline.send(b"R" + text.encode())
    elif MODE == "linger":
        lifeline.close()
        time.sleep(0.5)
    recorder.write("end")


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


main()
