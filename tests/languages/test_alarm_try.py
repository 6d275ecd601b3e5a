"""What /api/v1/alarms/try says of a step's data is what its head raised."""

import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import SONDE, environment, run

RULES = {
    "high": "app_value any > 5 for 60ms",
    "steep": "app_steps_total rate > 600 for 40ms clear 300",
    "both": "app_value max > 2 and app_steps_total any rate > 0",
    "there": "app_value{kind=a} >= 7 critical message \"{value} of {kind}\"",
    "gone": "app_late absent for 200ms",
    "apart": "app_value{kind=b} / app_base any > 1.5",
    "never": "app_value > 1000",
}

PROGRAM = """
import sonde, time
a = sonde.gauge("app_value", "bytes", "A value", tags={"kind": "a"})
b = sonde.gauge("app_value", "bytes", "A value", tags={"kind": "b"})
base = sonde.gauge("app_base", "bytes", "Another", tags={"kind": "b"})
steps = sonde.counter("app_steps_total", "1", "Steps")
base.set(2)
for second in range(8):
    a.set(second)
    b.set(1 if second % 3 else 6)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        steps.add(20 if second % 2 else 1)
        time.sleep(0.02)
    if second == 3:
        sonde.gauge("app_late", "1", "Comes late").set(1)
"""


@pytest.fixture
def served(tmp_path):
    """The archive of a step with RULES, and a function that asks its server."""
    rules = tmp_path / "rules"
    rules.write_text("".join(f"{name}: {rule}\n" for name, rule in RULES.items()), encoding="utf-8")
    sonde = [SONDE, "--archive", tmp_path / "archive", "--config", os.devnull]
    done = run(*sonde, "run", "--quiet", "--level", "1", "--period", "20ms", "--alarms", rules, "--",
               "/usr/bin/python3", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    profile = json.loads(run(*sonde, "show", "--json").stdout)["profile"]
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n", encoding="utf-8")
    token.chmod(0o600)
    server = subprocess.Popen([*map(str, sonde), "serve", "--listen", "127.0.0.1:0", "--token-file", str(token)],
                              stdout=subprocess.PIPE, text=True, env=environment())
    try:
        url = re.search(r"http://\S+:\d+", server.stdout.readline())[0]

        def ask(**words):
            request = urllib.request.Request(f"{url}/api/v1/alarms/try?{urllib.parse.urlencode(words)}",
                                             headers={"Authorization": f"Bearer {token.read_text(encoding='utf-8').strip()}"})
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    return json.load(error)

        yield profile, ask
    finally:
        server.terminate()
        server.communicate()


def told(alarm):
    return (alarm["raised"], alarm["over"], alarm["text"], alarm["tags"], alarm["value"], alarm.get("by"))


def test_a_trial_finds_what_the_head_raised(served):
    profile, ask = served
    job = f"{profile['job']['job']}.{profile['job']['step']}"
    raised = profile["moments"]["alarms"]
    assert {alarm["rule"] for alarm in raised} >= set(RULES) - {"never"}, raised
    for name, rule in RULES.items():
        answer = ask(job=job, name=name, rule=rule)
        assert "error" not in answer, answer
        expected = [told(alarm) for alarm in raised if alarm["rule"] == name]
        found = [told(alarm) for alarm in answer["alarms"]]
        if name == "gone":  # since the first row, of which the record does not tell when it was
            assert len(found) == len(expected) == 1
            assert abs(found[0][0] - expected[0][0]) <= 5 * 20_000_000
            found[0] = (expected[0][0], *found[0][1:])
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), name
        assert answer["raised"] == len(expected)


def test_a_trial_of_a_part_of_the_step(served):
    profile, ask = served
    job = f"{profile['job']['job']}.{profile['job']['step']}"
    middle = profile["job"]["start"] // 10**6 + 1000
    answer = ask(job=job, rule=RULES["high"], end=middle)
    assert all(alarm["raised"] <= middle * 10**6 for alarm in answer["alarms"])
    assert 0 < answer["rows"] <= 51
    assert ask(job=job, rule="x >")["error"]["code"] == 400
    assert ask(job="1.0", rule="x > 1")["error"]["code"] == 404
    assert ask(job=job, rule="x > 1", start=middle, end=middle - 1)["error"]["code"] == 400
    assert ask(job=job, rule="x > 1")["missing"] == ["x"]
