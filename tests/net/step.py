"""A whole step without Slurm: one head and any number of nodes, each in a network namespace.

    step = make_step(nodes=6)              # fanout 2: 0 and 1 below the head, 2 and 3 below 0, ...
    step.start()
    step.at(3).add(10)                     # its application counts 10
    step.wait_total()                      # the head's total is what was counted
    fault = step.now()
    step.at(0).kill()
    step.check_whole_since(fault)          # every later tick has all living nodes
    step.finish()
    step.check_profile()                   # gaps and notes of the archived profile
    step.check_stored_total()

What the daemons do not keep of what is promised stands in NOT_YET; tests that meet it are expected
failures. Take an entry out, and they fail.

Nodes are called by their index in the tree, which they get in the order in which they come. Steps
sample every 100 ms at level 1, so that a sample is little more than the application's counters.
Not thread-safe.
"""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import time

import pytest
from daemons import LISTEN, NEXT_SONDED, SONDE, SONDED, Daemon
from node import HEAD, Node, WallClock

# Promises that the daemons do not keep yet: name -> what is missing.
NOT_YET = {}

PERIOD = 0.1
# The promises of issue and design: how long until the tree is whole again.
HEALS_WITHIN = 2.0
BLACK_HOLE_HEALS_WITHIN = 3.0
COUNTED = "work_done_total"
# One for each node in every row; a gauge, for the counters of the dead stay.
PRESENT = "sonde_memory_bytes"


# Only a failure lasts so long, however busy the machine is.
LIMIT = 30.0


def wait_for(predicate, what, timeout=LIMIT):
    """Polls until predicate() is true and gives its value; a clear failure otherwise. `what`: text, or
    what makes it then."""
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {timeout:g} s in vain for {text}")
        time.sleep(0.02)


def promise(kept, gap, detail):
    """Asserts what is promised; a test whose promise is known not to be kept yet is an expected failure.
    `gap`: a name in NOT_YET, or None."""
    if not kept and gap in NOT_YET:
        pytest.xfail(f"{NOT_YET[gap]}; {detail}")
    assert kept, detail


def story(rows, fault):
    """The rows around a fault, equal ones together: seconds from it, nodes, total."""
    told = []
    for at, count, total in rows:
        if at > fault - 1 and (not told or told[-1][1:] != (count, total)):
            told.append((at, count, total))
    last = f", the last at {rows[-1][0] - fault:+.1f} s" if rows else "no row"
    return " ".join(f"{at - fault:+.1f}s:{n}/{total:g}" for at, n, total in told) + last


def network_of(pid):
    """None of a process that has ended, also if its parent has not asked about it yet."""
    with contextlib.suppress(FileNotFoundError):
        return os.readlink(f"/proc/{pid}/ns/net")
    return None


