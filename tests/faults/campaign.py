"""Rounds of random faults, see scripts/faults. A round is repeated by its seed: what each process does and
what fails is drawn from that alone, but not who is faster, so one seed may have to be run some times."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import power

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))
SONDE = BUILD / "cli" / "sonde"
ACTOR = BUILD / "tests" / "faults" / "archive_actor"
DISK = BUILD / "tests" / "faults" / "breaking_disk.so"

START = 1_790_000_000  # s: of the steps that stay
OLD = 1_000_000_000  # s: of those that a prune may delete
SILENCE = 660  # s: longer than a claim is believed
PATIENCE = 60  # s: who takes longer is stuck
FAULTS = {"kill": 30, "tear": 10, "stop": 10, "rest": 10, "full": 12, "eio": 9, "unread": 9, "emfile": 8}
CLAIM_TRIES = 3  # who finds the leftovers of a killed claim removes one of them at each
MOST_CALLS = 120  # a fault comes at one of the first so many


class Process:
    """One program of a round, with what it said."""

    def __init__(self, rnd, words, fault="none", host=0, ahead=0):
        self.words = [str(word) for word in words]
        self.fault = fault
        at = int(MOST_CALLS ** rnd.random.random()) if fault != "none" else 0
        environment = dict(os.environ)
        environment.update(
            LD_PRELOAD=str(DISK), SONDE_DISK_ROOT=str(rnd.archive), SONDE_DISK_TELL=str(rnd.told),
            SONDE_DISK_FAULT=fault, SONDE_DISK_AT=str(at), SONDE_DISK_HOST=str(host),
            SONDE_DISK_FOR=str(rnd.random.choice((1, 1, 5, 40))), SONDE_DISK_AHEAD=str(ahead),
            SONDE_ARCHIVE=str(rnd.archive), SONDE_CONF="/dev/null", HOME=str(rnd.dir),
        )  # fmt: skip
        self.out = tempfile.TemporaryFile(dir=rnd.dir)
        self.err = tempfile.TemporaryFile(dir=rnd.dir)
        self.child = subprocess.Popen(self.words, stdout=self.out, stderr=self.err, env=environment,
                                      stdin=subprocess.DEVNULL)  # fmt: skip

    def is_suspended(self):
        try:
            state = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1]
        except OSError:
            return False
        return state.split()[0] == "T"

    def said(self):
        self.out.seek(0)
        # A process that was killed may have left half a line.
        return [line.split() for line in self.out.read().decode(errors="replace").split("\n")[:-1]]

    def complaint(self):
        self.err.seek(0)
        return self.err.read()[-400:].decode(errors="replace").strip()

    def close(self):
        self.out.close()
        self.err.close()


class Acknowledged:
    """What the product said is stored."""

    def __init__(self):
        self.made = set()
        self.blocks = collections.Counter()
        self.finished = set()
        self.stored = set()
        self.tags = collections.defaultdict(set)  # of a key

    def take(self, process):
        for kind, *words in process.said():
            if kind == "made":
                self.made.add(words[0])
            elif kind == "block":
                self.blocks[words[0]] = max(self.blocks[words[0]], int(words[1]))
            elif kind == "finished":
                self.finished.add(words[0])
            elif kind == "stored":
                self.stored.add(words[0])


class Round:
    def __init__(self, seed, folder, imported):
        self.seed = seed
        self.random = random.Random(seed)
        self.dir = pathlib.Path(folder)
        self.archive = self.dir / "archive"
        self.told = self.dir / "told"
        self.imported = imported
        self.known = Acknowledged()
        self.processes = []
        self.wrong = []
        self.stuck = 0
        self.cuts = 0
        self.clocks = 0
        self.power = False
        self.hosts = 1
        self.tags = 0
        self.half_imported = set()  # files whose import has failed or was killed

    # The processes.

    def start(self, words, faulty=True):
        drawn = "none"
        if faulty and self.random.random() < 0.6:
            drawn = self.random.choices(list(FAULTS), list(FAULTS.values()))[0]
        ahead = self.random.choice((86_400, 40_000_000)) if self.random.random() < 0.1 else 0
        self.clocks += ahead != 0
        process = Process(self, words, drawn, self.random.randrange(self.hosts), ahead)
        self.processes.append(process)
        return process

    def writer(self, number):
        old = self.random.random() < 0.2
        start = (OLD if old else START) + number
        how = "leave" if self.random.random() < 0.15 else "end"
        blocks = self.random.choice((1, 2, 6, 30))
        return [ACTOR, "write", self.archive, number, start * 10**9, blocks, how]

    def command(self):
        """One that is no writer, with what it does if it succeeds."""
        kind = self.random.choices(
            ("check", "tag", "compact", "prune", "repair", "verify", "import", "ls"),
            (4, 4, 2, 3, 2, 1, 2, 2),
        )[0]
        if kind == "check":
            return [ACTOR, "check", self.archive, 1]
        if kind == "tag":
            return self.tag()
        if kind == "prune":
            return [SONDE, "archive", "prune", "--age", "3650d"]
        if kind == "import":
            return [SONDE, "import", self.random.choice(self.imported)[1]]
        if kind == "ls":
            return [SONDE, "ls", "--all"]
        return [SONDE, "archive", kind]

    def tag(self):
        keys = sorted(key for key in self.known.stored if int(key.rsplit(".", 1)[1]) >= START)
        if not keys:
            return [SONDE, "ls"]
        key = self.random.choice(keys)
        # Of several at once one does not know which comes last.
        self.tags += 1
        return [SONDE, "tag", key, f"n{self.tags}"]

    def take(self, process):
        """What a process that has ended was told."""
        self.known.take(process)
        words, ended = process.words, process.child.returncode == 0
        if words[1:2] == ["tag"] and ended:
            self.known.tags[words[2]].add(words[3])
        if words[1:2] == ["import"]:
            keys = {key for key, file in self.imported if str(file) == words[2]}
            if ended:
                self.known.stored |= keys
            else:
                self.half_imported.add(words[2])

    def wait(self, processes, patience=PATIENCE):
        deadline = time.monotonic() + patience
        for process in processes:
            try:
                process.child.wait(max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.stuck += 1
                self.wrong.append(f"stuck: {' '.join(process.words)}")
                process.child.kill()
                process.child.wait()

    # The faults that come from outside.

    def age(self):
        """As if everybody had been suspended for longer than a claim is believed."""
        for folder, folders, files in os.walk(self.archive, topdown=False):
            for name in files + folders:
                path = os.path.join(folder, name)
                try:
                    info = os.lstat(path)
                    os.utime(path, (info.st_atime, info.st_mtime - SILENCE), follow_symlinks=False)
                except OSError:
                    pass

    def cut_power(self):
        for process in self.processes:
            process.child.kill()
        for process in self.processes:
            process.child.wait()
        lines = self.told.read_text().splitlines()
        power.cut(self.archive, [line for line in lines if not line.startswith("fault")], self.random)
        self.told.write_text("".join(line + "\n" for line in lines if line.startswith("fault")))
        self.cuts += 1
        self.power = True

    def settle(self, group):
        """Until all of a group have ended or are suspended; those go on when the others have ended."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            running = [one for one in group if one.child.poll() is None]
            if all(one.is_suspended() for one in running):
                break
            time.sleep(0.003)
        suspended = [one for one in group if one.child.poll() is None and one.is_suspended()]
        if suspended and self.hosts > 1:
            # Their claims and their steps may be taken now.
            self.age()
            for words in ([ACTOR, "check", self.archive, 1], self.command()):
                other = self.start(words)
                self.wait_suspending(other)
                if other.child.poll() is not None:
                    self.take(other)
        for one in self.processes:
            if one.child.poll() is None:
                one.child.send_signal(signal.SIGCONT)

    def wait_suspending(self, process):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and process.child.poll() is None:
            if process.is_suspended():
                return
            time.sleep(0.003)

    # A round.

    def run(self):
        self.told.touch()
        self.hosts = 2 if self.random.random() < 0.4 else 1
        server = None
        if self.random.random() < 0.25:
            server = self.start([SONDE, "serve", "--listen", "127.0.0.1:0"])
        number = 1
        cut_in = self.random.randrange(3) if self.random.random() < 0.12 else None
        for wave in range(3):
            group = []
            for _ in range(self.random.randint(1, 3)):
                group.append(self.start(self.writer(number)))
                number += 1
            for _ in range(self.random.randint(1, 2)):
                group.append(self.start(self.command()))
            if cut_in == wave:
                time.sleep(self.random.random() * 0.06)
                self.cut_power()
                server = None
            self.settle(group)
            self.wait(group)
            for process in group:
                self.take(process)
        if server is not None:
            server.child.send_signal(signal.SIGCONT)
            server.child.terminate()
            self.wait([server])
        self.wait([one for one in self.processes if one.child.poll() is None])
        self.check()
        for process in self.processes:
            process.close()

    def check(self):
        """Everything once more, without faults and when all claims have become old."""
        self.age()
        for key, file in self.imported:
            if str(file) in self.half_imported and key not in self.known.stored:
                self.complete(file)
        last = Process(self, [ACTOR, "check", self.archive])
        self.wait([last])
        self.processes.append(last)
        lines = last.said()
        if not any(line[0] == "checked" for line in lines):
            self.wrong.append(f"the check ended with {last.child.returncode}: {last.complaint()}")
        there = {}
        for kind, *words in lines:
            if kind == "profile":
                if words[0] in there:
                    self.wrong.append(f"twice: {words[0]}")
                there[words[0]] = words[1:]
            elif kind in ("problem", "note") or (kind == "damaged" and not self.may_go(words[0])):
                self.wrong.append(f"{kind} {' '.join(words)}")
        self.compare(there)
        self.look_at_folders()

    def complete(self, file):
        """The same command completes an import that was killed."""
        for _ in range(CLAIM_TRIES):
            again = Process(self, [SONDE, "import", file])
            self.processes.append(again)
            self.wait([again])
            self.take(again)
            if again.child.returncode == 0:
                return
        self.wrong.append(f"import failed: {again.complaint()}")

    def may_go(self, key):
        """Whether a prune may delete it, or what there was of it before its writer went on."""
        return int(key.rsplit(".", 1)[1]) < START * 10**9

    def compare(self, there):
        known = self.known
        # What was only written to live/ is safe from kills, and not from the end of the machine.
        promised = known.stored if self.power else known.made | known.stored
        for key in sorted(promised):
            if self.may_go(key):
                continue
            if key not in there:
                self.wrong.append(f"lost: {key}")
                continue
            state, blocks, tags, where = there[key]
            if where != "db":
                self.wrong.append(f"left in live/: {key}")
            if int(blocks) < known.blocks[key] and not (self.power and key not in known.stored):
                self.wrong.append(f"lost blocks: {key} has {blocks} of {known.blocks[key]}")
            if (key in known.stored or key in known.finished) and state != "completed":
                self.wrong.append(f"lost its end: {key} is {state}")
            if not known.tags[key] <= set(tags.split(",")):
                self.wrong.append(f"lost tags: {key} has {tags}, not all of {sorted(known.tags[key])}")

    def look_at_folders(self):
        def names(folder):
            path = self.archive / folder
            return sorted(os.listdir(path)) if path.is_dir() else []

        for name in names("live"):
            # A power cut may leave half a step, which is kept for people.
            if not (self.power and ".corrupt" in name):
                self.wrong.append(f"left: live/{name}")
        for name in names("waiting"):
            self.wrong.append(f"left: waiting/{name}")

    def faults(self):
        lines = self.told.read_text().splitlines() if self.told.exists() else []
        kinds = collections.Counter(line.split()[1] for line in lines if line.startswith("fault"))
        kinds["power"] = self.cuts
        kinds["clock"] = self.clocks
        kinds["locks"] = self.hosts - 1
        return +kinds


