"""A step of USER's that runs, one that has ended, and USER's servers: what a stranger is to get nothing of."""

import contextlib
import functools
import hmac
import itertools
import pwd
import re
import subprocess

import belongings
import pytest
from conftest import BUILD, OTHER_USER, ROOT, SONDE, USER, wait_for
from tap import Tap, credentials_in
from telemetry import LEVEL, Live, Step, complete, job_of, notes_of, tasks_of
from test_site import BEHIND_A_PROXY, SSHD, site, tunnel
from test_spank_key import KEY

REMARK = "a remark that is for nobody else"
# The application, and what a stranger makes of it: who is asked for the effective user says what the stranger likes,
# so libsonde takes the daemon of another user for its own.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libclient/sonde_query.h"
uid_t geteuid(void) { return getenv("PRETENDS") ? (uid_t)atoi(getenv("PRETENDS")) : getuid(); }
static int work(const char* until) {
  sonde_add(sonde_counter("attempts_marker_total", "1", "Work done", 1, NULL, 0), 1);
  sonde_annotate("%(remark)s");
  while (access(until, F_OK) != 0) usleep(20000);
  return 0;
}
static int tell(const char* name) {
  sonde_add(sonde_counter(name, "1", "Told", 1, NULL, 0), 1);
  printf("%%s\\n", sonde_strerror(sonde_status()));
  return 0;
}
static int ask(void) {
  int code = SONDE_OK;
  sonde_list_t* list = NULL;
  sonde_query_t* query = sonde_query_open(5000, &code);
  if (query != NULL) code = sonde_query_list(query, NULL, 5000, &list);
  for (size_t i = 0; list != NULL && i < list->metric_count; ++i) printf("%%s ", list->metrics[i].name);
  if (list == NULL) fprintf(stderr, code == SONDE_LOST ? "SONDE_LOST" : "code %%d", code);
  return list == NULL;
}
int main(int argc, char** argv) {
  if (strcmp(argv[1], "work") == 0) return work(argv[2]);
  return strcmp(argv[1], "tell") == 0 ? tell(argv[2]) : ask();
}
""" % {"remark": REMARK}


class World:
    """A step of USER's that runs, one that has ended, and USER's servers; what a stranger may know of them, and what
    only root can."""

    def __init__(self, cluster, directory, stack):
        self.cluster, self.directory, self.stack = cluster, directory, stack
        self.archive, self.log_dir = cluster.archive(), cluster.dir / "tmp" / USER
        cluster.conf(f"log_dir = {self.log_dir}\nlog_level = debug\n")
        self.numbers = itertools.count()
        self.program = self._build()
        self._finish_one()
        tap = Tap()
        stack.callback(tap.end)
        self._start(stack)
        self.serve = self._serve(stack)
        self._watch()
        self.wire = tap.stop()
        self.site = stack.enter_context(site(cluster, BEHIND_A_PROXY))
        self.tokens = {user: self.site.token(user) for user in (USER, OTHER_USER)}

    def _build(self):
        (self.directory / "program.c").write_text(PROGRAM)
        program = self.directory / "program"
        flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", f"-Wl,-rpath,{BUILD / 'libclient'}"]
        subprocess.run(["cc", "-o", program, self.directory / "program.c", *flags, "-lsonde"], check=True)
        return program

    def _finish_one(self):
        step = Step(self.cluster, ["srun", "-N1", *LEVEL, "sleep", "0.3"])
        assert step.wait()[0] == 0, step.stderr
        self.finished = step.id
        # As homes are on many clusters: what protects is the modes that Sonde gives.
        home = self.cluster.home()
        for directory in (home, home / ".local", home / ".local" / "share", self.log_dir):
            directory.chmod(0o755)

    def _start(self, stack):
        self.until = self.directory / "until"
        stack.callback(self.until.touch)
        options = ["-N2", "--telemetry-level=3", LEVEL[1]]
        self.step = Step(self.cluster, ["srun", *options, self.program, "work", self.until])

        def both_and_the_remark():
            shown = self.step.profile()
            remarks = shown and [remark["text"] for remark in shown["profile"].get("moments", {}).get("remarks", [])]
            return shown and REMARK in remarks and len(job_of(shown)["nodes"]) == 2

        # By a command, for the token of this step must not be on the wire.
        wait_for(both_and_the_remark, "two nodes and the remark")
        self.notes = notes_of(self.step.profile())
        self.live = self.step.live()
        self.http = ("127.0.0.1", self.live.port)
        by_role = {}
        for pid, line in self.cluster.daemons():
            if line.endswith(f" {self.step.id}"):
                by_role.setdefault(line.split()[1].removeprefix("--"), []).append(pid)
        (self.head,), (self.node, _) = by_role["head"], by_role["node"]
        self.daemons = {"head": self.head, "node": self.node}
        self.rendezvous = next(port for _, port in belongings.listening(self.head) if port != self.live.port)
        self.application, environ = next(iter(tasks_of(self.program)))
        # Of the task's node, whichever of the two it is.
        pairs = (entry.decode().partition("=") for entry in environ if entry.startswith(b"SONDE_"))
        self.variables = {name: value for name, _, value in pairs}

    def _serve(self, stack):
        out = self.directory / "serve.out"
        out.touch(0o600)
        with open(out, "w") as file:
            self.server = self.cluster.popen([SONDE, "serve", "--port", "0"], user=USER, stdout=file)
        stack.callback(lambda: (self.server.terminate(), self.server.wait(20)))
        address = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)")
        found = wait_for(lambda: address.search(out.read_text()), "the address of sonde serve", 20)
        return Live("127.0.0.1", int(found[1]), found[2])

    def _watch(self):
        """What the wire is to carry besides: questions of the server and of commands to the head."""
        assert REMARK in self.serve.get(f"/api/v1/profile?job={self.step.id}")
        for words in (["show", self.step.id], ["url", self.step.id], ["hints", self.step.id]):
            self.cluster.run([SONDE, *words], user=USER)

    @functools.cached_property
    def key(self):
        """The step's: of the credentials of munge on the wire root opens the one that holds it."""
        if not self.credentials:
            pytest.skip("Slurm does not authenticate by munge here")
        for credential in self.credentials:
            for key in KEY.findall(self.unmunge(credential, "root")):
                token = hmac.digest(bytes.fromhex(key), b"http token", "sha256").hex()
                if token.startswith(self.live.token):
                    return key
        return pytest.fail("root does not find the step's key on the wire")

    @functools.cached_property
    def credentials(self):
        return credentials_in(self.wire.values())

    def unmunge(self, credential, user):
        words = ["unmunge", f"--socket={self.cluster.dir}/run/munge.sock"]
        return self.cluster.run(words, user=user, input=credential, errors="replace").stdout

    @functools.cached_property
    def laptop(self):
        """The end of USER's tunnel to the site's server, to which everybody on the laptop may connect."""
        if SSHD is None:
            pytest.skip("needs sshd: scripts/deps")
        directory = self.directory / "tunnel"
        directory.mkdir()
        return self.stack.enter_context(tunnel(directory, USER, self.site.listen))

    def unused(self, name):
        return f"{name}_{next(self.numbers)}"

    def own(self, user, *words):
        """Runs the program as that user as if it were in USER's step, and that user's."""
        given = {**self.variables, "PRETENDS": pwd.getpwnam(USER).pw_uid}
        variables = [f"{name}={value}" for name, value in given.items()]
        return self.cluster.run(["env", *variables, self.program, *words], user=user)

    @contextlib.contextmanager
    def archive_is_open(self):
        """As if USER had let others into the directories, but not into the files."""
        directories = [path for path in (self.archive, *self.archive.rglob("*")) if path.is_dir()]
        modes = [path.stat().st_mode for path in directories]
        try:
            for path in directories:
                path.chmod(0o755)
            yield
        finally:
            for path, mode in zip(directories, modes, strict=True):
                if path.exists():
                    path.chmod(mode)

    def check_undisturbed(self):
        """After all of it the step is complete and knows of nothing."""
        running = {pid for pid, _ in self.cluster.daemons()}
        assert {self.head, self.node} <= running and self.server.poll() is None
        self.until.touch()
        code, _ = self.step.wait()
        assert code == 0, self.step.stderr
        shown = self.step.profile()
        assert job_of(shown)["state"] == "completed" and len(job_of(shown)["nodes"]) == 2
        assert complete(shown) and notes_of(shown) == self.notes
        self.cluster.wait_clean()
