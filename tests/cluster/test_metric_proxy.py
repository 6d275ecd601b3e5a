"""Programs for metric-proxy v2 in a step: what they count is in its record, without a metric-proxy.

proxy_client.py stands in for such a program. SONDE_PROXY_CLIENT may name metric-proxy's own client
library, libproxyclient.so, with which a program is then built and tried as well.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess

import pytest
from conftest import ROOT, SONDE, USER, wait_for
from telemetry import LEVEL, Step, counter, daemon, show

CLIENT = ROOT / "tests" / "cluster" / "proxy_client.py"
# The distribution's: the job's user may run it.
PYTHON = shutil.which("python3", path="/usr/bin:/bin")


def uid():
    """The tests' user is made with the first cluster."""
    return pwd.getpwnam(USER).pw_uid


def sockets(step=""):
    """The files of sockets for programs for metric-proxy, of the tests' user."""
    return sorted(pathlib.Path("/tmp").glob(f"sonde-{uid()}-{step}*.proxy"))


def run(cluster, *words, env=None):
    step = Step(cluster, ["srun", *LEVEL, *words], env=env)
    code, _ = step.wait()
    assert code == 0, step.stderr
    return step


def by_task(live, metric, aggregator="sum"):
    """The newest value of each task while the step runs."""
    filters = [{"type": "wildcard", "tagk": "task", "filter": "*", "groupBy": True}]
    answers = live.query(metric, aggregator, filters=filters)
    return {a["tags"]["task"]: a["dps"][max(a["dps"], key=int)] for a in answers if a["dps"]}


def test_what_programs_count_is_in_the_record_of_their_tasks(cluster):
    stop = cluster.home() / f"stop{Step.count}"
    words = ["parts_done+=1{rank}", "parts_done+=0.5", "queue{lane=\"a\"}=3.{rank}", "read bytes+=7"]
    step = Step(cluster, ["srun", *LEVEL, "-N2", "-n2", PYTHON, CLIENT, stop, *words])
    live = step.wait_nodes(2)
    wait_for(lambda: step.stdout.count("sent") == 2, "both programs", 20)
    wait_for(
        lambda: by_task(live, "parts_done") == {"0": 10.5, "1": 11.5}, "what both have counted", 20
    )
    assert by_task(live, "queue", "avg") == {"0": 3.0, "1": 3.1}
    assert len(sockets(step.id)) == 2
    stop.touch()
    assert step.wait()[0] == 0, step.stderr
    shown = step.profile()
    parts = counter(shown, "parts_done")
    assert (parts["type"], parts["last"], parts["help"]) == ("counter", 22, "What parts_done is")
    assert counter(shown, "queue", lane="a")["last"] == 3.05
    assert counter(shown, "read_bytes", proxy_name="read bytes")["last"] == 14
    assert counter(shown, "has_started")["last"] == 2
    assert counter(shown, "has_finished")["last"] == 2, "what was sent when the task ended"
    assert sockets(step.id) == []
    cluster.wait_clean()


def test_programs_of_a_task_count_together_and_may_be_short(cluster):
    script = f"for i in 1 2 3; do {PYTHON} {CLIENT} short+=1; done"
    step = run(cluster, "-N1", "-n2", "bash", "-c", script)
    shown = step.profile()
    short = counter(shown, "short")
    assert short["last"] == 6
    assert (short["min_owner"]["rank"], short["max_owner"]["rank"]) in ((0, 1), (1, 0), (0, 0))


def test_a_users_own_proxy_is_left_alone(cluster):
    print_path = ["bash", "-c", "echo path=$PROXY_PATH"]
    ours = run(cluster, "-N1", *print_path).stdout
    assert ours.startswith(f"path=/tmp/sonde-{uid()}-"), ours
    assert run(cluster, "-N1", *print_path, env={"PROXY_PATH": "/tmp/mine"}).stdout == "path=/tmp/mine\n"
    # One that runs: it is the user's, as the path says.
    own = pathlib.Path(f"/tmp/metric-proxy-{uid()}.socket")
    listen = (
        f"import os, socket, time; os.umask(0o77); s = socket.socket(socket.AF_UNIX); s.bind('{own}'); "
        "s.listen(9); print('up', flush=True); time.sleep(60)"
    )
    with contextlib.ExitStack() as after:
        after.callback(own.unlink, missing_ok=True)
        proxy = cluster.popen([PYTHON, "-c", listen])
        after.callback(proxy.kill)
        assert proxy.stdout.readline() == "up\n"
        assert run(cluster, "-N1", *print_path).stdout == "path=\n"
        proxy.kill()
        proxy.wait(10)
        assert own.exists()
        assert run(cluster, "-N1", *print_path).stdout.startswith("path=/tmp/sonde-"), "it has ended"


def test_a_step_in_a_step_has_a_socket_of_its_own(cluster):
    inner = f"srun --overlap -N1 -n1 {' '.join(LEVEL)} bash -c 'echo inner=$PROXY_PATH'"
    none = "srun --overlap -N1 -n1 --telemetry-level=0 bash -c 'echo none=$PROXY_PATH'"
    step = run(cluster, "-N1", "-n1", "-c2", "bash", "-c", f"echo outer=$PROXY_PATH; {inner}; {none}")
    paths = dict(line.split("=", 1) for line in step.stdout.splitlines())
    assert paths["none"] == ""
    assert paths["inner"].startswith("/tmp/sonde-") and paths["outer"].startswith("/tmp/sonde-")
    assert paths["inner"] != paths["outer"]


