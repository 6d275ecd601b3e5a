"""Two clusters with telemetry on one host: a test on one is not told of the other's daemons, nor of
what other tests make."""

import os
import tempfile

import belongings
import pytest
from conftest import Cluster, sonded_processes
from telemetry import LEVEL, Step, daemon


@pytest.fixture(scope="module")
def stranger(cluster):
    """Another test run's cluster, with the same numbers of jobs, as one in a container may have."""
    other = Cluster(nodes=2, slurm_conf=[f"FirstJobId={cluster.facts['first_job']}"])
    other.conf("")
    yield other
    other.stop()


@pytest.fixture(autouse=True)
def nothing_stays(cluster, stranger):
    yield
    for each in (cluster, stranger):
        each.cancel_all()
        each.wait_clean()


@pytest.mark.parametrize("words", [[], ["--export=NONE"]], ids=["plain", "export_none"])
def test_a_step_counts_in_its_own_cluster_alone(cluster, stranger, words):
    gate = stranger.dir / "tmp" / "gate"
    gate.unlink(missing_ok=True)
    waiting = f"until [ -e {gate} ]; do sleep 0.05; done"
    theirs = Step(stranger, ["srun", "-N2", *LEVEL, *words, "/bin/bash", "-c", waiting])
    theirs.wait_nodes(2)
    assert cluster.leftovers() == [] == sonded_processes()
    roles = sorted(command.split()[1] for _, command in stranger.daemons())
    assert roles == ["--head", "--node", "--node"]
    sockets = [line for line in stranger.leftovers() if line.startswith("socket @sonde/")]
    assert len(sockets) == 4, "for metrics and for questions, of each node"

    ours = Step(cluster, ["srun", "-N2", *LEVEL, *words, "/bin/sleep", "60"])
    ours.wait_nodes(2)
    assert ours.id == theirs.id
    assert len(daemon("head", ours.id)) == 1 and len(daemon("node", ours.id)) == 2
    assert sorted(sonded_processes()) == sorted(cluster.daemons())
    assert not {pid for pid, _ in cluster.daemons()} & {pid for pid, _ in stranger.daemons()}
    cluster.slurm("scancel", ours.job)
    ours.wait()
    cluster.wait_clean()
    assert len(stranger.daemons()) == 3

    gate.touch()
    assert theirs.wait()[0] == 0
    stranger.wait_clean()


def test_what_has_no_environment_belongs_by_descent(cluster, stranger):
    words = ["srun", "-N1", "env", "-i", "/usr/bin/sleep", "1000"]
    Step(cluster, words)
    programs = (os.path.realpath("/usr/bin/sleep"),)
    cluster.wait_for(lambda: belongings.running(programs, cluster.dir), "a sleeping task")
    assert belongings.running(programs, stranger.dir) == []


def test_shared_memory_of_other_tests_is_not_the_cluster_s(cluster):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="sonde-of-a-unit-test-"):
        assert cluster.leftovers() == []
    name = f"/dev/shm/sonde.{cluster.facts['first_job']}.0"
    cluster.run(["touch", name])
    try:
        assert cluster.leftovers() == [f"file {name}"]
    finally:
        cluster.run(["rm", name])
