"""Strangers at the ports of a step: refused, at a bounded cost, while the step goes on.

Each siege is of all kinds of strangers at once, so that its end is waited for once.
"""

import contextlib
import socket
import threading
import time

import pytest
from daemons import SANITIZED
from step import LIMIT, wait_for
from strangers import (
    FABRIC_REQUEST,
    Crowd,
    datagram_request,
    entry_with_a_wrong_key,
    fabric_message,
    hello,
)

# As in daemon/link/trust/acceptor.h and daemon/link/silent_connections.h. How long a stranger is
# borne, 5 s, is not measured, for a busy machine takes longer: whoever is not shut out would stay
# for ever.
HEAD_PENDING = 1024
WEB_CONNECTIONS = 128  # web/server/server.h
NODE_PENDING = 600  # of 1,900 that come; 1,400 of them have been shut out
# The endpoint of datagrams' max_links and twice its max_pending (daemon/link/libfabric/fabric.h).
DATAGRAM_PEERS = 64 + 2 * 16
MEMORY = 8 << 20
LINES_A_SECOND = 3

# What a stranger says after it has connected to a socket of ours.
NONSENSE = {
    "a scanner": b"GET / HTTP/1.0\r\n\r\n",
    "zeros": bytes(4096),
    "a message of 4 GiB": b"\xff\xff\xff\xff\x01" + bytes(1000),
    "a message of 8 MiB before the proof": b"\x00\x00\x80\x00\x01" + bytes(1000),
    "a message of no length": b"\x00\x00\x00\x00",
    "a wrong key": hello() + entry_with_a_wrong_key(),
    "a frame before the proof": b"\x05\x00\x00\x00\x15abcd",
}
HALF_OPEN = {"nothing": b"", "a hello": hello(), "half a length": b"\x30\x00"}


class Cost:
    """What a daemon takes while strangers are there: descriptors, memory, lines of log."""

    def __init__(self, step, daemon, host):
        self._step, self._daemon, self._host = step, daemon, host
        self._descriptors = daemon.descriptors()
        self._memory = daemon.memory()
        self._lines = len(step.log_of(host))
        self._start = time.monotonic()
        self.worst = 0

    def check(self, descriptors):
        more = self._daemon.descriptors() - self._descriptors
        self.worst = max(self.worst, more)
        assert more <= descriptors
        # Sanitizers keep what is freed for a while.
        assert SANITIZED or self._daemon.memory() - self._memory <= MEMORY
        lines = len(self._step.log_of(self._host)) - self._lines
        assert lines <= LINES_A_SECOND * (time.monotonic() - self._start + 2)

    def over(self, more=4):
        """Whether there is no trace of strangers. `more`: descriptors that nodes took meanwhile."""
        return self._daemon.descriptors() <= self._descriptors + more


class Flood:
    """A thread that connects to an address again and again and goes, until it is closed."""

    def __init__(self, space, address, words=b"x"):
        self._space, self._address, self._words = space, address, words
        self._ending = False
        self.connected = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        with self._space.inside():  # this thread only
            while not self._ending:
                with contextlib.suppress(OSError), socket.socket() as one:
                    one.settimeout(1)
                    one.connect(self._address)
                    one.send(self._words)
                    self.connected += 1

    def close(self):
        self._ending = True
        self._thread.join()


@pytest.fixture
def besiege(request):
    """Makes crowds and floods that are gone at the test's end."""
    with contextlib.ExitStack() as stack:

        def make(kind, *arguments):
            made = kind(*arguments)
            stack.callback(made.close)
            return made

        yield make


def test_the_heads_port(make_step, besiege):
    step = make_step(nodes=4)
    step.start(3)
    cost = Cost(step, step.head, "head")
    head = (step.address, step.port)
    talkers = [besiege(Crowd, step.outside, head, 30, words) for words in NONSENSE.values()]
    waiting = [besiege(Crowd, step.outside, head, 600, words) for words in HALF_OPEN.values()]
    cost.check(HEAD_PENDING + 64)
    assert cost.worst > 200, "the siege is none"

    # A node comes all the same, and the others are not disturbed.
    late = step.nodes[3]
    late.start()
    late.application.wait_ready()
    step.wait_registered(step.nodes, 3)
    late.add(5)
    step.wait_total()
    step.wait_whole()

    assert all(crowd.refused() == 30 for crowd in talkers)
    start = time.monotonic()
    while not cost.over():
        for crowd in waiting:  # a byte at a time buys no time
            crowd.say(b"\x00")
        cost.check(HEAD_PENDING + 64)
        assert time.monotonic() - start < LIMIT
        time.sleep(0.2)
    assert all(crowd.refused() == 600 for crowd in waiting)
    step.finish()
    step.check_profile()
    step.check_stored_total()


# What carries links between nodes, and what a stranger says to get as far as our own first message.
CARRIERS = pytest.mark.parametrize(
    "provider, as_message",
    [("sockets", lambda words: words), ("tcp", lambda words: FABRIC_REQUEST + fabric_message(words))],
    ids=["sockets", "libfabric"],
)


