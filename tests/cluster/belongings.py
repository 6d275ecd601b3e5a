"""What on this host belongs to one private cluster, where others run beside it: those of another
test run, of another checkout, of a container that shares the host's processes.

A process is a cluster's if it began with the cluster's slurm.conf or directory in its environment, as
all have that `scripts/cluster run` and Slurm start, or if it descends from the cluster's supervisor,
which adopts what its daemons leave behind. A socket is that of who has it open. Numbers of jobs prove
nothing: other clusters can have the same.
"""

import contextlib
import ipaddress
import os
import pathlib


def read(pid, name):
    """A file of /proc/PID; nothing if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent(pid):
    """0 if there is none any more."""
    # The second field is a name in parentheses, which may hold anything.
    fields = read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def descends(pid, ancestor):
    while pid > 1 and pid != ancestor:
        pid = parent(pid)
    return pid == ancestor


def supervisor(directory):
    """Its pid; 0 if the cluster has ended."""
    try:
        lines = (directory / "pids").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("supervisor ")), 0)


def belongs(pid, directory):
    """Whether a process is of the cluster in this directory."""
    entries = read(pid, "environ").split(b"\0")
    own = (f"SLURM_CONF={directory}/etc/slurm.conf", f"SONDE_CLUSTER_DIR={directory}")
    if any(entry.encode() in entries for entry in own):
        return True
    top = supervisor(directory)
    return top > 0 and descends(pid, top)


def running(programs, directory):
    """(pid, command line) of the cluster's living processes that run one of these programs."""
    found = []
    for pid in all_pids():
        try:
            program = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        except OSError:
            continue
        if program in programs and belongs(pid, directory):
            command = read(pid, "cmdline").replace(b"\0", b" ").decode().strip()
            # Without one it has ended meanwhile.
            if command:
                found.append((pid, command))
    return found


def open_files(pid):
    """What a process's descriptors are, but for those that it closes meanwhile."""
    links = []
    with contextlib.suppress(OSError):  # it has ended
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return links


def open_sockets(pid):
    """The inodes of a process's sockets."""
    links = open_files(pid)
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


def listening(pid):
    """(address, port) of the TCP sockets at which a process listens, sorted; none if it has ended."""
    held = open_sockets(pid)
    found = set()
    for table in ("net/tcp", "net/tcp6"):
        for line in read(pid, table).decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in held:
                address, _, port = fields[1].rpartition(":")
                # The kernel writes words of four bytes, in the machine's order.
                words = [bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8)]
                found.add((str(ipaddress.ip_address(b"".join(words))), int(port, 16)))
    return sorted(found)


def unix_sockets(begin):
    """The names, by inode, of the Unix sockets whose names begin so."""
    names = {}
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[7].startswith(begin):
            names[fields[6]] = fields[7]
    return names


def is_of_others(path, directory):
    """Whether only processes that are not of this cluster have the Unix socket at this path open."""
    inodes = unix_sockets(str(path)).keys()
    holders = [pid for pid in all_pids() if open_sockets(pid) & inodes] if inodes else []
    return bool(holders) and not any(belongs(pid, directory) for pid in holders)


def abstract_sockets(directory):
    """Names, with their @, of the abstract Unix sockets that begin with sonde and that a process of
    this cluster has open."""
    names = unix_sockets("@sonde")
    if not names:
        return []
    found = set()
    for pid in all_pids():
        held = open_sockets(pid) & names.keys()
        if held and belongs(pid, directory):
            found.update(names[inode] for inode in held)
    return sorted(found)
