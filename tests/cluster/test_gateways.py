"""Nodes of large steps come to the head through gateways (tests/net/test_gateways.py): that Slurm tells them
which ones these are. Here "large" is more than two nodes."""

import pytest
from telemetry import LEVEL, Step, complete, notes_of

GATEWAY = "this node is a gateway for others, at port"
SEEKS = "no gateway leads to the head: this node connects to it"


@pytest.fixture(scope="module")
def cluster(make_cluster):
    yield make_cluster(nodes=4)


@pytest.fixture(autouse=True)
def nothing_stays(cluster):
    yield
    cluster.cancel_all()
    cluster.wait_clean()


@pytest.mark.parametrize("nodes", ["n[1-4]", "n4,n2,n3,n1"])
def test_all_nodes_have_the_same_plan(cluster, nodes):
    """The first two are gateways. The names of the others' gateways cannot be resolved in this cluster, so
    these come by themselves, and nothing is missing."""
    logs = cluster.dir / "log"
    logs.mkdir(exist_ok=True)
    logs.chmod(0o1777)
    cluster.conf(f"direct_nodes = 2\nlog_dir = {logs}\nlog_level = info\n")
    step = Step(cluster, ["srun", "-N4", "-w", nodes, *LEVEL, "sleep", "60"])
    step.wait_nodes(4)

    def log_of(node):
        return (logs / f"sonded.{step.id}.{node}.log").read_text()

    for node in ("n1", "n2"):
        cluster.wait_for(lambda node=node: GATEWAY in log_of(node), f"{node} as gateway")
    for node in ("n3", "n4"):
        assert SEEKS in log_of(node), log_of(node)
        assert GATEWAY not in log_of(node)
    cluster.run(["scancel", step.id])
    step.process.wait(20)
    assert not notes_of(step.profile())
    assert complete(step.profile())
