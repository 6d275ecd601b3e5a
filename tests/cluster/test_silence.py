"""A daemon that fails says why, once, where somebody looks; what is not watched is told or watched."""

import contextlib
import grp
import os
import pwd
import re
import signal
import struct
import subprocess
import time

import pytest
from conftest import PLUGIN, SONDE, SONDED, USER
from telemetry import LEVEL

PLUGSTACK = (
    f"optional {PLUGIN} sonded=@DIR@/bin/sonded sonde={SONDE} config=@DIR@/sonde.conf"
    " state=@DIR@/counters\n"
)
EARLY = "ended early: {}; the step goes on without telemetry on this node"


@pytest.fixture(scope="module")
def cluster(make_cluster):
    """As everybody's, but with daemons of its own, which tests can change."""
    running = make_cluster(plugstack=PLUGSTACK)
    (running.dir / "bin").mkdir()
    return running


@pytest.fixture(autouse=True)
def programs(cluster):
    """The folder of the daemons, as it should be, and nothing left of the test."""
    folder = cluster.dir / "bin"
    for name in ("sonded", "sonded-head"):
        (folder / name).unlink(missing_ok=True)
    # No links: the daemon looks for sonded-head beside the file that it is.
    subprocess.run(["cp", SONDED, f"{SONDED}-head", folder], check=True)
    cluster.conf("")
    yield folder
    cluster.cancel_all()
    wait_for_end(cluster)


def own_daemons(cluster):
    """pid -> command line of the daemons in this cluster's folder."""
    found = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{entry}/exe").startswith(f"{cluster.dir}/bin/"):
                with open(f"/proc/{entry}/cmdline", encoding="utf-8") as file:
                    found[int(entry)] = file.read().split("\0")
    return found


def wait_for_end(cluster):
    cluster.wait_for(lambda: not own_daemons(cluster), "the end of the daemons", 10)


def said(cluster, node="n1"):
    """What the plugin has written into slurmd's log about daemons."""
    return re.findall(r"sonde: (the daemon of step .*|sonded has not finished.*)", cluster.log(node))


@contextlib.contextmanager
def hears(cluster, *expected, node="n1"):
    """Each of the expected texts comes once into slurmd's log, and no other word of the plugin's."""
    before = len(said(cluster, node))
    yield
    lines = cluster.wait_for(lambda: said(cluster, node)[before:] or not expected, "a line in the log")
    lines = [] if lines is True else lines
    assert len(lines) == len(expected), lines
    for line, text in zip(lines, expected):
        assert text in line


def counters(cluster, node="n1"):
    path = cluster.dir / "counters" / f"{node}.prom"
    text = path.read_text() if path.exists() else ""
    found = {}
    for name, labels, value in re.findall(r"^sonde_daemon_(\w+)\{(.*)\} (\d+)$", text, re.MULTILINE):
        found[name, *re.findall(r'reason="(\w+)"', labels)] = int(value)
    return found


@contextlib.contextmanager
def counts(cluster, reason):
    def count():
        return counters(cluster).get(("failures_total", reason), 0)

    before = count()
    yield
    assert count() == before + 1


def running_step(cluster):
    """A step on n1, the pid of its node's daemon, and the file that ends the step."""
    go = cluster.home() / "go"
    go.unlink(missing_ok=True)
    command = f"until test -e {go}; do sleep 0.02; done"
    step = cluster.popen(["srun", "-N1", "-w", "n1", *LEVEL, "bash", "-c", command])
    (pid,) = cluster.wait_for(
        lambda: [p for p, words in own_daemons(cluster).items() if words[1:2] == ["--node"]], "the daemon"
    )
    return step, pid, go


# --- Daemons that end early


