"""Network namespaces for tests, joined by wires that do what a test tells them.

A Space is a network namespace with one interface, a TUN device, of address 10.0.0.x. What it sends is
read by wire.py, a process of the test's, and given to the space it is for, late, twice or not at all as
the rules say; so neither netem nor nftables is needed, and one direction can be treated alone. A
namespace has no name: it lives as long as this process and those inside it, so that none is left
behind however the test ends.

A thread is inside a space for the time of `with space.inside()`: sockets made and processes started
then belong to the space. Not thread-safe.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import struct
import subprocess
import sys

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LIBC = ctypes.CDLL(None, use_errno=True)
WIRE_MTU = 1500
HERE = pathlib.Path(__file__).resolve().parent


def missing():
    """Why there can be no spaces here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    try:
        with Space("10.0.0.1"):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no network namespace can be made: {error}"


def check(result, what):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def own_namespace():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Space:
    """A network namespace with one address. `wire` is the descriptor of its packets."""

    def __init__(self, address):
        self.address = address
        self.wire = self._namespace = -1
        before = own_namespace()
        try:
            check(LIBC.unshare(CLONE_NEWNET), "unshare a network namespace")
            self._namespace = own_namespace()
            self.wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            flags = struct.pack("16sH22x", b"wire0", IFF_TUN | IFF_NO_PI)
            fcntl.ioctl(self.wire, TUNSETIFF, flags)
            commands = f"link set lo up\naddr add {address}/24 dev wire0\n"
            commands += "link set wire0 txqueuelen 10000 up\n"
            subprocess.run(
                ["ip", "-batch", "-"], input=commands, text=True, capture_output=True, check=True
            )
        except BaseException:
            self.close()
            raise
        finally:
            check(LIBC.setns(before, CLONE_NEWNET), "return from a network namespace")
            os.close(before)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @contextlib.contextmanager
    def inside(self):
        before = own_namespace()
        try:
            check(LIBC.setns(self._namespace, CLONE_NEWNET), "enter a network namespace")
            yield
        finally:
            check(LIBC.setns(before, CLONE_NEWNET), "return from a network namespace")
            os.close(before)

    def is_net(self, link):
        """Whether a process is in here, by its /proc/PID/ns/net."""
        return link == f"net:[{os.fstat(self._namespace).st_ino}]"

    def reset_connections(self, address):
        """Those of processes in here with an address are broken, as by a firewall that forgot them."""
        with self.inside():
            subprocess.run(["ss", "-K", "-t", "dst", address], capture_output=True, check=True)

    def throttle(self, rate=None):
        """What leaves here goes at `rate` bytes a second at most, by the kernel's token bucket; None: as
        fast as it can. What would wait for longer than 50 ms is dropped, as in a switch."""
        words = ["del"] if rate is None else ["replace"]
        words += ["dev", "wire0", "root"]
        if rate is not None:
            burst = max(2 * WIRE_MTU, rate // 50)
            words += ["tbf", "rate", f"{8 * rate}bit", "burst", str(burst), "limit", str(burst + rate // 20)]
        with self.inside():
            return subprocess.run(["tc", "qdisc", *words], capture_output=True, text=True, check=False)

    def close(self):
        for fd in (self.wire, self._namespace):
            if fd >= 0:
                os.close(fd)
        self.wire = self._namespace = -1


class Wires:
    """The wires between spaces, all of them good at first."""

    def __init__(self, spaces):
        fds = {space.address: space.wire for space in spaces}
        self._process = subprocess.Popen(
            [sys.executable, HERE / "wire.py", json.dumps(fds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=list(fds.values()),
        )

    def rule(self, source, destination, *, drop=0.0, delay=0.0, jitter=0.0, twice=0.0):
        """What happens from now on to packets from one address to another, one way: the share that is
        dropped, how many seconds the others take and up to how many more, and the share that comes
        twice. With nothing given the wire is good again."""
        words = {"drop": drop, "delay": delay, "jitter": jitter, "twice": twice}
        self._tell([source, destination, words])

    def meddle(self, source, destination, **what):
        """A man in the middle: `flip`, the share of packets with data of which a bit is changed;
        `rewrite`, two hexadecimal texts, what is put in the place of what; `lead`, an address and a port
        where connections end that go from `source` to `destination`."""
        self._tell([source, destination, what])

    def look_for(self, marker):
        """In all that is carried from now on, as a text."""
        self._ask(marker)

    def seen(self):
        """How often it was seen."""
        return int(self._ask(""))

    def reset(self, seed=0):
        """All wires are good. `seed` decides from now on which packets are lost."""
        self._tell(seed)

    def _tell(self, words):
        assert self._ask(words) == "done\n", "wire.py has ended"

    def _ask(self, words):
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self):
        self._process.stdin.close()
        self._process.wait(5)
        self._process.stdout.close()


class Network:
    """The spaces of one step after the other, for making them takes longer than some tests: of the
    head, of a stranger and of nodes."""

    NODES = 20

    def __init__(self):
        addresses = ["10.0.0.1", "10.0.0.250", *(f"10.0.0.{2 + i}" for i in range(self.NODES))]
        self._spaces = [Space(address) for address in addresses]
        self.head, self.outside, *self.nodes = self._spaces
        self.wires = Wires(self._spaces)

    def close(self):
        self.wires.close()
        for space in self._spaces:
            space.close()