class Campaign:
    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.sums = collections.Counter()
        self.kinds = collections.Counter()
        self.next = options.seed
        self.began = time.monotonic()

    def wanted(self):
        """The seed of the next round, or None."""
        with self.lock:
            options = self.options
            enough = (
                sum(self.kinds.values()) >= options.faults
                if options.faults
                else self.next - options.seed >= options.rounds
            )
            if enough:
                return None
            self.next += 1
            return self.next - 1

    def work(self, imported, base):
        while (seed := self.wanted()) is not None:
            folder = base / str(seed)
            folder.mkdir()
            one = Round(seed, folder, imported)
            try:
                one.run()
            except Exception as error:  # a mistake of the campaign is a wrong round
                one.wrong.append(f"campaign: {error!r}")
                for process in one.processes:
                    process.child.kill()
                    process.child.wait()
            self.count(one)
            if not (one.wrong and self.options.keep):
                shutil.rmtree(folder, ignore_errors=True)

    def count(self, one):
        with self.lock:
            self.kinds += one.faults()
            self.sums.update(
                rounds=1,
                processes=len(one.processes),
                acknowledged=len(one.known.stored | one.known.finished),
                stored=len(one.known.stored),
                blocks=sum(one.known.blocks.values()),
                lost=sum(what.startswith("lost") for what in one.wrong),
                wrong=bool(one.wrong),
                stuck=one.stuck,
            )
            for what in one.wrong:
                print(f"seed {one.seed}: {what}", flush=True)
            if self.sums["rounds"] % 100 == 0:
                print(self.line(), flush=True)

    def line(self):
        sums = self.sums
        return (
            f"{sum(self.kinds.values())} faults, {sums['rounds']} rounds, {sums['processes']} processes, "
            f"{self.kinds['power']} power cuts, {sums['acknowledged']} profiles acknowledged "
            f"({sums['stored']} in db/, {sums['blocks']} blocks), {sums['lost']} lost, "
            f"{sums['wrong']} wrong rounds, {sums['stuck']} stuck; seeds {self.options.seed} to "
            f"{self.next - 1}, {time.monotonic() - self.began:.0f} s"
        )


