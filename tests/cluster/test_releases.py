"""This version and the release before it work together: an update reaches login nodes and compute nodes
one after the other, and plugin and daemon of a node while steps are being started.

The programs of the release before are built by scripts/previous. srun has a slurm.conf of its own here, so
that its plugin can be of another version than those of the nodes, and a script that chooses for each node
which daemon to start stands in for different installations.
"""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess

import belongings
import pytest
from conftest import BUILD, ROOT, SKIPPED, SLURM, USER, require_reachable
from telemetry import Step, counter, job_of, sockets_of, without_sonde

# A tree of two levels, at once.
CONF = "fanout = 2\nfabric_after = 0\n"
ASKED = ("--telemetry-level=3", "--telemetry-io", "--telemetry-period=100ms")

# Starts the daemon of the release that a file names for this node. The socket of the application, which
# is descriptor 5, has the node's number in its name, behind the step's.
CHOOSE = """#!/bin/sh
socket=$(readlink /proc/$$/fd/5 | tr -dc 0-9)
node=$(awk -v inode="$socket" '$7 == inode {{ n = split($8, part, "."); print part[n - 1] }}' /proc/net/unix)
case "$1 ,$(cat {directory}/old_nodes)," in
  *--node*,"$node",*) exec {old}/daemon/sonded "$@" ;;
esac
exec {new}/daemon/sonded "$@"
"""


@dataclasses.dataclass
class Release:
    """Where its files are."""

    build: pathlib.Path
    more: str = ""  # arguments of the plugin that are its own

    def plugstack(self, sonded=None):
        sonded = sonded or self.build / "daemon" / "sonded"
        return (
            f"optional {self.build}/spank/spank_sonde.so sonded={sonded} sonde={self.build}/cli/sonde "
            f"config=@DIR@/sonde.conf libraries={self.build}/libclient {self.more}\n"
        )

    def show(self, cluster, step):
        done = cluster.run([self.build / "cli" / "sonde", "show", "--json", step])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


NEW = Release(BUILD, "state=@DIR@/counters")


@pytest.fixture(scope="module")
def old():
    if SLURM:
        pytest.exit("the release before is built for this machine's Slurm", returncode=SKIPPED)
    done = subprocess.run(
        [ROOT / "scripts" / "previous"], capture_output=True, text=True, check=False
    )
    if done.returncode == SKIPPED:
        pytest.exit(f"no release before: {done.stderr}", returncode=SKIPPED)
    assert done.returncode == 0, done.stderr
    build = pathlib.Path(done.stdout.strip())
    require_reachable(build / "daemon" / "sonded")
    return Release(build)


