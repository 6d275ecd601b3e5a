"""The guests of scripts/guest: instances of user-mode Linux, their network, and what is done to them."""

import contextlib
import ctypes
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time

NETWORK = "10.77.0."
BRIDGE = "guests"


class GuestError(Exception):
    """What failed and what to do about it, for the person at the terminal."""


def run_quietly(command, what):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GuestError(f"{what} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def die_with_parent():
    """However this script ends, the guest goes with it."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Guest:
    """One instance of user-mode Linux, and its directory."""

    def __init__(self, root, directory, name, memory):
        self.name = name
        self.directory = directory
        self.process = None
        # Programs of the guest that its kernel traces no more, because that was killed alone, would go on
        # as programs of this machine, as root. So the guest is a namespace of processes: with their first,
        # the shell, all end at once.
        self._command = ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", '"$@"; exit', "sh"]
        self._command += ["linux.uml", f"mem={memory}", "root=/dev/root", "rootfstype=hostfs"]
        self._command += [f"rootflags={root}", "ro", "init=/sbin/guest-init", f"guest_dir={directory}"]
        self._command += [f"uml_dir={directory}", "con=null", "con0=null,fd:1", "quiet"]
        directory.mkdir()

    def write(self, shares, command):
        lines = []
        for name, path in shares:
            place = shlex.quote(f"/share/{name}")
            lines.append(f"mkdir {place}; mount -t hostfs none {place} -o {shlex.quote(path)}\n")
        (self.directory / "shares").write_text("".join(lines))
        (self.directory / "command").write_text(f"exec {shlex.join(command)}\n")

    def join_network(self, address, mac, hosts):
        """To be called after write(): what INIT reads has this too."""
        self._command.append(f"eth0=tuntap,{self.name},{mac}")
        (self.directory / "hosts").write_text(hosts)
        with open(self.directory / "shares", "a", encoding="utf-8") as lines:
            # An address that other guests have too would lead them astray.
            lines.write(f"hostname {self.name}; ip addr del 192.0.2.1/32 dev lo\n")
            lines.write(f"ip link set eth0 up; ip addr add {address}/24 dev eth0\n")
            lines.write("mount --bind /guest/hosts /etc/hosts\n")

    def start(self):
        with open(self.directory / "console", "ab") as console:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        # A session of its own has a priority of its own: autogroup in sched(7).
        with contextlib.suppress(OSError):
            nice = os.getpriority(os.PRIO_PROCESS, 0)
            pathlib.Path(f"/proc/{self.process.pid}/autogroup").write_text(str(nice))
        # What is done to a guest is done to its namespace.
        while self.runs() and self._namespace() is None:
            time.sleep(0.001)

    def _namespace(self):
        """That of its processes. None until unshare has made it: this machine's own is not the guest's."""
        with contextlib.suppress(OSError):
            made = os.readlink(f"/proc/{self.process.pid}/ns/pid_for_children")
            if made != os.readlink("/proc/self/ns/pid"):
                return made
        return None

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def _processes(self):
        """pid -> /proc/PID/status of all that the guest is made of."""
        found = {}
        own = self._namespace()
        if own is None:
            return found
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(folder / "ns" / "pid") == own:
                    found[int(folder.name)] = (folder / "status").read_text()
        return found

    def end(self):
        """Returns when nothing is left: the first process waits for the others, and ours for the first."""
        if not self.runs():
            return
        first = [pid for pid, status in self._processes().items() if re.search(r"^NSpid:.*\t1$", status, re.M)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(first[0] if first else self.process.pid, signal.SIGKILL)
        self.process.wait()

    def signal_kernel(self, number):
        """The guest's programs stand still with its kernel, which traces them; a signal to one of them
        would go to the kernel, which knows only those that it sent."""
        for pid, status in self._processes().items():
            if "\nTracerPid:\t0\n" in status:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def words(self):
        """What its console and its command said last."""
        parts = []
        for name in ("console", "stderr"):
            file = self.directory / name
            text = file.read_text(errors="replace") if file.exists() else ""
            parts.append(f"the end of {name} of {self.name}:\n{text[-3000:]}")
        return "\n".join(parts)


def ip(*words):
    run_quietly(["ip", *words], f"ip {' '.join(words)}")


class Network:
    """Guests on a bridge in a network namespace of this process, which ends with it and its guests."""

    def __init__(self):
        clone_newnet = 0x40000000
        if ctypes.CDLL(None, use_errno=True).unshare(clone_newnet) != 0:
            raise GuestError(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("link", "set", BRIDGE, "up")

    def add(self, guests):
        hosts = "127.0.0.1 localhost\n"
        hosts += "".join(f"{NETWORK}{i} {guest.name}\n" for i, guest in enumerate(guests, 1))
        for i, guest in enumerate(guests, 1):
            ip("tuntap", "add", "dev", guest.name, "mode", "tap")
            self.plug(guest)
            ip("link", "set", guest.name, "up")
            # The same at every boot: for seconds the others would send to the one before.
            guest.join_network(f"{NETWORK}{i}", f"02:00:00:00:00:{i:02x}", hosts)

    def plug(self, guest):
        ip("link", "set", guest.name, "master", BRIDGE)

    def unplug(self, guest):
        ip("link", "set", guest.name, "nomaster")


class Questions:
    """What main asks for, by files in its directory."""

    def __init__(self, network, main, nodes):
        self._nodes = {node.name: node for node in nodes}
        self._ask, self._told = main.directory / "ask", main.directory / "told"
        self._ask.mkdir()
        self._told.mkdir()
        self._verbs = {
            "off": Guest.end,
            "on": self.turn_on,
            "freeze": lambda node: node.signal_kernel(signal.SIGSTOP),
            "thaw": lambda node: node.signal_kernel(signal.SIGCONT),
            "unplug": network.unplug,
            "plug": network.plug,
        }

    def answer(self):
        for file in self._ask.glob("[0-9]*"):
            verb, _, name = file.read_text().strip().partition(" ")
            try:
                if verb not in self._verbs or name not in self._nodes:
                    raise GuestError(f"unknown request: {verb} {name}")
                self._verbs[verb](self._nodes[name])
                answer = "ok"
            except (GuestError, OSError) as error:
                answer = str(error)
            file.unlink()
            (self._told / f"{file.name}.new").write_text(answer)
            (self._told / f"{file.name}.new").rename(self._told / file.name)

    def turn_on(self, node):
        if node.runs():
            raise GuestError(f"{node.name} is on")
        node.start()


def wait(main, questions, timeout):
    """Until main has ended; False if it did not in time."""
    deadline = time.monotonic() + timeout
    while main.runs():
        if time.monotonic() > deadline:
            return False
        if questions:
            questions.answer()
        with contextlib.suppress(subprocess.TimeoutExpired):
            main.process.wait(0.05 if questions else min(timeout, 1.0))
    return True