def prepare(base):
    """Profiles in files, to be imported: (key, file)."""
    archive = base / "elsewhere"
    environment = dict(os.environ, SONDE_ARCHIVE=str(archive), SONDE_CONF="/dev/null")
    files = []
    for number in (9001, 9002):
        done = subprocess.run(
            [ACTOR, "write", archive, str(number), str((START + number) * 10**9), "4", "end"],
            env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        key = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("stored"))
        file = base / f"{number}.sonde"
        subprocess.run([SONDE, "export", str(number), "--to", file], env=environment, check=True,
                       capture_output=True)  # fmt: skip
        files.append((key, file))
    return files


def main(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--faults", type=int, default=0, help="instead of --rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="rounds at once")
    parser.add_argument("--keep", action="store_true", help="the folders of wrong rounds")
    options = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    base = pathlib.Path(tempfile.mkdtemp(prefix="sonde-faults-", dir=memory))
    campaign = Campaign(options)
    try:
        imported = prepare(base)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(campaign.work, imported, base) for _ in range(options.jobs)]:
                done.result()
    finally:
        if not options.keep:
            shutil.rmtree(base, ignore_errors=True)
    print(campaign.line())
    print(", ".join(f"{kind} {count}" for kind, count in sorted(campaign.kinds.items())))
    if options.keep and campaign.sums["wrong"]:
        print(f"kept in {base}")
    return 1 if campaign.sums["wrong"] or campaign.sums["stuck"] else 0
