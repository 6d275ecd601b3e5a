"""Two releases work together in one step: an update reaches login nodes and compute nodes one after the
other, and plugin and daemon of a node while steps are being started.

The other release is the next one, as far as this one can know it: tests/next_release links it of the same
objects. It speaks a later version of the protocol, and says things that this one has never heard of, in
packets between plugin and daemon and on each link. srun has a slurm.conf of its own here, so that its
plugin can be of another release than those of the nodes, and a script that chooses for each node which
daemon to start stands in for different installations.
"""

import dataclasses
import os
import pathlib
import signal

import belongings
import pytest
from conftest import BUILD, LIBRARIES, PROGRAMS, SKIPPED, SLURM, SONDE, USER, require_reachable
from telemetry import Step, counter, job_of, show, sockets_of, without_sonde

# A tree of two levels, at once.
CONF = "fanout = 2\nfabric_after = 0\n"
ASKED = ("--telemetry-level=3", "--telemetry-io")

# Starts the daemon of the release that a file names for this node. The socket of the application, which
# is descriptor 5, has the node's number in its name, behind the step's.
CHOOSE = """#!/bin/sh
socket=$(readlink /proc/$$/fd/5 | tr -dc 0-9)
node=$(awk -v inode="$socket" '$7 == inode {{ n = split($8, part, "."); print part[n - 1] }}' /proc/net/unix)
case "$1 ,$(cat {directory}/next_nodes)," in
  *--node*,"$node",*) exec {next} "$@" ;;
esac
exec {now} "$@"
"""


@dataclasses.dataclass(frozen=True)
class Release:
    """Where its programs are."""

    plugins: pathlib.Path
    programs: pathlib.Path

    @property
    def sonded(self):
        return self.programs / "daemon" / "sonded"

    def plugstack(self, sonded=None):
        return (
            f"optional {self.plugins}/spank/spank_sonde.so sonded={sonded or self.sonded} sonde={SONDE} "
            f"config=@DIR@/sonde.conf libraries={LIBRARIES} state=@DIR@/counters\n"
        )


NOW = Release(BUILD, PROGRAMS)
NEXT = Release(BUILD / "tests" / "next_release", PROGRAMS / "tests" / "next_release")


class Site:
    """A cluster on which srun and the nodes have different installations."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.etc = cluster.dir / "etc"
        conf = (self.etc / "slurm.conf").read_text()
        other = conf.replace(f"{self.etc}/plugstack.conf", f"{self.etc}/plugstack.srun")
        assert other != conf
        (self.etc / "slurm.srun").write_text(other)
        self.chooser = cluster.dir / "sonded-of-the-node"
        self.chooser.write_text(CHOOSE.format(directory=cluster.dir, next=NEXT.sonded, now=NOW.sonded))
        self.chooser.chmod(0o755)
        self.steps = 0
        self.logs = cluster.dir / "tmp" / USER

    def install(self, srun, nodes):
        for name, text in (("plugstack.srun", srun), ("plugstack.conf", nodes)):
            (self.etc / name).write_text(text.replace("@DIR@", str(self.cluster.dir)))

    def mix(self, next_nodes):
        """These nodes have daemons of the next release."""
        (self.cluster.dir / "next_nodes").write_text(",".join(map(str, next_nodes)))

    def start(self, nodes=4, period="100ms"):
        """A step that works until its gate is open; its head is asked until all nodes are there."""
        self.steps += 1
        gate = self.cluster.dir / "tmp" / USER / f"gate{self.steps}"
        work = f"echo out; until [ -e {gate} ]; do sleep 0.05; done; echo some data > {gate}.$SLURM_PROCID"
        srun = ["env", f"SLURM_CONF={self.etc}/slurm.srun", "srun", f"-N{nodes}", *ASKED,
                f"--telemetry-period={period}"]  # fmt: skip
        step = Step(self.cluster, [*srun, "bash", "-c", work])
        step.gate = gate
        step.wait_nodes(nodes)
        return step

    def heard_of_the_next(self, step):
        """Whether a daemon of this release has got a message that it does not know."""
        logs = [path.read_text() for path in self.logs.glob(f"sonded.{step.id}.*.log")]
        return any("message of type 250 ignored" in log for log in logs)

    def daemons(self, role, step):
        """Pid -> the release of its program."""
        return {
            pid: release
            for release in (NOW, NEXT)
            for pid, command in belongings.running(
                [str(release.programs / "daemon" / name) for name in ("sonded", "sonded-head")],
                self.cluster.dir,
            )
            if command.endswith(f"--{role} {step.id}")
        }

    def releases(self, step):
        """Those of the head and of the nodes' daemons, in the order of the nodes."""
        nodes = {sockets_of(pid): release for pid, release in self.daemons("node", step).items()}
        by_node = [
            next(release for names, release in nodes.items() if f"/{step.id}.{node}." in names)
            for node in range(len(nodes))
        ]
        return list(self.daemons("head", step).values()), by_node

    def finish(self, step, nodes=4):
        """Ends the step; its profile."""
        step.gate.touch()
        code, _ = step.wait()
        assert (code, step.stdout) == (0, "out\n" * nodes), step.stderr
        gone = lambda: not self.daemons("head", step) | self.daemons("node", step)  # noqa: E731
        self.cluster.wait_for(gone, "the end of its daemons")
        assert without_sonde(step.stderr) == []
        shown = show(self.cluster, step.id)
        hosts = {node["host"]: node["lost"] for node in job_of(shown)["nodes"]}
        assert hosts == {f"n{i + 1}": False for i in range(nodes)}
        return shown


