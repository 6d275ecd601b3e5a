"""Where Sonde listens: a srun that is not watched nowhere, the daemons of a step on ports of the range
alone, at the addresses that Slurm uses."""

import contextlib
import ipaddress
import os
import random
import signal
import socket

import pytest
from belongings import all_pids, descends, listening
from conftest import USER, wait_for
from telemetry import LEVEL, Step, daemon, job_of, ours, report_of

# Of the cluster's own and of outgoing connections none has a port here (scripts/cluster, PORTS).
PORTS = range(31300, 31400)
RANGE = f"port_range = {PORTS[0]}-{PORTS[-1]}\n"
TREE = "fanout = 2\nfabric_after = 50ms\n"


@pytest.fixture(autouse=True)
def nothing_stays(request):
    yield
    if "cluster" in request.fixturenames:
        running = request.getfixturevalue("cluster")
        running.cancel_all()
        running.wait_clean()


def take_port():
    """A socket bound to a port of the range that nobody has: not another run of these tests on this
    machine, and not a connection of an earlier test, whose port the kernel keeps for a minute."""
    for port in random.sample(PORTS, len(PORTS)):
        taken = socket.socket()
        with contextlib.suppress(OSError):
            taken.bind(("", port))
            return taken
        taken.close()
    pytest.fail(f"no free port from {PORTS[0]} to {PORTS[-1]}")


def srun_processes(step):
    """srun and the process of its own that it starts."""
    return [pid for pid in all_pids() if descends(pid, step.process.pid)]


def ours_of(pids):
    """The ports of the range at which these processes listen. Slurm's own are not in it."""
    return [port for pid in pids for _, port in listening(pid) if port in PORTS]


def listeners(step):
    """(address, port) of the step's head and of its nodes' daemons."""
    return (
        [place for pid in daemon("head", step.id) for place in listening(pid)],
        [place for pid in daemon("node", step.id) for place in listening(pid)],
    )


def wait_listeners(step, heads, nodes):
    """Waits until so many sockets listen, and gives them."""
    seen = []

    def there():
        seen[:] = listeners(step)
        return len(seen[0]) >= heads and len(seen[1]) >= nodes

    wait_for(there, lambda: f"{heads} and {nodes} listening sockets instead of {seen}", 20)
    return seen


def wait_head_listens(step):
    """At one socket. The kernel may still have to lay out its command line, and the head to take what srun's plugin
    has handed to it."""
    wait_for(
        lambda: [len(ours_of([head])) for head in daemon("head", step.id)] == [1],
        lambda: f"one socket instead of {[ours_of([head]) for head in daemon('head', step.id)]}",
    )


# --- srun


@pytest.mark.parametrize("options", [LEVEL, ()], ids=["watched", "level_0"])
def test_a_srun_in_the_queue_listens_nowhere(cluster, options):
    cluster.conf(RANGE)
    step = Step(cluster, ["srun", "-N1", "--begin=now+1hour", *options, "true"])
    wait_for(lambda: "queued and waiting" in step.stderr, "the queue")
    assert ours_of(srun_processes(step)) == []
    assert cluster.daemons() == []


def test_a_srun_at_level_0_listens_nowhere(cluster):
    cluster.conf(RANGE)
    step = Step(cluster, ["srun", "-N1", "bash", "-c", "echo runs; sleep 60"])
    step.wait_output("runs")
    assert ours_of(srun_processes(step)) == []


def test_the_socket_of_a_watched_srun_is_its_heads_alone(cluster):
    """So nodes are refused there when the head is dead, and look for another."""
    cluster.conf(RANGE + "http = off\n")
    step = Step(cluster, ["srun", "-N1", *LEVEL, "bash", "-c", "echo runs; sleep 60"])
    step.wait_output("runs")
    assert ours_of(srun_processes(step)) == []
    wait_head_listens(step)


def test_without_a_free_port_nothing_is_started(cluster):
    with take_port() as taken:
        port = taken.getsockname()[1]
        cluster.conf(f"port_range = {port}-{port}\n")
        taken.listen()
        done = cluster.run(["srun", "-N2", *LEVEL, "hostname"])
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    (line,) = ours(done.stderr)
    assert f"no free port from {port} to {port}" in line
    # The nodes were told of nobody.
    assert not report_of(done.stderr)


def test_a_heterogeneous_step_meets_at_one_port(cluster):
    cluster.conf(RANGE + "http = off\nprovider = none\n")
    words = ["srun", "-N1", *LEVEL, "sleep", "60", ":", "-N2", "sleep", "60"]
    step = Step(cluster, words)
    # The components have job numbers of their own, by which their nodes' daemons are named.
    wait_for(lambda: sum("--node" in line for _, line in cluster.daemons()) == 3, "three daemons")
    wait_head_listens(step)
    assert ours_of(srun_processes(step)) == []
    cluster.slurm("scancel", step.job)
    step.wait()
    assert len(job_of(step.profile())["nodes"]) == 3


def test_an_async_step_has_no_daemons(cluster, make_cluster):
    """Its srun has ended when it begins: nobody could be its head, and the nodes know that."""
    if "--async" not in cluster.run(["srun", "--help"]).stdout:
        pytest.skip("srun has --async from Slurm 26.05 on")
    slurm = make_cluster(
        nodes=1, slurm_conf=["SlurmctldParameters=enable_stepmgr", "PrologFlags=Contain"]
    )
    slurm.conf(RANGE)
    words = f"srun --async --mpi=none -N1 {' '.join(LEVEL)} -o async.out env"
    job = slurm.sbatch(f"{words}\nuntil grep -q SLURM_STEP_ID async.out; do sleep 0.05; done")
    assert slurm.wait_job(job) == "COMPLETED"
    assert "SONDE_SOCKET" not in (slurm.home() / "async.out").read_text()
    assert "sonde: " not in slurm.log("n1") and slurm.leftovers() == []


