"""Exporters of the application in the step's record: by `sonde join` and by /join."""

import json
import os
import pathlib
import re
import shutil
import signal
import time
import urllib.error

import belongings
import pytest
from conftest import SONDE, USER, wait_for
from telemetry import LEVEL, Step, counter, job_of

EXPORTER = pathlib.Path(__file__).with_name("exporter.py")
# The distribution's: the job's user may run it.
PYTHON = shutil.which("python3", path="/usr/bin:/bin")


class Exporting:
    """A step whose first task is the exporter; stop() ends it."""

    def __init__(self, cluster, options=(), after="", landing=False):
        self.directory = cluster.home(USER) / f"exporting{Step.count}"
        self.directory.mkdir(mode=0o777)
        self.directory.chmod(0o777)
        # On the last node; others wait for the end.
        script = (
            "if [ $SLURM_NODEID != $((SLURM_NNODES - 1)) ]; then "
            f"until [ -e {self.directory}/stop ]; do sleep 0.02; done; exit; fi; "
            f"{PYTHON} {EXPORTER} {self.directory} {'landing' if landing else ''} "
            f"> {self.directory}/said & {after}\nwait %1"
        )
        self.step = Step(cluster, ["srun", *LEVEL, *options, "bash", "-c", script])
        self.said = self.directory / "said"

    def port(self):
        return self.number("port", "the exporter's port")

    def number(self, word, what):
        def said():
            text = self.said.read_text() if self.said.exists() else ""
            found = re.search(rf"^{word} (\d+)$", text, re.MULTILINE)
            return found and int(found.group(1))

        return self.step.cluster.wait_for(said, what, 20)

    def stop(self):
        (self.directory / "stop").touch()
        code, _ = self.step.wait()
        assert code == 0, self.step.stderr
        return self.number("scrapes", "the exporter's last word"), self.step.profile()


# In the task, as a user would: the port is known once the exporter has said it.
JOIN = (
    "until grep -q port {directory}/said; do sleep 0.02; done; "
    "{sonde} join --every 100ms localhost:$(sed 's/port //' {directory}/said); echo joined $?"
)


def join_command(directory):
    return JOIN.format(directory=directory, sonde=SONDE)


@pytest.fixture
def joined_by_command(cluster):
    directory = cluster.home(USER) / f"exporting{Step.count}"
    return Exporting(cluster, after=join_command(directory))


def up(live, step):
    listed = json.loads(live.get("/join/list"))
    return [entry for entry in listed if entry["job"] == step.id and entry["up"] == 1]


def wait_up(live, step):
    """The step's only exporter, once its last scrape has worked: on a busy machine one may take too long."""
    return wait_for(lambda: (listed := up(live, step)) and len(listed) == 1 and listed[0], "an exporter that is up", 20)


def wait_scrapes(live, count):
    """Waits until the step has seen so many scrapes; gives their number."""

    def seen():
        try:
            answers = live.query("scrapes_total", "sum")
        except urllib.error.HTTPError as error:
            assert error.code == 400, "the metric is not known yet"
            return None
        points = [v for answer in answers for v in answer["dps"].values()]
        return max(points, default=0) >= count and max(points)

    return wait_for(seen, f"{count} scrapes", 20)


def test_an_exporter_joined_by_command_is_recorded_with_its_values(joined_by_command):
    exporting = joined_by_command
    exporting.step.wait_output("joined 0")
    live = exporting.step.live()
    wait_scrapes(live, 7)
    assert wait_up(live, exporting.step)
    scrapes, shown = exporting.stop()
    instance = f"localhost:{exporting.port()}"
    # The first scrape of all only looked at it; the exporter is the step's, so it counts, too.
    total = counter(shown, "scrapes_total", instance=instance)["last"]
    assert scrapes - 1 <= total <= scrapes
    assert counter(shown, "queue", instance=instance, lane="a")["last"] == 3.5
    assert counter(shown, "queue", exported_task="7")["last"] == 4.5
    assert counter(shown, "wait_seconds_bucket", le="+Inf")["last"] == 2 * total
    assert counter(shown, "wait_seconds_sum")["last"] == 2 * total + 0.25
    assert counter(shown, "scrapes_total")["help"] == "How often it was asked"
    # Served for five scrapes only, so it has fewer points than what was served to the end.
    assert counter(shown, "fleeting")["ticks"] < counter(shown, "queue", lane="a")["ticks"]