def test_a_site_may_have_no_socket(cluster):
    cluster.conf("proxy_socket = no\n")
    try:
        step = run(cluster, "-N1", PYTHON, CLIENT, "n+=1", env={"SONDE_PROXY_SOCKET": "yes"})
    finally:
        cluster.conf("")
    assert step.stdout == "Not Connected\n"
    assert "n" not in [entry["metric"] for entry in step.profile()["profile"]["footprint"]]


@pytest.mark.parametrize("also", [None, signal.SIGSTOP], ids=["killed", "stopped"])
def test_no_file_is_left_of_a_daemon_that_is_killed(cluster, also):
    stop = cluster.home() / f"stop{Step.count}"
    words = ["srun", *LEVEL, "-N1", "-w", "n1", PYTHON, CLIENT, stop, "n+=1"]
    step = Step(cluster, words)
    step.wait_output("sent")
    (pid,) = daemon("node", step.id)
    assert len(sockets(step.id)) == 1
    os.kill(pid, also or signal.SIGKILL)
    stop.touch()
    # The program itself is told nothing, or that nobody reads.
    step.wait()
    wait_for(lambda: not sockets(step.id), "the end of the file", 5)
    cluster.wait_clean()


def test_a_program_that_breaks_the_protocol_ends_nobody_elses(cluster):
    code = (
        "import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['PROXY_PATH']); "
        "s.send(b'GET / HTTP/1.0\\r\\n\\r\\n\\0'); print(s.recv(1))"
    )
    script = f'{PYTHON} -c "$CODE"; {PYTHON} {CLIENT} n+=1'
    step = run(cluster, "-N1", "bash", "-c", script, env={"CODE": code})
    assert "b''" in step.stdout
    assert counter(step.profile(), "n")["last"] == 1


def test_in_a_batch_script(cluster):
    script = f"{PYTHON} {CLIENT} in_script+=3\nsrun -N1 {PYTHON} {CLIENT} in_step+=4\n"
    job = cluster.sbatch(script, options=["-N1", *LEVEL])
    assert cluster.wait_job(job) == "COMPLETED"
    assert counter(show(cluster, f"{job}.batch"), "in_script")["last"] == 3
    assert counter(show(cluster, f"{job}.0"), "in_step")["last"] == 4
    assert sockets(f"{job}.") == []


def test_under_sonde_run(cluster):
    command = [SONDE, "run", "-q", "--period", "100ms", PYTHON, CLIENT, "n+=2", "g=5"]
    done = cluster.run(command, user=USER, env={"PROXY_PATH": f"/tmp/sonde-{uid()}-7.0-0-abc.proxy"})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    listed = cluster.run([SONDE, "ls", "--json"], user=USER)
    assert listed.returncode == 0, listed.stderr
    name = listed.stdout.split('"run-', 1)[1].split('"', 1)[0]
    shown = show(cluster, f"run-{name}.0")
    assert counter(shown, "n")["last"] == 2
    assert counter(shown, "g")["last"] == 5
    assert sockets("run-") == []


REAL = os.environ.get("SONDE_PROXY_CLIENT", "")
# It lasts longer than the library's thread takes to look at its values for the first time: of what that
# thread has taken and not sent when a program ends, the library sends nothing.
PROGRAM = """
#include <unistd.h>
typedef struct Client Client;
typedef struct Value Value;
Client* metric_proxy_init(void);
int metric_proxy_release(Client*);
Value* metric_proxy_counter_new(Client*, const char*, const char*);
int metric_proxy_counter_inc(Value*, double);
Value* metric_proxy_gauge_new(Client*, const char*, const char*);
int metric_proxy_gauge_set(Value*, double);
int main(void) {
  Client* client = metric_proxy_init();
  Value* steps = metric_proxy_counter_new(client, "real_steps", "Time steps");
  Value* load = metric_proxy_gauge_new(client, "real_load{of=\\"app\\"}", "The last one");
  for (int i = 1; i <= 1000; ++i) {
    metric_proxy_counter_inc(steps, 1);
    metric_proxy_gauge_set(load, i);
  }
  usleep(300000);
  return metric_proxy_release(client);
}
"""


@pytest.mark.skipif(not REAL, reason="SONDE_PROXY_CLIENT names no libproxyclient.so")
def test_with_metric_proxys_own_library(cluster):
    source, program = cluster.dir / "real.c", cluster.dir / "real"
    source.write_text(PROGRAM)
    shutil.copy(REAL, cluster.dir / "libproxyclient.so")
    (cluster.dir / "libproxyclient.so").chmod(0o755)
    flags = ["-L", cluster.dir, "-lproxyclient", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(["cc", "-o", program, source, *flags], check=True)
    step = run(cluster, "-N2", "-n4", program, env={"PROXY_PERIOD": "200"})
    shown = step.profile()
    assert counter(shown, "real_steps")["last"] == 4000
    assert counter(shown, "real_steps")["help"] == "Time steps"
    assert counter(shown, "real_load", of="app")["last"] == 1000
    assert counter(shown, "has_started")["last"] == 4
    assert counter(shown, "has_finished")["last"] == 4
