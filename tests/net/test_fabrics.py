"""Whole steps over every software provider of libfabric's that crosses a network, while the network
loses packets, delays them, changes their order and repeats them. The values of the rows are right to
the last sample, each node counts once, and the step ends.
"""

import contextlib
import ctypes
import os
import pathlib
import re

import pytest
from daemons import LISTEN
from step import wait_for

# The kinds of endpoints: connections; datagrams made of TCP; datagrams made of UDP, where the
# provider itself makes good for what the network does.
PROVIDERS = ["tcp", "tcp;ofi_rxm", "udp;ofi_rxd"]
NETWORKS = {
    "lossy": {"drop": 0.03},
    "late_and_out_of_order": {"delay": 0.02, "jitter": 0.03},
    "repeated": {"twice": 0.2},
    "all_of_it": {"drop": 0.01, "delay": 0.01, "jitter": 0.02, "twice": 0.05},
}


@pytest.fixture(params=PROVIDERS)
def provider(request):
    try:
        ctypes.CDLL("libfabric.so.1")
    except OSError as error:
        pytest.skip(str(error))
    return request.param


def start(step, provider):
    """Until the data of every node goes over the provider, which the kernel's list of connections does
    not tell."""
    step.start_nodes()

    def over():
        texts = ["\n".join(node.log()) for node in step.alive()]
        return all(f"over {provider}" in text.rsplit("data goes to", 1)[-1] for text in texts)

    wait_for(over, f"links over {provider}")
    step.wait_whole()


def sockets(pid, above):
    """The sockets and pipes that a process has at descriptors above a number."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if int(path.name) > above and re.match(r"(socket|pipe):", os.readlink(path)):
                found.add(os.readlink(path))
    return found


@pytest.mark.parametrize("network_is", NETWORKS)
def test_a_step_over_a_bad_network(make_step, provider, network_is):
    step = make_step(nodes=6, seed=3, conf=[f"provider = {provider}"])
    start(step, provider)
    for node in step.nodes:
        node.add(10 + node.id)
    step.wait_total()
    for index in range(6):
        node, parent = step.at(index), step.parent(index)
        above = step if parent is None else step.at(parent)
        step.wires.rule(node.address, above.address, **NETWORKS[network_is])
        step.wires.rule(above.address, node.address, **NETWORKS[network_is])
    fault = step.now()
    for _ in range(5):
        for node in step.nodes:
            node.add(1)
        step.wait_total()
    rows = step.rows()
    assert all(count <= 6 for _, count, _ in rows)
    assert max(count for at, count, _ in rows if at > fault) == 6
    assert rows[-1][2] == step.injected
    step.wires.reset()
    step.wait_whole()
    for node in step.nodes:
        node.add(1)
    step.wait_total()
    step.finish()
    job = step.check_profile(rows)
    assert len(job["nodes"]) == 6
    step.check_stored_total()
    step.check_no_gap(step.stored_rows(), late=step.late_since(fault))


def test_an_acting_head_has_none_of_its_daemons_descriptors(make_step, provider):
    """Those of the provider are not closed on exec."""
    step = make_step(nodes=4, conf=[f"provider = {provider}"])
    start(step, provider)
    step.wait_successors()
    step.wait_stored()
    before = {node.host: sockets(node.daemon.pid, 2) for node in step.nodes}
    assert all(before.values())
    step.kill_head()
    acting, head = step.wait_acting()
    # Its own are the lifeline and the socket at which nodes meet it.
    assert not sockets(head, LISTEN) & before[acting.host]
    step.finish()