def test_an_exporter_joined_over_http_is_scraped_by_the_node(cluster):
    exporting = Exporting(cluster, ("-N2", "--ntasks-per-node=1", "-w", "n[2-3]"))
    live = exporting.step.wait_nodes(2)
    target = f"localhost:{exporting.port()}"
    answer = json.loads(live.get(f"/join?to={target}&node=n3&period=200ms&job={exporting.step.id}"))
    assert answer["target_url"] == f"http://{target}/metrics"
    assert answer["nodes"] == "n3" and answer["period"] == 200
    wait_scrapes(live, 3)
    entry = wait_up(live, exporting.step)
    assert (entry["target_url"], entry["period"]) == (f"http://{target}/metrics", 200)
    assert (entry["node"], entry["state"], entry["ttype"]) == ("n3", "up", "Prometheus")
    # Ten scrapes in some two seconds, where every second would take ten.
    began = time.monotonic()
    before = wait_scrapes(live, 3)
    wait_scrapes(live, before + 10)
    assert time.monotonic() - began < 8
    _, shown = exporting.stop()
    owner = counter(shown, "scrapes_total", instance=target)["max_owner"]["node"]
    assert job_of(shown)["nodes"][owner]["host"] == "n3"


def test_an_exporter_with_a_page_at_every_path_is_joined(cluster):
    exporting = Exporting(cluster, landing=True)
    live = exporting.step.wait_nodes(1)
    target = f"localhost:{exporting.port()}"
    answer = json.loads(live.get(f"/join?to={target}&period=100"))
    assert answer["target_url"] == f"http://{target}/metrics"
    entry = wait_up(live, exporting.step)
    assert (entry["target_url"], entry["ttype"]) == (f"http://{target}/metrics", "Prometheus")
    wait_scrapes(live, 3)
    exporting.stop()


def test_an_exporter_is_joined_again_at_once(cluster):
    exporting = Exporting(cluster)
    live = exporting.step.wait_nodes(1)
    target = f"localhost:{exporting.port()}"
    for _ in range(3):
        assert json.loads(live.get(f"/join?to={target}&period=100"))["success"]
        before = wait_scrapes(live, 1)
        assert json.loads(live.get(f"/disconnect?target={target}"))["success"]
        assert json.loads(live.get(f"/join?to={target}&period=100"))["success"]
        wait_scrapes(live, before + 3)
        assert wait_up(live, exporting.step)["node"]
        assert json.loads(live.get(f"/disconnect?target={target}"))["success"]
    served, shown = exporting.stop()
    assert counter(shown, "join_up", instance=target)["last"] == 0
    # What was counted when it was joined before does not count again, nor what it counted meanwhile.
    assert 3 <= counter(shown, "scrapes_total", instance=target)["last"] <= served
    assert not [note for note in job_of(shown)["notes"] if "exporter" in note]


def test_what_a_program_scrapes_is_listed_until_it_ends(cluster, joined_by_command):
    exporting = joined_by_command
    exporting.step.wait_output("joined 0")
    live = exporting.step.live()
    wait_scrapes(live, 3)
    entry = wait_up(live, exporting.step)
    assert (entry["node"], entry["period"]) == ("", 100)
    assert abs(entry["last_scrape"] - time.time()) < 60
    # However it ends.
    target = f"localhost:{exporting.port()}"
    running = belongings.running((str(SONDE),), cluster.dir)
    (pid,) = [pid for pid, command in running if " join " in command and command.endswith(target)]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not json.loads(live.get("/join/list")), "its end", 40)
    exporting.stop()


def test_what_cannot_be_joined_is_said(cluster):
    step = Step(cluster, ["srun", *LEVEL, "sleep", "60"])
    live = step.wait_nodes(1)
    for path, code in (
        ("/join", 400),
        ("/join?to=nothing", 400),
        ("/join?to=https://a:1", 501),
        ("/join?to=localhost:1&period=soon", 400),
        ("/join?to=localhost:1&period=1ms", 400),
        ("/join?to=localhost:1&node=nobody", 404),
        ("/join?to=localhost:1&job=1.0", 404),
    ):
        with pytest.raises(urllib.error.HTTPError) as error:
            live.get(path)
        assert error.value.code == code, path
    step.process.terminate()
    step.wait()


def test_join_refuses_before_it_goes_to_the_background(cluster):
    outside = cluster.run([SONDE, "join", "localhost:9"], user=USER)
    assert outside.returncode == 1
    assert "--telemetry-level" in outside.stderr
    script = f"{SONDE} join --wait 0 localhost:9; echo $?; {SONDE} join nowhere; echo $?"
    done = cluster.run(["srun", *LEVEL, "bash", "-c", script], user=USER)
    assert done.stdout.split() == ["1", "2"]
    assert "localhost:9" in done.stderr and "expected HOST:PORT" in done.stderr