# --- The range


@pytest.mark.parametrize("provider", ["sockets", "tcp", "tcp;ofi_rxm"])
def test_all_that_listens_is_in_the_range(cluster, provider):
    cluster.conf(RANGE + TREE + f"provider = {provider}\nhttp = 0.0.0.0\nhttp_port = 0\n")
    step = Step(cluster, ["srun", "-N4", *LEVEL, "sleep", "60"])
    step.wait_nodes(4)
    # The head's: where nodes come, where its children send, HTTP. Node 0's for its children, and those
    # of three nodes that stand by.
    head, nodes = wait_listeners(step, 3, 4)
    assert {port for _, port in head + nodes} <= set(PORTS)
    assert len(head) == 3
    if provider != "tcp;ofi_rxm":  # datagrams over TCP need a socket to send as well
        assert len(nodes) == 4, "who has no children and does not stand by does not listen"
    (killed,) = daemon("head", step.id)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: [pid for pid in daemon("head", step.id) if pid != killed], "an acting head")
    head, nodes = wait_listeners(step, 2, 3)
    assert {port for _, port in head + nodes} <= set(PORTS)
    cluster.slurm("scancel", step.job)
    step.wait()


def test_slurms_own_range_holds_for_all_as_well(make_cluster):
    """It stands in a file that slurm.conf includes."""
    slurm = make_cluster(
        slurm_conf=["include net.conf"],
        etc=[f"net.conf=SrunPortRange={PORTS[0]}-{PORTS[-1]}\n"],
    )
    slurm.conf(TREE + "http = off\n")
    step = Step(slurm, ["srun", "-N4", *LEVEL, "sleep", "60"])
    head, nodes = wait_listeners(step, 2, 4)
    assert {port for _, port in head + nodes} <= set(PORTS)
    slurm.slurm("scancel", step.job)
    step.wait()


def test_a_range_of_too_few_ports(cluster):
    """srun takes the only one: the nodes' connections to the head serve, and the profile says so."""
    with take_port() as taken:
        port = taken.getsockname()[1]
    cluster.conf(f"port_range = {port}-{port}\n" + TREE)
    step = Step(cluster, ["srun", "-N4", *LEVEL, "sleep", "60"])
    step.wait_nodes(4)

    def notes():
        return "\n".join(job_of(step.profile())["notes"])

    missing = ("cannot listen for children: no free port from", "cannot go on as head if that dies")
    wait_for(lambda: all(text in notes() for text in missing), lambda: f"two notes in {notes()}")
    head, nodes = listeners(step)
    assert [port for address, port in head if address != "127.0.0.1"] == [port]
    assert nodes == []
    cluster.slurm("scancel", step.job)
    step.wait()
    assert len(job_of(step.profile())["nodes"]) == 4


# --- Addresses


def test_one_address_where_slurm_binds_to_one(make_cluster):
    address = socket.gethostbyname(socket.gethostname().split(".")[0])
    slurm = make_cluster(
        nodes=2, address=address, slurm_conf=["CommunicationParameters=NoInAddrAny"]
    )
    slurm.conf(TREE + "http = off\n")
    step = Step(slurm, ["srun", "-N2", *LEVEL, "sleep", "60"])
    head, nodes = wait_listeners(step, 2, 2)
    assert {place for place, _ in head + nodes} == {address}
    slurm.slurm("scancel", step.job)
    step.wait()
    assert len(job_of(step.profile())["nodes"]) == 2


def has_ipv6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this host")
@pytest.mark.parametrize("parameters", ["EnableIPv6", "EnableIPv6,DisableIPv4"])
def test_ipv6_from_the_option_to_the_report(make_cluster, parameters):
    slurm = make_cluster(
        address="::1", slurm_conf=[f"CommunicationParameters={parameters}"]
    )
    slurm.conf(RANGE + TREE + "http = ::1\nhttp_port = 0\n")
    gate = slurm.dir / "tmp" / USER / "gate"
    script = f"until [ -e {gate} ]; do sleep 0.05; done"
    step = Step(slurm, ["srun", "-N4", *LEVEL, "bash", "-c", script])
    head, nodes = wait_listeners(step, 3, 4)
    assert {port for _, port in head + nodes} <= set(PORTS)
    assert {address for address, _ in nodes} == {"::1"}
    assert sorted({address for address, _ in head}) == ["::", "::1"]
    (killed,) = daemon("head", step.id)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: [pid for pid in daemon("head", step.id) if pid != killed], "an acting head")
    head, nodes = wait_listeners(step, 2, 3)
    assert all(ipaddress.ip_address(address).version == 6 for address, _ in head + nodes)
    gate.touch()
    code, _ = step.wait()
    assert code == 0
    wait_for(lambda: not daemon("head", step.id), "the acting head's end")
    job = job_of(step.profile())
    assert len(job["nodes"]) == 4 and not any(node["lost"] for node in job["nodes"])
    # And a step whose head lives has a report.
    done = slurm.run(["srun", "-N4", *LEVEL, "sleep", "0.5"])
    assert done.returncode == 0
    assert "4 nodes" in report_of(done.stderr), done.stderr