@pytest.mark.parametrize(
    "how, reason, kind",
    [
        (signal.SIGKILL, "it was killed, or ended without a word", "killed"),
        (signal.SIGSEGV, "sonded crashed: segmentation fault", "crashed"),
        (signal.SIGABRT, "sonded crashed: abort", "crashed"),
    ],
)
def test_killed_daemon_of_a_node_is_in_the_log_and_counted(cluster, how, reason, kind):
    step, pid, go = running_step(cluster)
    cluster.wait_for(lambda: is_ready(pid), "the daemon's own signals")
    with counts(cluster, kind), hears(cluster, EARLY.format(reason)):
        os.kill(pid, how)
        cluster.wait_for(lambda: pid not in own_daemons(cluster), "the daemon's end")
        go.touch()
        assert step.wait(timeout=20) == 0
    # srun's side goes on as before, and none of this is on its stderr.
    stderr = step.stderr.read()
    assert "ended early" not in stderr
    assert "node n1 was lost" in stderr or "never reported" in stderr


def is_ready(pid):
    """Whether the daemon has set its own handlers: SIGSEGV is caught."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        caught = int(re.search(r"SigCgt:\s*([0-9a-f]+)", file.read()).group(1), 16)
    return caught >> (signal.SIGSEGV - 1) & 1


# Of a step that is over before its head gets a processor.
TOO_LATE = "it has said nothing when the tasks had ended"


def says_nothing(cluster, run):
    """A machine that also runs other tests may keep a head waiting for longer than its step: that one
    is no healthy step, and another is tried."""
    for _ in range(4):
        before = len(said(cluster))
        run()
        wait_for_end(cluster)
        lines = said(cluster)[before:]
        if not any(TOO_LATE in line for line in lines):
            break
    assert not lines


@pytest.mark.parametrize("level", ["1", "2", "3", "4"])
def test_healthy_steps_say_nothing(cluster, level):
    def run():
        done = cluster.run(["srun", "-N1", "-w", "n1", f"--telemetry-level={level}", "true"])
        assert done.returncode == 0 and "error" not in done.stderr, done.stderr

    says_nothing(cluster, run)


def test_healthy_batch_steps_say_nothing(cluster):
    def run():
        job = cluster.sbatch("true", options=["-w", "n1", *LEVEL])
        assert cluster.wait_job(job) == "COMPLETED"

    says_nothing(cluster, run)


# At level 3 slurmstepd waits for the daemon's list of events, and hears this instead.
@pytest.mark.parametrize("level", ["2", "3"])
def test_rejected_launch_message_of_a_node_is_told(cluster, programs, level):
    # The other program has not the role of a node: it reads the message and refuses it.
    (programs / "sonded").rename(programs / "sonded.real")
    (programs / "sonded-head").rename(programs / "sonded.real-head")
    script = (
        "#!/bin/sh\n"
        f'if [ "$1" = --node ]; then exec {programs}/sonded.real-head "$@"; fi\n'
        f'exec {programs}/sonded.real "$@"\n'
    )
    (programs / "sonded").write_text(script)
    (programs / "sonded").chmod(0o755)
    try:
        with hears(cluster, EARLY.format("this program has not the role asked for")):
            done = cluster.run(["srun", "-N1", "-w", "n1", f"--telemetry-level={level}", "sleep", "0.3"])
        assert done.returncode == 0
        assert "1 of 1 nodes never reported" in " ".join(done.stderr.split())
    finally:
        (programs / "sonded.real").unlink()
        (programs / "sonded.real-head").unlink()


def test_head_program_that_is_missing_is_told_by_srun_and_in_a_batch_nodes_log(cluster, programs):
    (programs / "sonded-head").unlink()
    done = cluster.run(["srun", "-N1", "-w", "n1", *LEVEL, "sleep", "0.3"])
    ours = [line for line in done.stderr.splitlines() if "error: sonde" in line]
    assert done.returncode == 0 and len(ours) == 1
    reason = f"execute {programs}/sonded-head: No such file or directory"
    assert f"sonde: the head ended before the step: sonded: {reason}" in ours[0]
    wait_for_end(cluster)
    job = cluster.sbatch("sleep 0.3", options=["-w", "n1", *LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    assert EARLY.format(f"sonded: {reason}") in said(cluster)[-1]
    assert f"step {job}.batch " in said(cluster)[-1]


def test_library_that_is_missing_is_told(cluster, programs):
    for name in ("sonded", "sonded-head"):
        subprocess.run(["patchelf", "--add-needed", "libnowhere.so.1", programs / name], check=True)
    with counts(cluster, "crashed"):
        job = cluster.sbatch("sleep 0.3", options=["-w", "n1", *LEVEL])
        assert cluster.wait_job(job) == "COMPLETED"
    assert "libnowhere.so.1: cannot open shared object file" in said(cluster)[-1]
    done = cluster.run(["srun", "-N1", "-w", "n1", *LEVEL, "sleep", "0.3"])
    assert done.returncode == 0
    assert done.stderr.count("libnowhere.so.1: cannot open shared object file") == 1


def test_words_of_a_daemon_cannot_forge_a_line(cluster, programs):
    script = "#!/bin/sh\nprintf 'a\\n[2026-01-01T00:00:00] error: forged \\033[31m%0300d\\n' 7 >&2\nexit 1\n"
    (programs / "sonded").unlink()
    (programs / "sonded").write_text(script)
    (programs / "sonded").chmod(0o755)
    job = cluster.sbatch("sleep 0.3", options=["-w", "n1", *LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    line = said(cluster)[-1]
    assert "\033" not in line and "000007" in line and len(line) < 400
    assert not re.search(r"^\[2026-01-01", cluster.log("n1"), re.MULTILINE)


# --- Profiles that cannot be stored


@pytest.fixture
def full(cluster):
    """A directory of the user's on a full file system."""
    point = cluster.dir / "full"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "none", point], check=True)
    with contextlib.suppress(OSError), open(point / "ballast", "wb") as file:
        file.write(b"x" * (1 << 20))
    yield point
    subprocess.run(["umount", "-l", point], check=True)
    point.rmdir()