class Site:
    """A cluster on which srun and the nodes have different installations."""

    def __init__(self, cluster, old):
        self.cluster, self.old = cluster, old
        self.etc = cluster.dir / "etc"
        conf = (self.etc / "slurm.conf").read_text()
        other = conf.replace(f"{self.etc}/plugstack.conf", f"{self.etc}/plugstack.srun")
        assert other != conf
        (self.etc / "slurm.srun").write_text(other)
        self.chooser = cluster.dir / "sonded-of-the-node"
        self.chooser.write_text(CHOOSE.format(directory=cluster.dir, old=old.build, new=NEW.build))
        self.chooser.chmod(0o755)
        self.steps = 0
        self.logs = cluster.dir / "tmp" / USER

    def install(self, srun, nodes):
        for name, text in (("plugstack.srun", srun), ("plugstack.conf", nodes)):
            (self.etc / name).write_text(text.replace("@DIR@", str(self.cluster.dir)))

    def mix(self, old_nodes):
        """These nodes have daemons of the release before."""
        (self.cluster.dir / "old_nodes").write_text(",".join(map(str, old_nodes)))

    def start(self, nodes=4):
        """A step that works until its gate is open; its head is asked until all nodes are there."""
        self.steps += 1
        gate = self.cluster.dir / "tmp" / USER / f"gate{self.steps}"
        work = f"echo out; until [ -e {gate} ]; do sleep 0.05; done; echo some data > {gate}.$SLURM_PROCID"
        srun = ["env", f"SLURM_CONF={self.etc}/slurm.srun", "srun", f"-N{nodes}", *ASKED]
        step = Step(self.cluster, [*srun, "bash", "-c", work])
        step.gate = gate
        step.wait_nodes(nodes)
        return step

    def least_of_head(self, step):
        """The least version in which each node's daemon of this release speaks to the head."""
        logs = [path.read_text() for path in self.logs.glob(f"sonded.{step.id}.n*.log")]
        return sorted(
            int(line.split("protocol")[1].split()[0])
            for log in logs
            for line in log.splitlines()
            if "the head is to speak" in line
        )

    def daemons(self, role, step):
        """Pid -> the release of its program."""
        return {
            pid: release
            for release in (self.old, NEW)
            for pid, command in belongings.running(
                [str(release.build / "daemon" / name) for name in ("sonded", "sonded-head")],
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
        """Ends the step; its profile, as both releases read it."""
        step.gate.touch()
        code, _ = step.wait()
        assert (code, step.stdout) == (0, "out\n" * nodes), step.stderr
        gone = lambda: not self.daemons("head", step) | self.daemons("node", step)  # noqa: E731
        self.cluster.wait_for(gone, "the end of its daemons")
        assert without_sonde(step.stderr) == []
        shown = NEW.show(self.cluster, step.id)
        assert job_of(self.old.show(self.cluster, step.id))["coverage"] == job_of(shown)["coverage"]
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
def site(make_cluster, old):
    cluster = make_cluster()
    site = Site(cluster, old)
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
    "old": "old old old old",
    "new": "new new new new",
    "old_plugins": "old new old new",
    "old_daemons": "new old new old",
    "old_nodes": "new new old old",
    "old_srun": "old old new new",
    "old_plugin_of_srun": "old new new new",
    "old_plugin_of_nodes": "new new old new",
    "old_daemon_of_srun": "new old new new",
}


@pytest.mark.parametrize("installed", INSTALLATIONS)
def test_a_step_is_watched_in_full(site, installed):
    release = {"old": site.old, "new": NEW}
    plugin, daemon, node_plugin, node_daemon = (release[w] for w in INSTALLATIONS[installed].split())
    site.install(
        plugin.plugstack(daemon.build / "daemon" / "sonded"),
        node_plugin.plugstack(node_daemon.build / "daemon" / "sonded"),
    )
    step = site.start()
    assert site.releases(step) == ([daemon], [node_daemon] * 4)
    known = all(release is NEW for release in (plugin, daemon, node_plugin))
    assert site.least_of_head(step) == ([7 if known else 6] * 4 if node_daemon is NEW else [])
    for reader in (NEW, site.old):
        assert job_of(reader.show(site.cluster, step.id))["state"] == "running"
    shown = site.finish(step)
    whole(shown)
    assert surprises(shown) == []


@pytest.mark.parametrize("installed", ["old_plugins", "old_daemons"])
def test_a_batch_script_is_watched_in_full(site, installed):
    plugin, daemon = (site.old, NEW) if installed == "old_plugins" else (NEW, site.old)
    line = plugin.plugstack(daemon.build / "daemon" / "sonded")
    site.install(line, line)
    job = site.cluster.sbatch("echo some data > data; sleep 0.5", options=["-N1", *ASKED])
    assert site.cluster.wait_job(job) == "COMPLETED"
    for release in (NEW, site.old):
        whole(release.show(site.cluster, f"{job}.batch"))


@pytest.mark.parametrize("head", ["old", "new"])
@pytest.mark.parametrize("old_nodes", [[0], [2, 3]], ids=["old_parent", "old_children"])
def test_parents_and_children_of_different_releases(site, head, old_nodes):
    srun = NEW if head == "new" else site.old
    site.install(srun.plugstack(), NEW.plugstack(site.chooser))
    site.mix(old_nodes)
    step = site.start()
    mixed = [site.old if node in old_nodes else NEW for node in range(4)]
    assert site.releases(step) == ([srun], mixed)
    shown = site.finish(step)
    whole(shown)
    assert surprises(shown) == []


@pytest.mark.parametrize("acting", ["old", "new"])
def test_an_acting_head_of_another_release(site, acting):
    """What the dead head had stored, of its release, the next one reads."""
    srun, nodes = (NEW, site.old) if acting == "old" else (site.old, NEW)
    site.install(srun.plugstack(), nodes.plugstack())
    step = site.start()
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
