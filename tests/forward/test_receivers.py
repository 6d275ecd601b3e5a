"""Profiles sent to the databases of the distribution: every sample is there, with its time and its
value, and none twice, whatever happens on the way."""

import json
import signal
import subprocess

import pytest
from conftest import get, same, wait_for

ROWS = 240


def taken(done):
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split(": ")[2].split(" samples")[0])


@pytest.mark.parametrize("scope", ["job", "node"])
def test_prometheus_has_every_sample(archive, prometheus, scope):
    archive.add("1", ROWS)
    done = archive.export("1.0", "--to", prometheus.to, "--scope", scope, "--batch", 100)
    expected = archive.expected(ROWS, scope)
    assert taken(done) == sum(map(len, expected.values()))
    same(prometheus.stored("1.0", archive.start), expected)


def test_labels_are_those_of_the_series_and_of_the_step(archive, prometheus):
    archive.add("1", 3)
    archive.export("1.0", "--to", prometheus.to, "--scope", "node")
    found = json.loads(get(prometheus.url + "/api/v1/series", start=archive.start,
                           end=archive.start + 60, **{"match[]": "task_cpu_seconds_total"}))
    assert {json.dumps(labels, sort_keys=True) for labels in found["data"]} == {
        json.dumps({"__name__": "task_cpu_seconds_total", "cluster": "frost", "host": host,
                    "job": "1.0", "mode": 'user, ="1"', "user": "ada"}, sort_keys=True)
        for host in ("n1", "n2")}


def test_a_series_ends_with_its_step(archive, prometheus):
    archive.add("1", 30)
    archive.export("1.0", "--to", prometheus.to)
    def at(seconds):
        answer = get(prometheus.url + "/api/v1/query", query="task_resident_memory_bytes",
                     time=archive.start + seconds)
        return len(json.loads(answer)["data"]["result"])
    assert (at(30), at(31)) == (1, 0)


@pytest.mark.parametrize("scope", ["job", "node"])
def test_victoria_metrics_has_every_sample_once(archive, victoria, scope):
    archive.add("1", ROWS)
    archive.export("1.0", "--to", victoria.to, "--scope", scope, "--batch", 100)
    same(victoria.stored("1.0", archive.start), archive.expected(ROWS, scope))


@pytest.mark.parametrize("scope", ["job", "node"])
def test_victoria_metrics_has_every_sample_of_opentsdb_put(archive, victoria, scope):
    archive.add("1", ROWS)
    done = archive.export("1.0", "--to", f"http://127.0.0.1:{victoria.opentsdb}/api/put",
                          "--scope", scope, "--batch", 100)
    assert done.returncode == 0, done.stderr
    same(victoria.stored("1.0", archive.start), archive.expected(ROWS, scope))


@pytest.mark.parametrize("scope", ["job", "node"])
def test_influxdb_has_every_sample(archive, influx, scope):
    archive.add("1", ROWS)
    done = archive.export("1.0", "--to", influx.to, "--scope", scope, "--batch", 100)
    assert done.returncode == 0, done.stderr
    same(influx.stored("1.0", archive.start), archive.expected(ROWS, scope, scale=10**9))


def test_a_second_time_sends_nothing(archive, victoria):
    archive.add("1", ROWS)
    archive.export("1.0", "--to", victoria.to)
    done = archive.export("1.0", "--to", victoria.to)
    assert done.returncode == 0 and "all was sent before" in done.stderr
    same(victoria.stored("1.0", archive.start), archive.expected(ROWS, "job"))


def test_what_is_chosen_is_sent(archive, influx):
    archive.add("1", ROWS)
    since, until = archive.start + 100, archive.start + 110
    done = archive.export("1.0", "--to", influx.to, "--metrics", "task_*,!*_bytes",
                          "--since", since, "--until", until)
    assert taken(done) == 11
    assert influx.stored("1.0", archive.start) == {("task_cpu_seconds_total", None): [
        ((archive.start + t) * 10**9, 3 * t) for t in range(100, 111)]}


@pytest.mark.parametrize("kind", ["prometheus", "influx"])
def test_a_receiver_that_is_killed_and_comes_back_has_every_sample(archive, kind, request):
    """Killed by SIGKILL while requests are on their way, several times."""
    receiver = request.getfixturevalue(kind)
    rows = 4000  # so many that the last kill comes long before the end
    archive.add("1", rows)
    child = subprocess.Popen(
        archive.command("export", "1.0", "--to", receiver.to, "--scope", "node", "--batch", 30,
                        "--give-up-after", "2m"),
        stderr=subprocess.PIPE, text=True)
    def progress():
        return sum(text.count("\na\n") for text in archive.records().values())
    wait_for(lambda: (archive.directory / "forward").exists(), "record")
    for least in (5, 60, 120):
        wait_for(lambda: progress() >= least or child.poll() is not None, "progress")
        assert child.poll() is None
        receiver.stop(signal.SIGKILL)
        receiver.start()
    _, stderr = child.communicate(timeout=180)
    assert child.returncode == 0, stderr
    assert "refused" not in stderr
    scale = 1000 if kind == "prometheus" else 10**9
    same(receiver.stored("1.0", archive.start), archive.expected(rows, "node", scale=scale))


@pytest.mark.parametrize("kind", ["prometheus", "influx"])
def test_a_command_that_is_killed_goes_on_where_it_was(archive, kind, request):
    receiver = request.getfixturevalue(kind)
    rows = 1500
    archive.add("1", rows)
    words = archive.command("export", "1.0", "--to", receiver.to, "--scope", "node", "--batch", 30)
    for least in (3, 40, 80):
        child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        def progress():
            folder = archive.directory / "forward"
            texts = archive.records().values() if folder.exists() else []
            return max((text.count("\na\n") for text in texts), default=0)
        wait_for(lambda: progress() >= least or child.poll() is not None, "progress")
        child.kill()
        child.communicate()
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "refused" not in done.stderr
    scale = 1000 if kind == "prometheus" else 10**9
    same(receiver.stored("1.0", archive.start), archive.expected(rows, "node", scale=scale))


def test_old_profiles_that_prometheus_refuses_are_taken_once_it_is_told_to(archive, prometheus):
    archive.add("2", 100)
    archive.add("1", 100, start=archive.start - 40000)
    assert archive.export("2.0", "--to", prometheus.to).returncode == 0
    done = archive.export("1.0", "--to", prometheus.to)
    assert done.returncode == 1
    assert "refuses every sample" in done.stderr and "out_of_order_time_window" in done.stderr
    prometheus.stop()
    prometheus.window = "30d"
    prometheus.start()
    assert archive.export("1.0", "--to", prometheus.to).returncode == 0
    start = archive.start - 40000
    same(prometheus.stored("1.0", start), archive.expected(100, "job", start=start))


def test_a_database_that_is_not_there_is_named(archive, influx):
    archive.add("1", 3)
    done = archive.export("1.0", "--to", influx.url + "/write?db=none")
    assert done.returncode == 1 and "database not found" in done.stderr
    assert "\na\n" not in "".join(archive.records().values())