@pytest.fixture
def closed(cluster):
    """A directory in which the user may not write."""
    point = cluster.dir / "closed"
    point.mkdir(mode=0o755)
    yield point
    point.rmdir()


@pytest.mark.parametrize("place", ["/nonexistent", "closed", "full"])
def test_home_that_takes_no_profile_is_told(cluster, place, request):
    home = place if place.startswith("/") else request.getfixturevalue(place)
    why = "No space left on device" if place == "full" else "Permission denied"
    # Beside srun the report says it; without a report srun has one line.
    for report, words in ("full", "sonde: the profile is not stored: "), ("off", "error: sonde: the pro"):
        env = {"HOME": str(home), "SONDE_REPORT": report}
        command = ["env", *(f"{name}={value}" for name, value in env.items())]
        done = cluster.run([*command, "srun", "-N1", "-w", "n1", *LEVEL, "true"])
        assert done.returncode == 0
        told = [line for line in done.stderr.splitlines() if "the profile is not stored" in line]
        assert len(told) == 1 and words in told[0] and why in told[0], done.stderr
    # Of a batch script nobody reads the report: slurmd's log has the line.
    with counts(cluster, "profile"):
        job = cluster.sbatch("true", options=["-w", "n1", *LEVEL, f"--export=ALL,HOME={home}"])
        assert cluster.wait_job(job) == "COMPLETED"
    line = said(cluster)[-1]
    assert f"the daemon of step {job}.batch could not do all of its work: the profile is not" in line
    assert why in line


# --- What would not be watched


@pytest.mark.parametrize("export", ["NONE", "NIL"])
def test_batch_script_without_its_users_environment_is_watched(cluster, export):
    options = ["-w", "n1", "--telemetry-level=2", "--telemetry-period=100ms", f"--export={export}"]
    job = cluster.sbatch("echo socket $SONDE_SOCKET level $SONDE_LEVEL", options=options)
    assert cluster.wait_job(job) == "COMPLETED"
    output = (cluster.home() / f"slurm-{job}.out").read_text()
    assert "socket sonde/" in output and "level 2" in output


def test_batch_script_that_asked_for_nothing_is_not_watched(cluster):
    job = cluster.sbatch("echo socket=$SONDE_SOCKET.", options=["-w", "n1", "--export=NONE"])
    assert cluster.wait_job(job) == "COMPLETED"
    assert "socket=." in (cluster.home() / f"slurm-{job}.out").read_text()


def test_an_option_of_the_program_is_none_of_sruns(cluster):
    """srun --test-only ends like srun --async: it launches nothing."""
    for words in (["true", "--async"], ["--comment", "x", "true", "--async"], ["--", "true", "--async"]):
        done = cluster.run(["srun", "--test-only", "-N1", *LEVEL, *words])
        assert done.returncode == 0 and "not watched" not in done.stderr, done.stderr