def whole(shown):
    counts = job_of(shown)["coverage"]
    # A sample may fall into the moment of a change.
    assert counts["got"] + counts["skipped"] >= counts["expected"] - 2, counts
    if "page_faults" not in str(job_of(shown)["notes"]):
        assert counter(shown, "task_perf_page_faults_total")["last"] > 0
    counted = [e for e in shown["profile"]["footprint"] if e["metric"] == "io_written_bytes_total"]
    assert sum(entry["last"] for entry in counted) >= len("some data\n") * len(job_of(shown)["nodes"])


def surprises(shown):
    """The notes of its profile, but for what a machine without counters has in any case."""
    return [note for note in job_of(shown)["notes"] if "are not counted: this machine" not in str(note)]


@pytest.fixture(scope="module")
def site(make_cluster):
    if SLURM:
        pytest.exit("the next release is linked for this machine's Slurm", returncode=SKIPPED)
    require_reachable(NEXT.sonded)
    cluster = make_cluster()
    site = Site(cluster)
    cluster.conf(f"{CONF}log_dir = {site.logs}\nlog_level = debug\n")
    return site


@pytest.fixture(autouse=True)
def no_node_complains(site):
    before = {node: len(site.cluster.log(node)) for node in site.cluster.nodes}
    yield
    site.cluster.cancel_all()
    for node, length in before.items():
        lines = site.cluster.log(node)[length:].splitlines()
        assert [line for line in lines if " sonde: " in line] == []


# Plugin and daemon of srun's host, plugin and daemon of the nodes.
INSTALLATIONS = {
    "next_plugins": (NEXT, NOW, NEXT, NOW),
    "next_daemons": (NOW, NEXT, NOW, NEXT),
    "next_nodes": (NOW, NOW, NEXT, NEXT),
    "next_srun": (NEXT, NEXT, NOW, NOW),
}


@pytest.mark.parametrize("installed", INSTALLATIONS)
def test_a_step_is_watched_in_full(site, installed):
    plugin, daemon, node_plugin, node_daemon = INSTALLATIONS[installed]
    site.install(plugin.plugstack(daemon.sonded), node_plugin.plugstack(node_daemon.sonded))
    step = site.start()
    assert site.releases(step) == ([daemon], [node_daemon] * 4)
    shown = site.finish(step)
    whole(shown)
    assert surprises(shown) == []


@pytest.mark.parametrize("plugin, daemon", [(NEXT, NOW), (NOW, NEXT)], ids=["next_plugin", "next_daemon"])
def test_a_batch_script_is_watched_in_full(site, plugin, daemon):
    line = plugin.plugstack(daemon.sonded)
    site.install(line, line)
    options = ["-N1", *ASKED, "--telemetry-period=100ms"]
    job = site.cluster.sbatch("echo some data > data; sleep 0.5", options=options)
    assert site.cluster.wait_job(job) == "COMPLETED"
    whole(show(site.cluster, f"{job}.batch"))


@pytest.mark.parametrize("next_nodes", [[0], [2, 3]], ids=["next_parent", "next_children"])
def test_parents_and_children_of_different_releases(site, next_nodes):
    site.install(NOW.plugstack(), NOW.plugstack(site.chooser))
    site.mix(next_nodes)
    step = site.start()
    assert site.releases(step) == ([NOW], [NEXT if node in next_nodes else NOW for node in range(4)])
    assert site.heard_of_the_next(step)
    shown = site.finish(step)
    whole(shown)
    assert surprises(shown) == []


@pytest.mark.parametrize("srun, nodes", [(NEXT, NOW), (NOW, NEXT)], ids=["now", "next"])
def test_an_acting_head_of_another_release(site, srun, nodes):
    """What the dead head had stored, of its release, the next one reads."""
    site.install(srun.plugstack(), nodes.plugstack())
    step = site.start(period="50ms")  # the head stores every 96 rows
    directory = step.live_directory()
    site.cluster.wait_for(lambda: list(directory.glob("**/state")), "what the head stores", 40)
    ((head, release),) = site.daemons("head", step).items()
    os.kill(head, signal.SIGKILL)
    acting_head = site.cluster.wait_for(
        lambda: [r for pid, r in site.daemons("head", step).items() if pid != head], "an acting head"
    )
    assert (release, acting_head) == (srun, [nodes])
    shown = site.finish(step)
    whole(shown)
    assert "went on as acting head" in str(job_of(shown)["notes"])