@CARRIERS
def test_a_nodes_port(make_step, besiege, provider, as_message):
    step = make_step(nodes=7, conf=[f"provider = {provider}"])
    step.start(6)
    inner = step.at(0)
    assert step.children(0) == [2, 3]
    port = listening_port(inner)
    cost = Cost(step, inner.daemon, inner.host)
    here = (inner.address, port)
    talkers = [besiege(Crowd, step.outside, here, 30, words) for words in NONSENSE.values()]
    for words in (hello() + entry_with_a_wrong_key(), b"\xff\xff\xff\xff\x01", bytes(5)):
        talkers.append(besiege(Crowd, step.outside, here, 30, as_message(words)))
    oversized = FABRIC_REQUEST + fabric_message(bytes(100), 1 << 40)
    talkers.append(besiege(Crowd, step.outside, here, 30, oversized))
    silent = besiege(Crowd, step.outside, here, 1500)
    half = besiege(Crowd, step.outside, here, 100, as_message(hello()))
    wait_for(
        lambda: silent.refused() > 1400, lambda: f"the silent to go: {silent.refused()} went"
    )
    # libfabric closes what was shut down when it looks again.
    wait_for(
        lambda: cost.over(NODE_PENDING), lambda: f"{inner.daemon.descriptors()} descriptors to go"
    )
    cost.check(NODE_PENDING)

    # Its children stay, and whoever wants to be one comes in.
    fault = step.now()
    step.wait_whole()
    step.check_whole_since(fault, 0)
    start = time.monotonic()
    while any(crowd.refused() < 30 for crowd in talkers) or half.refused() < 100:
        half.say(b"\x00")
        cost.check(NODE_PENDING)
        assert time.monotonic() - start < LIMIT
        time.sleep(0.2)
    assert [inner.address in step.links_up(step.at(i)) for i in (2, 3)] == [True, True]
    silent.close()  # libfabric does not free those that are open at its end
    step.finish()
    step.check_stored_total()


def test_a_nodes_port_of_datagrams(make_step, besiege):
    """The provider itself keeps whoever says what it begins with, for as long as he likes."""
    step = make_step(nodes=3, conf=["provider = tcp;ofi_rxm"])
    step.start_nodes()
    try:
        wait_for(step.built, "the tree")
    except AssertionError:  # polled, and with queues for thousands: nobody uses it for real
        pytest.skip("this machine is too busy for a tree over tcp;ofi_rxm")
    step.wait_whole()
    inner = step.at(0)
    here = (inner.address, listening_port(inner))
    cost = Cost(step, inner.daemon, inner.host)
    nonsense = [*NONSENSE.values(), FABRIC_REQUEST, FABRIC_REQUEST + fabric_message(hello())]
    talkers = [besiege(Crowd, step.outside, here, 30, words) for words in nonsense]
    silent = besiege(Crowd, step.outside, here, 300)
    greeters = besiege(Crowd, step.outside, here, 400, datagram_request)
    loud = besiege(Crowd, step.outside, here, 20, datagram_request)
    for words in (bytes(1000), b"\xff" * 200, hello(), b"ab"):
        loud.say(fabric_message(words))
    loud.say(fabric_message(bytes(100), 1 << 40))
    wait_for(
        lambda: silent.refused() == 300 and greeters.refused() > 400 - DATAGRAM_PEERS,
        lambda: f"the crowds to go: {silent.refused()} and {greeters.refused()} went",
    )
    wait_for(
        lambda: all(crowd.refused() == 30 for crowd in talkers),
        lambda: f"the talkers to go: {[crowd.refused() for crowd in talkers]} went",
    )
    # The provider closes what was shut down when it looks; of those who break off within a message
    # it keeps the descriptors.
    most = DATAGRAM_PEERS + len(loud.sockets) + 8
    wait_for(lambda: cost.over(most), lambda: f"{inner.daemon.descriptors()} descriptors to go")
    cost.check(most)

    step.wait_whole()
    assert inner.address in step.links_up(step.at(2))
    for one in (greeters, loud):
        one.close()
    wait_for(lambda: cost.over(len(loud.sockets) + 8), lambda: f"{cost.worst} descriptors")
    step.finish()
    step.check_profile()
    step.check_stored_total()


def listening_port(node):
    """Where its children are connected; it may listen elsewhere as well, should the head die."""
    established, listening = node.daemon.connections()
    (port,) = {local for local, _, _ in established} & listening
    return port


@CARRIERS
def test_a_child_comes_to_a_besieged_node(make_step, besiege, provider, as_message):
    # Nobody listens before there is a child: the third node is the first, the fourth finds the crowd.
    step = make_step(nodes=4, conf=[f"provider = {provider}"])
    step.start(3)
    parent = step.at(0)
    here = (parent.address, listening_port(parent))
    besiege(Crowd, step.outside, here, 100, as_message(hello()))
    besiege(Crowd, step.outside, here, 300)
    besiege(Flood, step.outside, here)
    last = step.nodes[3]
    last.start()
    last.application.wait_ready()
    step.wait_registered(step.nodes)
    wait_for(step.built, "the fourth node at its parent")
    step.wait_whole()


def depth_bomb(token):
    body = b"[" * 8192
    return (
        b"POST /api/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
    ) % (token.encode(), len(body), body)


@pytest.mark.parametrize(
    "words",
    [lambda _: b"", lambda _: b"GET / HTTP/1.1\r\n\r\n", depth_bomb],
    ids=["silent", "without_token", "depth_bombs"],
)
def test_the_web_port(make_step, besiege, words):
    step = make_step(nodes=2)
    step.start()
    words = words(step.token())
    cost = Cost(step, step.head, "head")
    web = (step.address, step.web_port)
    slow = besiege(Crowd, step.outside, web, 200, b"GET /api/v1/profile?")
    besiege(Flood, step.outside, web, words)
    failed = 0
    for _ in range(100):
        slow.say(b"x")
        try:
            step.profile()
        except OSError:
            failed += 1
        cost.check(WEB_CONNECTIONS + 16)
    assert failed == 0
    # The step has not noticed.
    step.wait_whole()
    step.finish()
    step.check_profile()