# --- A stderr that is closed


@pytest.mark.parametrize("closed_ones", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_stderr_is_never_written_to(cluster, closed_ones):
    """Descriptor 2 is then a socket of srun's own; written to, srun's last words to Slurm wait for 5 s."""
    mark = cluster.home() / "ran"
    mark.unlink(missing_ok=True)
    start = time.monotonic()
    done = cluster.run(f"srun -N1 -w n1 --telemetry-level=2 touch {mark} {closed_ones}")
    assert time.monotonic() - start < 4
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and mark.exists()


# --- Logs


def test_log_follows_no_link_that_somebody_planted(cluster):
    logs = cluster.dir / "logs"
    logs.mkdir(mode=0o1777)
    logs.chmod(0o1777)
    victim = cluster.home() / "victim"
    victim.write_text("mine\n")
    os.chown(victim, os.stat(cluster.home()).st_uid, -1)
    cluster.conf(f"log_dir = {logs}\nlog_level = debug\n")
    job = cluster.sbatch("sleep 0.3", options=["-w", "n1", "-H", *LEVEL])
    (logs / f"sonded.{job}.batch.n1.log").symlink_to(victim)
    cluster.slurm("scontrol", "release", job)
    assert cluster.wait_job(job) == "COMPLETED"
    wait_for_end(cluster)
    assert victim.read_text() == "mine\n"
    job = cluster.sbatch("sleep 0.3", options=["-w", "n1", *LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    wait_for_end(cluster)
    assert (logs / f"sonded.{job}.batch.n1.log").read_text()


# --- The node's counters


def test_counters_are_in_the_form_that_node_exporter_reads(cluster):
    before = counters(cluster).get(("starts_total",), 0)
    cluster.run(["srun", "-N1", "-w", "n1", *LEVEL, "true"])
    assert counters(cluster)["starts_total",] == before + 1
    place = cluster.dir / "counters"
    assert (place.stat().st_mode & 0o7777, place.stat().st_uid) == (0o755, 0)


def test_quick_doctor_is_one_line_and_three_exit_codes(cluster, programs, tmp_path):
    def doctor(state, **env):
        words = [f"{name}={value}" for name, value in env.items()]
        command = ["env", *words, SONDE, "--config", cluster.dir / "sonde.conf", "doctor", "--quick"]
        done = cluster.run([*command, "--state", state], user="root")
        assert done.stdout.count("\n") == 1, done
        return done.returncode, done.stdout

    code, line = doctor(tmp_path)
    assert code == 0 and line.startswith("sonde: healthy, 0 daemons started")
    step, pid, go = running_step(cluster)
    os.kill(pid, signal.SIGKILL)
    cluster.wait_for(lambda: pid not in own_daemons(cluster), "the daemon's end")
    go.touch()
    step.wait(timeout=20)
    code, line = doctor(cluster.dir / "counters")
    assert code == 1 and "sonde: warning: failures: daemons failed, last " in line and "killed " in line
    code, line = doctor(tmp_path, SONDE_SONDED="/nonexistent")
    assert code == 2 and "sonde: failed: daemon: no sonded at /nonexistent" in line
    (programs / "sonded").chmod(0o700)
    code, line = doctor(tmp_path, SONDE_SONDED=programs / "sonded")
    assert code == 2 and "cannot be executed by users" in line
    code, line = doctor(tmp_path, PATH="/nonexistent")
    assert code == 1 and "which Slurm is here is not known" in line
    cluster.conf("fanout = many\n")
    code, line = doctor(tmp_path)
    assert code == 2 and "fanout = many: expected a whole number" in line


def give_access(directory, user):
    """By an access list, as setfacl writes it: version 2, then tag, permissions and id of each entry."""
    nobody = 0xFFFFFFFF
    entries = [(1, 7, nobody), (2, 1, user), (4, 0, nobody), (16, 1, nobody), (32, 0, nobody)]
    text = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(directory, "system.posix_acl_access", text)
    except OSError as error:
        pytest.skip(f"no access lists here: {error}")


FAKE_SLURMD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  if (strcmp(argv[1], "-V") == 0) return puts("slurm 1.2.3") < 0;
  return system(argv[1]) >> 8;
}
"""


def test_quick_doctor_runs_the_slurmd_above_it_if_it_is_safe(cluster):
    """Where slurmd is not root's, whoever may change it may as well change what it starts."""
    place = cluster.dir / "fake"
    place.mkdir(mode=0o755)
    slurmd = place / "slurmd"
    subprocess.run(["cc", "-x", "c", "-", "-o", slurmd], input=FAKE_SLURMD, text=True, check=True)
    state = cluster.dir / "no-state"
    doctor = f"PATH=/nonexistent {SONDE} --config {cluster.dir}/sonde.conf doctor --quick --state {state}"

    def knows(user, owner, mode):
        os.chown(slurmd, pwd.getpwnam(owner).pw_uid, 0)
        slurmd.chmod(mode)
        line = cluster.run([slurmd, doctor], user=user).stdout
        assert ("1.2.3" in line) != ("which Slurm is here is not known" in line), line
        return "1.2.3" in line

    assert knows("root", "root", 0o755)
    assert not knows("root", "root", 0o775)
    assert not knows("root", USER, 0o755)
    assert knows(USER, USER, 0o775)
    assert knows(USER, "root", 0o755)


def test_quick_doctor_looks_with_the_eyes_of_users(cluster, programs, tmp_path):
    """Root, as whom it runs, may go anywhere."""

    def doctor(sonded, before="true"):
        words = f"{before} && env SONDE_SONDED={sonded} {SONDE} --config {cluster.dir}/sonde.conf doctor --quick"
        done = cluster.run(["unshare", "--mount", "sh", "-c", f"{words} --state {tmp_path}"], user="root")
        assert done.stdout.count("\n") == 1, done
        return done.returncode, done.stdout

    assert doctor(programs / "sonded")[0] == 0
    inner = cluster.dir / "inner"
    (inner / "most").mkdir(parents=True)
    for directory in (inner, inner / "most"):
        directory.chmod(0o755)
    subprocess.run(["cp", SONDED, f"{SONDED}-head", inner / "most"], check=True)
    assert doctor(inner / "most" / "sonded")[0] == 0
    inner.chmod(0o700)
    told = f"users cannot get to {inner}/most/sonded: chmod o+x {inner}"
    code, line = doctor(inner / "most" / "sonded")
    assert code == 2 and f"daemon: {told}" in line
    # A link elsewhere leads there.
    (cluster.dir / "linked").symlink_to(inner / "most")
    code, line = doctor(cluster.dir / "linked" / "sonded")
    assert code == 2 and f"chmod o+x {inner}" in line
    inner.chmod(0o755)
    # By a group or an access list all users of the site may get there, or not: only the site knows.
    os.chown(inner, 0, grp.getgrnam("users").gr_gid)
    inner.chmod(0o710)
    code, line = doctor(inner / "most" / "sonded")
    assert code == 1 and f"access list of {inner} lets in get to {inner}/most/sonded" in line
    inner.chmod(0o700)
    code, line = doctor(inner / "most" / "sonded")
    assert code == 2 and f"daemon: {told}" in line, "the group may not either"
    os.chown(inner, 0, 0)
    inner.chmod(0o710)
    code, line = doctor(inner / "most" / "sonded")
    assert code == 2 and f"daemon: {told}" in line, "no user is in root's group"
    give_access(inner, pwd.getpwnam(USER).pw_uid)
    code, line = doctor(inner / "most" / "sonded")
    assert code == 1 and f"access list of {inner} lets in" in line
    os.removexattr(inner, "system.posix_acl_access")
    inner.chmod(0o755)
    (cluster.dir / "sonde.conf").chmod(0o600)
    code, line = doctor(inner / "most" / "sonded")
    (cluster.dir / "sonde.conf").chmod(0o644)
    assert code == 2 and "sonde.conf cannot be read by users" in line
    mount = f"mount --bind {inner}/most {inner}/most && mount -o remount,bind,noexec {inner}/most"
    code, line = doctor(inner / "most" / "sonded", mount)
    assert code == 2 and "is on a file system that is mounted noexec" in line
