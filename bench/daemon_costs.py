"""What daemons cost, from /proc: CPU by thread, private memory, descriptors, bytes over TCP.

A daemon here is anything with `pid` and `proc`, its directory in /proc.
"""

import statistics
import subprocess


def cpu_by_thread(daemon):
    """Seconds, from schedstat: nanoseconds, where stat counts in ticks of 10 ms."""
    return {
        task.name: int((task / "schedstat").read_text().split()[0]) / 1e9
        for task in (daemon.proc / "task").iterdir()
    }


def spent(before, after):
    """By threads that still live: what a thread that ended spent is not told."""
    return sum(now - before.get(task, 0) for task, now in after.items())


def switches(daemon):
    status = (daemon.proc / "status").read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)


def private_bytes(daemon):
    rollup = (daemon.proc / "smaps_rollup").read_text()
    lines = [line for line in rollup.splitlines() if line.startswith("Private_")]
    return 1024 * sum(int(line.split()[1]) for line in lines)


def descriptors(daemon):
    return len(list((daemon.proc / "fd").iterdir()))


def listening_ports(daemon):
    command = ["ss", "-tlnpH"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    mine = [line for line in lines if f"pid={daemon.pid}," in line]
    return [int(line.split()[3].rpartition(":")[2]) for line in mine]


def received_bytes(ports):
    """Over the connections that were accepted on these ports, so far."""
    wanted = " or ".join(f"sport = :{port}" for port in ports)
    command = ["ss", "-tinH", "state", "established", f"( {wanted} )"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    words = [word for word in text.split() if word.startswith("bytes_received:")]
    return sum(int(word.partition(":")[2]) for word in words)


def mean(values):
    return statistics.mean(values) if values else 0.0


def median(values):
    return statistics.median(values) if values else 0.0
