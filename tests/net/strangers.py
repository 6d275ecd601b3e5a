"""Those who have no business with a step: they connect, and say nothing, nonsense, or half of it.

A Crowd is a number of connections from one space that all do the same. Its owner closes it.
"""

import errno
import os
import resource
import selectors
import socket
import struct

HELLO, ENTRY = 1, 3
VERSION = 2  # of the protocol: strangers speak it well
# The request that libfabric's provider tcp makes a connection with, and its header of a message.
FABRIC_REQUEST = bytes([3]) + bytes(23) + bytes([1]) + bytes(7)


# With what its provider ofi_rxm says in it, as one peer with so many connections would.
def datagram_request(number):
    request = bytes([3, 0, 0, 24]) + FABRIC_REQUEST[4:]
    versions_and_port = struct.pack(">4BHBx", 1, 2, 4, 3, 1024 + number, 2)
    return request + versions_and_port + struct.pack("<IIQ", 16384, 16, number)


def fabric_message(data, claimed=None):
    size = 16 + len(data) if claimed is None else claimed
    return bytes.fromhex("0300000000001000") + struct.pack("<Q", size) + data


def message(kind, payload):
    return struct.pack("<IB", 1 + len(payload), kind) + payload


def text(data):
    assert len(data) < 128
    return bytes([len(data)]) + data


def hello():
    return message(HELLO, bytes([VERSION]) + text(os.urandom(32)))


def entry_with_a_wrong_key():
    return message(ENTRY, text(os.urandom(80)))


def allow_descriptors():
    """As many connections as the system lets a process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Crowd:
    """`number` connections from a space to an address, each of which sends `words` first, or what
    `words` makes for its number."""

    def __init__(self, space, address, number, words=b""):
        allow_descriptors()
        self.sockets = []
        with space.inside():
            for _ in range(number):
                one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                one.setblocking(False)
                self.sockets.append(one)
                try:
                    one.connect(address)
                except BlockingIOError:
                    pass
        self._wait_connected()
        self.say(words)

    def _wait_connected(self):
        """Refused ones are connected as far as this is concerned."""
        with selectors.DefaultSelector() as selector:
            for one in self.sockets:
                selector.register(one, selectors.EVENT_WRITE)
            while selector.get_map() and (ready := selector.select(2)):
                for key, _ in ready:
                    selector.unregister(key.fileobj)

    def say(self, words):
        for number, one in enumerate(self.sockets):
            try:
                one.send(words(number) if callable(words) else words)
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.EAGAIN, errno.ENOTCONN):
                    raise

    def refused(self):
        """How many of them the other side has closed."""
        return sum(map(closed, self.sockets))

    def close(self):
        for one in self.sockets:
            one.close()


def closed(connection):
    """Reads what there is."""
    try:
        while connection.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