class Step:
    """`own_archives`: nodes do not share a file system. `programs`, `network`: conftest's. `skews`: node id -> seconds its wall clock is ahead. `conf`: more lines
    of sonde.conf. `clocks`: the daemons' wall clocks can be set. `gateways`: nodes come to the head
    through others, as in a large step. `next_release`: ids of nodes whose daemons are of the next
    release, and "head".
    `expected`: how many nodes daemons are told there will be."""

    number = 0

    def __init__(self, programs, network, directory, *, nodes, fanout=2, skews=None, seed=0, conf=(),
                 own_archives=False, level=1, period=PERIOD, clocks=False, gateways=False,
                 next_release=(), expected=None):
        Step.number += 1
        self.name = f"{os.getpid()}{Step.number:04d}.0"
        self.size, self.fanout = nodes, fanout
        self.expected = expected or nodes
        self.level, self.period = level, period
        self.program = programs.application
        self._next_release = next_release
        self.library = programs.library
        self.directory = directory
        self.closed = False
        self.injected = 0  # what all applications have counted so far
        self.key = secrets.token_hex(32)
        self.head = None
        self._live = None
        self._killed = []  # process ids of heads
        self._waited = {}  # now() -> how long daemons had waited for a processor
        self.deaths = []  # of daemons: when, what was counted there, and the node; None: a head
        (directory / "log").mkdir()
        self.archive = directory / "archive"
        self._own_archives = own_archives
        self.conf = directory / "sonde.conf"
        lines = [f"fanout = {fanout}", "http = 0.0.0.0", "http_port = 0", "fabric_after = 50ms"]
        if gateways:
            lines += ["direct_nodes = 1"]
        lines += [f"log_dir = {directory / 'log'}", "log_level = debug", *conf]
        self.conf.write_text("\n".join(lines) + "\n")
        self.space, self.address = network.head, network.head.address
        # Where those who have no business here come from.
        self.outside = network.outside

        def clock(name, ahead=0):
            if not clocks and not ahead:
                return None
            return WallClock(programs.skew, directory / f"clock-{name}", ahead)

        self.clock = clock("head")
        self.nodes = [
            Node(self, i, network.nodes[i], clock(i, (skews or {}).get(i, 0)), named=not gateways)
            for i in range(nodes)
        ]
        # Names that nobody can resolve lead nowhere.
        self._hosts = {"hosts": ",".join(node.host for node in self.nodes)} if gateways else {}
        self.wires = network.wires
        self.wires.reset(seed)
        self._by_index = []

    # --- Starting

    def launch(self, role):
        job, step = self.name.split(".")
        return {
            "role": role, "job": job, "step": step, "job_name": "net", "user": "root",
            "uid": os.getuid(), "home": self.directory, "nodes": self.expected, "job_nodes": self.expected,
            "tasks": self.size, "level": self.level, "period": int(self.period * 1e9), "key": self.key,
            "config": self.conf, "archive": self.archive, "command": "app", "host": "head",
        } | self._hosts  # fmt: skip

    def sonded(self, who):
        """The program of a node, by its id, or of the "head"."""
        return NEXT_SONDED if who in self._next_release else SONDED

    @staticmethod
    def environment():
        # By default the queues of libfabric's ofi_rxm are for thousands of peers.
        slim = {"FI_OFI_RXM_MSG_RX_SIZE": "16", "FI_OFI_RXM_MSG_TX_SIZE": "16"}
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "SONDE_REPORT": "full"} | slim

    def start_head(self):
        with self.space.inside():
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.bind((HEAD, 0))
            listener.listen(1024)
        self.port = listener.getsockname()[1]
        environment = self.environment() | (self.clock.environment() if self.clock else {})
        self.head = Daemon(
            self.space, "head", self.launch("head"), {listener: LISTEN}, environment, self.sonded("head")
        )

    def start(self, count=None, in_turn=False):
        """Starts head and nodes, the first `count` or all, and waits until the tree is built and a tick
        has them all. `in_turn`: a node's index is its id."""
        self.start_nodes(count, in_turn)
        wait_for(self.built, "the tree")
        self.wait_whole()

    def start_with_successors(self):
        """start; nodes have counted, know who stands by, and the record knows them."""
        self.start()
        for node in self.nodes:
            node.add(10 + node.id)
        self.wait_total()
        self.wait_successors()
        wait_for(self.described, "a record of all nodes")

    def start_counting(self):
        """start, and each node has counted one."""
        self.start()
        for node in self.nodes:
            node.add(1)
        self.wait_total()

    def start_nodes(self, count=None, in_turn=False):
        """Starts head and nodes, and waits until the head knows these."""
        self.start_head()
        nodes = self.nodes[:count]
        for number, node in enumerate(nodes):
            node.start()
            if in_turn:
                self.wait_registered(nodes[: number + 1])
        for node in nodes:
            node.application.wait_ready()
        self.wait_registered(nodes)

    def wait_registered(self, nodes, timeout=LIMIT):
        """Waits until the head knows these nodes."""
        hosts = {node.host for node in nodes}
        wait_for(
            lambda: hosts <= {info["host"] for info in self.profile()["nodes"]},
            f"{len(hosts)} nodes at the head", timeout,
        )  # fmt: skip
        by_host = {node.host: node for node in self.nodes}
        self._by_index = [by_host[info["host"]] for info in self.profile()["nodes"]]

    def at(self, index):
        """The node of an index in the tree."""
        return self._by_index[index]

    def index(self, node):
        return self._by_index.index(node)

    def alive(self):
        return [node for node in self.nodes if node.alive]

    # --- The tree's shape

    def parent(self, index):
        """As docs/design.md has it, while nobody is lost; None: the head."""
        return None if index < self.fanout else index // self.fanout - 1

    def children(self, index):
        return [i for i in range(self.size) if self.parent(i) == index]

    def links_up(self, node):
        """Addresses this node's daemon has connected to, for its control connection and its parent;
        as the kernel of its space has them, so whatever the daemons believe."""
        established, listening = node.daemon.connections()
        return sorted(remote for port, remote, _ in established if port not in listening)

    def built(self):
        """Whether everybody is connected to the head and to the parent that the design gives."""
        for index, node in enumerate(self._by_index):
            parent = self.parent(index)
            above = HEAD if parent is None else self.at(parent).address
            if self.links_up(node) != sorted([HEAD, above]):
                return False
        return True

    # --- What the head knows

    def now(self):
        """Seconds of the epoch; what is late since then is told by late_since."""
        now = time.time()
        self._waited[now] = Daemon.waits.seconds()
        return now

    def late_since(self, fault):
        """For how many seconds since then, a now() or some time later, daemons waited for a processor."""
        before = [waited for at, waited in self._waited.items() if at <= fault]
        return Daemon.waits.seconds() - before[-1] if before else 0.0

    def _request(self, path, body=None, space=None):
        """The answer; None if it asks for a name that there is not. `space`: to ask from, not the
        head's."""
        here = wait_for(self._head_space, "a head that lives")
        with space or here.inside():
            connection = http.client.HTTPConnection("127.0.0.1", self._live["port"], timeout=10)
            connection.connect()
        try:
            headers = {"Authorization": f"Bearer {self._live['token']}"}
            if body is not None:
                headers["Content-Type"] = "application/json"
                body = json.dumps(body)
            connection.request("GET" if body is None else "POST", path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            if b"No such name" in text:
                return None
            assert answer.status == 200, f"{path}: {answer.status} {text[:500]}"
            return json.loads(text)
        finally:
            connection.close()

    def token(self):
        """Who has it may ask the running step's head anything."""
        self.profile()
        return self._live["token"]

    def archive_of(self, host):
        """Where an acting head on that node stores."""
        return self.directory / f"archive-{host}" if self._own_archives else self.archive

    def _endpoint(self, but=()):
        """Of a head that lives. `but`: process ids of others."""
        for path in self.directory.glob("archive*/live/*/endpoint.json"):
            with contextlib.suppress(FileNotFoundError):
                endpoint = json.loads(path.read_text())
                if endpoint["pid"] not in but and network_of(endpoint["pid"]):
                    return endpoint
        return None

    def _head_space(self):
        """Where the head is that serves, and `_live` is its endpoint then: srun's, or a node's. None while there is
        none."""
        if self._live is None or network_of(self._live["pid"]) is None:
            self._live = self._endpoint()
        net = self._live and network_of(self._live["pid"])
        if net is None:
            return None
        acting = self._node_in(net)
        return self.space if acting is None else acting.space

    def acting(self):
        """The node that is acting head; None if the head itself serves."""
        return self._node_in(network_of(self._live["pid"]))

    def _node_in(self, net):
        for node in self.nodes:
            if node.daemon is not None and node.space.is_net(net):
                return node
        return None

    def heads(self):
        """Process ids of all heads of this step, acting ones as well."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if b"--head" in words and self.name.encode() in words:
                    found.append(int(path.parent.name))
        return found

    def wait_acting(self, but=()):
        """Waits until a node is acting head and serves; gives the node and its head's process id."""

        def acts():
            self._live = self._endpoint((self.head.pid, *self._killed, *but))
            return None if self._live is None else self.acting()

        node = wait_for(acts, "an acting head")
        return node, self._live["pid"]

    @property
    def web_port(self):
        return wait_for(self._endpoint, "the head's endpoint")["port"]

    def log_of(self, host):
        """The lines of a daemon's log, none yet if it has not begun; the head's is that of "head"."""
        path = self.directory / "log" / f"sonded.{self.name}.{host}.log"
        return path.read_text().splitlines() if path.exists() else []

    def profile(self):
        """The running step's description: nodes, coverage, notes."""
        return self._request(f"/api/v1/profile?job={self.name}")["job"]

    def change_alarm(self, verb, **alarm):
        """`verb`: add or del."""
        assert self._request(f"/alarms/{verb}", alarm)["success"]

    def alarms(self):
        """The rules by their names."""
        return {a["name"]: a["rule"] for a in self._request(f"/alarms/list?job={self.name}")[self.name]}

    def series_path(self, metric):
        """Of one metric over the whole step, a point for each tick."""
        return f"/api/v1/series?job={self.name}&metric={metric}&points=5000"

    def series(self, metric):
        return self._request(self.series_path(metric))

    def rows(self):
        """[(time, nodes in it, total counted)] of the ticks so far."""
        return self._rows()

    def _rows(self, space=None, tags=None):
        queries = [
            {"metric": PRESENT, "aggregator": "count"},
            {"metric": COUNTED, "aggregator": "sum"},
        ]
        for query in queries:
            query["tags"] = tags or {}
        body = {"start": int((time.time() - 3600) * 1000), "msResolution": True, "queries": queries}
        counts, totals = {}, {}
        # A metric that is in no tick yet is not known at all.
        for answer in self._request("/api/query", body, space) or []:
            into = counts if answer["metric"] == PRESENT else totals
            into.update({int(at) / 1000: value for at, value in answer["dps"].items()})
        return [(at, round(counts[at]), totals.get(at, 0.0)) for at in sorted(counts)]

    def successors_known(self):
        """Whether every node knows who goes on when the head it has now dies."""
        standing = f"{min(3, len(self.alive()))} nodes stand by"
        texts = ["\n".join(node.log()) for node in self.alive()]
        return all(standing in text.rsplit("back at another head")[-1] for text in texts)

    def wait_successors(self):
        wait_for(self.successors_known, "successors that are known")

    def kill_head(self):
        """Whichever there is now."""
        pid = self._endpoint()["pid"]
        self._killed.append(pid)
        self.deaths.append((time.monotonic(), 0, None))
        self._live = None
        if pid == self.head.pid:
            self.head.kill()
        else:
            os.kill(pid, signal.SIGKILL)

    def cut_head(self, nodes=None):
        """These nodes, or all, and srun's host do not reach each other any more."""
        for node in nodes or self.nodes:
            self.wires.rule(node.address, self.address, drop=1.0)
            self.wires.rule(self.address, node.address, drop=1.0)

    def mend_head(self):
        for node in self.nodes:
            self.wires.rule(node.address, self.address)
            self.wires.rule(self.address, node.address)

    def reset_head_connections(self, node):
        """As by a firewall that forgot them."""
        acting = self.acting() if self._live else None
        node.space.reset_connections((acting.space if acting else self.space).address)

    def wait_stored(self):
        """Waits until the head has stored what it has now, for another one to go on from."""

        before = self._stored_at()
        wait_for(lambda: self._stored_at() > before, "the head's state", 15)

    def _stored_at(self):
        newest = 0
        for path in (self.archive / "live").glob("*/state"):
            with contextlib.suppress(FileNotFoundError):
                newest = max(newest, path.stat().st_mtime)
        return newest

    def described(self):
        """Whether the record says which nodes there are; a head that dies before, within its first
        second, takes that with it."""
        for path in (self.archive / "live").glob("*/description.json"):
            with contextlib.suppress(FileNotFoundError):
                return len(json.loads(path.read_text()).get("nodes", [])) == self.size
        return False

    def goodbyes_stored(self):
        """Whether the head has stored what nodes counted that have left; one that dies before, within a
        second, takes that with it."""
        gone = [node.gone_at() for node in self.nodes if node.left and not node.lost]
        return all(at is not None and at < self._stored_at() for at in gone)

    # --- Waiting

    def as_counted(self, total):
        """Whether a total is what was counted. What a node counted that died together with its parent
        may be in it or not: only the parent had it by itself. Once nodes have left or come again nobody
        here knows who that is: it may be any that died at that time."""
        doubtful = 0
        moved = any(node.left or node.starts > 1 for node in self.nodes)
        for at, added, node in self.deaths:
            if node not in self._by_index:
                continue
            parent = self.parent(self.index(node))
            alone = self.head.exited if parent is None else self.at(parent).lost
            together = [one for one, _, other in self.deaths if other is not node and abs(one - at) < 3]
            if (node.lost and alone) or (moved and together):
                doubtful += added
        return total is not None and self.injected - doubtful <= total <= self.injected

    def total_of_head(self):
        """What the head itself has been told was counted; 0 if nothing. A query asks the nodes, too,
        where the head has not heard of one yet."""
        footprint = self._request(f"/api/v1/profile?job={self.name}")["footprint"]
        return next((entry["last"] for entry in footprint if entry["metric"] == COUNTED), 0.0)

    def wait_total(self, timeout=LIMIT):
        """Waits until the newest total is what the applications have counted, and the head has it by
        itself: what a node alone knows is lost with the node."""
        start = self.now()
        rows = []

        def there():
            rows[:] = self.rows()
            return rows and self.as_counted(rows[-1][2]) and self.as_counted(self.total_of_head())

        def what():
            return f"a total of {self.injected}: {story(rows, start)}; the head has {self.total_of_head()}"

        wait_for(there, what, timeout)

    def wait_whole(self, timeout=LIMIT):
        """Waits until the newest ticks have all living nodes."""
        alive = len(self.alive())

        def whole():
            rows = self.rows()
            return len(rows) >= 3 and all(count == alive for _, count, _ in rows[-3:])

        wait_for(whole, f"ticks of {alive} nodes", timeout)

    def check_whole_since(self, fault, bound=HEALS_WITHIN):
        """Ticks that have all living nodes begin within `bound` of the fault and go on; gives the rows.
        The time in which daemons waited for a processor does not count."""
        alive = len(self.alive())
        enough = 5
        rows = []

        def settled():
            rows[:] = self.rows()
            last = rows[-enough:]
            return last and last[0][0] > fault and all(count == alive for _, count, _ in last)

        wait_for(
            settled,
            lambda: f"{enough} ticks with {alive} nodes: {story(rows, fault)}",
        )
        bad = [at for at, count, _ in rows if at > fault and count != alive]
        after = max(bad, default=fault) + PERIOD - fault
        late = self.late_since(fault)
        assert after <= bound + PERIOD + late, (
            f"whole after {after:.2f} s, {late:.2f} s of waiting: {story(rows, fault)}"
        )
        assert max(count for _, count, _ in rows) <= self.size, story(rows, fault)
        return rows

    def check_totals(self, rows, fault):
        """Of these rows every one since the fault that has all living nodes has what was counted until
        then, and none has more: what nodes counted that died is in it too. Nothing may have been
        counted since the fault."""
        alive = len(self.nodes) - sum(node.lost for node in self.nodes)
        rows = [row for row in rows if row[0] > fault]
        right = [self.as_counted(total) for _, count, total in rows if count >= alive]
        assert all(right), f"expected {self.injected}: {story(rows, fault)}"
        assert max(total for _, _, total in rows) <= self.injected, story(rows, fault)

    # --- The end

    def finish(self):
        """All living nodes leave, then srun ends; gives the report."""
        for node in self.alive():
            node.leave()
        for node in self.nodes:
            if node.daemon is not None and not node.lost:
                node.daemon.wait_exit()
        if self.head.exited:
            wait_for(lambda: not self.heads(), "the end of the acting head")
            return ""
        self.head.finish()
        report = self.head.report()
        self.head.wait_exit()
        return report

    def stored(self):
        """The profile as `sonde show --json` has it."""
        done = subprocess.run(
            [SONDE, "--archive", self.archive, "show", "--json", self.name],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)["profile"]

    def check_profile(self, rows=()):
        """The archived profile names every node that was lost and counts what is missing; gives its
        description. `rows`: the ticks as the running head had them last."""
        job = self.stored()["job"]
        coverage = job["coverage"]
        notes = "\n".join(job["notes"])
        lost = {node.host for node in self.nodes if node.lost}
        assert {info["host"] for info in job["nodes"] if info["lost"]} == lost, notes
        if len(lost) == 1:  # of several the note says how many
            assert lost.pop() in notes, notes
        assert coverage["got"] + coverage["skipped"] <= coverage["expected"], coverage
        all_there = next((i for i, row in enumerate(rows) if row[1] == self.size), len(rows))
        missing = sum(self.size - count for _, count, _ in rows[all_there:])
        told = coverage["expected"] - coverage["got"] - coverage["skipped"]
        assert told + coverage["skipped"] >= missing, (coverage, missing)
        return job

    @staticmethod
    def check_presence(job, rows):
        """The description's runs have no node that is missing from these rows; rows may have one more,
        of a part that came when values had stood in for it."""
        runs = [(run["first"] / 1e9, run["nodes"]) for run in job["presence"]]
        for at, count, _ in rows:
            told = [nodes for first, nodes in runs if first <= at + PERIOD / 10]
            if told and abs(at / PERIOD - round(at / PERIOD)) < 0.01:  # beside the ticks are no rows
                assert told[-1] <= count, f"{count} nodes at {at}: {runs}"

    @contextlib.contextmanager
    def serving(self):
        """`sonde serve` of the archive: gives what asks it, as _request does."""
        token = self.directory / "token"
        token.write_text(secrets.token_hex(16))
        token.chmod(0o600)
        with subprocess.Popen(
            [SONDE, "--archive", self.archive, "serve", "--port", "0", "--token-file", token],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as server:  # fmt: skip
            line = server.stdout.readline()
            try:
                port = re.search(r"http://[^/]*:([0-9]+)/", line)
                assert port, line
                self._live = {"port": int(port[1]), "token": token.read_text(), "pid": os.getpid()}
                yield lambda path, body=None: self._request(path, body, contextlib.nullcontext())
            finally:
                self._live = None
                server.terminate()

    def stored_rows(self):
        """As rows(), of the archived profile."""
        with self.serving():
            return self._rows(contextlib.nullcontext(), {"job": self.name})

    @staticmethod
    def check_no_gap(rows, late=0.0):
        """From the first row that has most nodes on there is one for each tick, and none has fewer than
        one that comes later. `late`: for how many seconds daemons may have waited for a processor."""
        most = max(count for _, count, _ in rows)
        first = next(i for i, row in enumerate(rows) if row[1] == most)
        rows = rows[first:]
        for before, after in itertools.pairwise(rows):
            assert after[0] - before[0] < 1.5 * PERIOD + late, story(rows, after[0])
            assert after[1] <= before[1], story(rows, after[0])

    def stored_total(self):
        """What the archived profile says was counted; None if nothing."""
        for entry in self.stored()["footprint"]:
            if entry["metric"] == COUNTED:
                return entry["last"]
        return None

    def check_stored_total(self):
        """The archived profile has what was counted."""
        total = self.stored_total()
        assert self.as_counted(total), (
            f"{total} is stored, {self.injected} was counted: {story(self.stored_rows(), 0)}; "
            f"{self.stored()['job']['notes']}"
        )

    def close(self):
        for node in self.nodes:
            node.close()
        if self.head is not None:
            self.head.close()
        for pid in self.heads():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wires.reset()
        self.closed = True
