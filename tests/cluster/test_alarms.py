"""Alarms of a running step: who is named, who is told, what stays in the profile."""

import http.server
import json
import pathlib
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse

import pytest
from alarm_steps import Working, node_of, post, room  # noqa: F401
from conftest import BUILD, ROOT, SONDE, USER, wait_for
from telemetry import LEVEL, Step, report_of


class Webhook:
    """A server that keeps what is posted to it."""

    def __init__(self):
        self.bodies = []
        bodies = self.bodies

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["Content-Length"])
                bodies.append((self.headers["Content-Type"], json.loads(self.rfile.read(size))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}/hook?a="b"'.replace('"', "%22")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of(self, alarm):
        return [body for _, body in self.bodies if body["alarm"] == alarm]


@pytest.fixture
def webhook():
    hook = Webhook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


def refusal(live, path, body):
    with pytest.raises(urllib.error.HTTPError) as error:
        post(live, path, body)
    return error.value.code, json.loads(error.value.read())["error"]["message"]


def test_a_task_that_hogs_memory_is_named_and_told_of(cluster, room, webhook):
    command = room / "command"
    # What a message says is never a shell's.
    command.write_text(f'#!/bin/bash\nenv > {room}/env.$$\ncat > {room}/in.$$\nmv {room}/in.$$ {room}/told.$$\n')
    command.chmod(0o755)
    rules = 'hog: task_resident_memory_bytes any > 60M critical message "$(touch {value}) `id` \\"; \'"\n'
    working = Working(
        cluster,
        room,
        rules,
        env={"SONDE_ALARM_COMMAND": f"{command} one two", "SONDE_ALARM_WEBHOOK": webhook.url},
    )
    raised = working.raised("hog")
    assert (raised["active"], raised["rank"], raised["severity"]) == (True, 2, "critical")
    assert raised["operator"] == {"More": 60 * 1024 * 1024}
    told = wait_for(lambda: list(room.glob("told.*")), "the command")[0]
    posted = wait_for(lambda: webhook.of("hog"), "the webhook")[0]
    profile = working.stop()
    host = node_of(profile, 2)
    assert raised["node"] == host

    said = json.loads(told.read_text())
    assert said == posted, "command and webhook get the same"
    assert (said["node"], said["rank"], said["state"]) == (host, 2, "raised")
    assert said["job"] == working.step.id and said["value"] > 60 * 1024 * 1024
    assert "`id`" in said["text"] and "$(touch" in said["text"]
    variables = dict(
        line.split("=", 1)
        for line in pathlib.Path(str(told).replace("told", "env")).read_text().splitlines()
        if line.startswith("SONDE_ALARM")
    )
    assert variables["SONDE_ALARM"] == "hog" and variables["SONDE_ALARM_NODE"] == host
    assert variables["SONDE_ALARM_RANK"] == "2" and variables["SONDE_ALARM_TEXT"] == said["text"]

    (alarm,) = [a for a in profile["moments"]["alarms"] if a["rule"] == "hog"]
    assert (alarm["by"]["host"], alarm["by"]["rank"]) == (host, 2)
    note = f"alarm hog (critical), task 2 on {host}: "
    assert any(text.startswith(note) for text in profile["job"]["notes"])
    remarks = [remark["text"] for remark in profile["moments"]["remarks"]]
    assert any(text.startswith(f"alarm hog, task 2 on {host}: ") for text in remarks)
    assert "alarm hog (critical)" in report_of(working.step.stderr)
    assert not any("command for alarms" in text for text in profile["job"]["notes"])


def test_a_task_that_sleeps_while_others_compute(cluster, room):
    # Rates of single tasks and nodes are made by the nodes, of what is already reduced they cannot be.
    rules = (
        "lazy: task_cpu_seconds_total{mode=user} any node rate < 0.02 for 1s\n"
        "slow: task_cpu_seconds_total{mode=user} rate lags 2 by 50% for 1s\n"
        "busy: task_cpu_seconds_total{mode=user} all rate > 0.05 for 1s\n"
    )
    working = Working(cluster, room, rules, period="1s")
    lazy, slow = working.raised("lazy"), working.raised("slow")
    names = [alarm["name"] for alarm in json.loads(working.step.live().get("/alarms"))["main"]]
    assert "busy" not in names
    profile = working.stop()
    assert lazy["node"] == slow["node"] == node_of(profile, 1)
    assert slow["rank"] == 1
    recorded = {entry["metric"] for entry in profile["footprint"]}
    assert not any(name.startswith("alarm:") for name in recorded), "what rules need is not recorded"


def test_rules_come_and_go_over_http_and_by_the_command(cluster, room):
    working = Working(cluster, room)
    live = working.step.wait_nodes(4)
    added = post(
        live,
        "/alarms/add",
        {"name": "My Alarm", "target": "main", "metric": "node_load1", "operation": ">", "value": 0},
    )
    assert added["success"] is True
    alarm = working.raised("My Alarm")
    assert alarm["metric"] == "node_load1" and alarm["operator"] == {"More": 0}
    assert alarm["pretty"].startswith("My Alarm : node_load1 (")
    code, why = refusal(
        live, "/alarms/add", {"name": "My Alarm", "metric": "node_load5", "operation": ">", "value": 1}
    )
    assert (code, why) == (400, "there is an alarm 'My Alarm' already")
    code, why = refusal(live, "/alarms/add", {"name": "x", "rule": "node_load1 >"})
    assert (code, why) == (400, "alarm x: expected a number at the end")
    quoted = urllib.parse.quote("My Alarm")
    assert json.loads(live.get(f"/alarms/del?targetjob=main&name={quoted}"))["success"] is True
    assert refusal(live, "/alarms/del", {"target": "main", "name": "My Alarm"})[0] == 404

    def command(*words):
        done = cluster.run([SONDE, "alarms", *words], user=USER)
        return done.returncode, done.stdout + done.stderr

    # A rule that needs what nodes have not derived before.
    rule = "task_resident_memory_bytes / task_virtual_memory_bytes any > 0"
    assert command("add", "--step", working.step.id, "share", rule)[0] == 0
    assert working.raised("share")["rank"] is not None
    code, text = command("list", working.step.id)
    assert code == 0 and "share" in text and "memory_soon" in text
    code, text = command("list", "--active", "--json", working.step.id)
    assert [a["name"] for a in json.loads(text)["main"] if a["name"] == "share"] == ["share"]
    assert command("del", "--step", working.step.id, "share")[0] == 0
    assert command("del", "--step", working.step.id, "share")[0] == 3
    code, text = command("add", "--step", working.step.id, "bad", "x >")
    assert code == 2 and "expected a number" in text
    profile = working.stop()
    (share,) = [a for a in profile["moments"]["alarms"] if a["rule"] == "share"]
    assert share["over"] > share["raised"], "a rule that is taken away raises nothing any more"
    code, text = command("list", working.step.id)
    assert code == 0 and "share" in text


def test_a_program_adds_rules_by_itself(cluster, room):
    source = room / "alarm.c"
    source.write_text(
        r"""
        #include <stdio.h>
        #include <unistd.h>
        #include "libclient/sonde_query.h"
        int main(int argc, char** argv) {
          sonde_metric_t* x = sonde_gauge("x", "1", "A value", 1, NULL, 0);
          sonde_query_t* query = sonde_query_open(5000, NULL);
          int first = sonde_query_alarm(query, "mine", "x any > 3 message \"x is {value}\"", 5000);
          int again = sonde_query_alarm(query, "mine", "x any > 3 message \"x is {value}\"", 5000);
          int taken = sonde_query_alarm(query, "mine", "x any > 4", 5000);
          printf("%d %d %d %s\n", first, again, taken, sonde_query_error(query));
          int wrong = sonde_query_alarm(query, "other", "x >", 5000);
          printf("%d %s\n", wrong, sonde_query_error(query));
          fflush(stdout);
          sonde_set(x, 7);
          while (access(argv[argc - 1], F_OK) != 0) usleep(20000);
          sonde_query_close(query);
          return 0;
        }"""
    )
    program = room / "alarm"
    shutil.copy(BUILD / "libclient" / "libsonde.so.1", room)
    flags = ["-I", ROOT, f"-L{BUILD / 'libclient'}", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(["cc", "-o", program, source, *flags, "-lsonde"], check=True)
    step = Step(cluster, ["srun", "-N2", "-l", *LEVEL, str(program), str(room / "stop")])
    live = step.live()

    def raised():
        alarms = json.loads(live.get("/alarms"))["main"]
        return [alarm["text"] for alarm in alarms if alarm["name"] == "mine"]

    assert wait_for(raised, "the program's alarm", 20) == ["x is 7"]
    (room / "stop").touch()
    assert step.wait()[0] == 0, step.stderr
    for task in (0, 1):
        said = [line[3:] for line in step.stdout.splitlines() if line.startswith(f"{task}: ")]
        assert said[0].startswith("0 0 ") and said[0].endswith("there is an alarm 'mine' already")
        assert said[1].endswith("alarm other: expected a number at the end")


def test_a_file_of_rules_that_is_wrong(cluster, room):
    missing = cluster.run(["srun", *LEVEL, "--telemetry-alarms=/nowhere", "true"], user=USER)
    assert missing.returncode != 0
    assert "--telemetry-alarms=/nowhere: expected a file of alarm rules" in missing.stderr
    (room / "rules").write_text("fine: x > 1\nbad: x for 3\n")
    step = Step(cluster, ["srun", *LEVEL, f"--telemetry-alarms={room / 'rules'}", "sleep", "0.5"])
    assert step.wait()[0] == 0
    notes = step.profile()["profile"]["job"]["notes"]
    assert any(f"{room / 'rules'}:2: alarm bad: expected a comparison" in note for note in notes)


def test_a_command_that_fails_or_lasts_disturbs_nothing(cluster, room):
    env = {"SONDE_ALARM_COMMAND": "/bin/false", "SONDE_ALARM_WEBHOOK": "http://127.0.0.1:1/"}
    working = Working(cluster, room, "load: node_load1 any >= 0\n", env=env)
    working.raised("load")
    live = working.step.live()

    def told():
        profile = json.loads(live.get(f"/api/v1/profile?job={working.step.id}"))
        notes = " ".join(profile["job"]["notes"])
        return "the webhook for alarms failed: curl" in notes and (
            "the command for alarms, /bin/false, failed: ended with code 1" in notes
        )

    wait_for(told, "notes of the failures")
    working.stop()
