"""sonde run, which needs no Slurm, and sonde doctor, on a machine that has one."""

import json
import os
import re
import signal

from conftest import SONDE, SONDED, USER


def sonde_run(cluster, *arguments):
    return cluster.run([SONDE, "--config", cluster.dir / "sonde.conf", "run", *arguments], user=USER)


def newest(cluster):
    shown = json.loads(cluster.run([SONDE, "show", "--json"], user=USER).stdout)
    return shown["profile"]["job"], shown["summary"]


def test_run_keeps_exit_code_and_output_and_leaves_a_profile(cluster):
    done = sonde_run(cluster, "--period", "100ms", "--", "sh", "-c", "echo out; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert "failed, exit code 3" in done.stderr and "see it again with: sonde show" in done.stderr
    job, _ = newest(cluster)
    assert (job["state"], job["expected_nodes"], job["step"]) == ("failed", 1, "0")
    assert job["job"].startswith("run-")
    cluster.wait_clean()


def test_run_knows_the_cpu_time_of_a_command_shorter_than_a_period(cluster):
    burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; times"
    done = sonde_run(cluster, "--quiet", "--", "sh", "-c", burn)
    assert done.stderr == ""
    user, system = done.stdout.split()[:2]
    used = sum(float(t.split("m")[1].rstrip("s")) for t in (user, system))
    _, summary = newest(cluster)
    assert used - 0.02 <= summary["cpu_seconds"] <= used + 0.05


def test_run_passes_signals_on_and_tells_of_one(cluster):
    child = cluster.popen([SONDE, "run", "--", "sh", "-c", "echo ready; exec sleep 60"], user=USER)
    assert child.stdout.readline().strip() == "ready"
    os.kill(child.pid, signal.SIGTERM)
    assert child.wait(timeout=20) == 128 + signal.SIGTERM
    cluster.wait_for(lambda: newest(cluster)[0]["state"] == "cancelled", "the profile", 10)


def test_run_of_what_is_not_there_says_so(cluster):
    done = sonde_run(cluster, "--", "/nonexistent/program")
    assert done.returncode == 127
    assert "cannot run /nonexistent/program: No such file or directory" in done.stderr


def test_run_goes_on_without_a_daemon(cluster):
    done = cluster.run(
        ["env", "SONDE_SONDED=/nonexistent", SONDE, "run", "--", "echo", "out"], user=USER
    )
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert "no telemetry: no sonded at /nonexistent" in done.stderr


def test_doctor_finds_the_installation_whole(cluster):
    done = cluster.run([SONDE, "--config", cluster.dir / "sonde.conf", "doctor"], user=USER)
    assert done.returncode == 0 and "FAILED" not in done.stdout
    assert str(SONDED) in done.stdout
    assert "srun knows --telemetry-level" in done.stdout
    assert "plain sockets between nodes" in done.stdout


def test_doctor_tells_which_fabric_is_used_and_why(cluster):
    def doctor(conf):
        cluster.conf(conf)
        done = cluster.run([SONDE, "--config", cluster.dir / "sonde.conf", "doctor"], user=USER)
        cluster.conf("")
        return done.stdout

    text = doctor("provider = warp, tcp, sockets\ninterface = lo\n")
    assert re.search(r"ok +fabric .* interface = lo: tcp \(libfabric [0-9.]+\)", text)
    assert re.search(r"> tcp +at 127.0.0.1, connected endpoints", text)
    assert "not found" in text and "not needed: tcp is preferred" in text
    text = doctor("provider = tcp\ninterface = ib7\n")
    assert re.search(r"warning +fabric .*every node sends to the head", text)
    assert "provider 'tcp' has no interface 'ib7', only " in text
    text = doctor("provider = warp,sockets\ninterface = lo\n")
    assert re.search(r"ok +fabric .*: plain sockets between nodes", text)
    assert re.search(r"> sockets +at 127.0.0.1, plain TCP", text)
    text = doctor("provider = none\n")
    assert re.search(r"ok +fabric +switched off", text)
    text = doctor("provider = udp;ofi_rxd\n")
    assert re.search(r"> udp;ofi_rxd +at .*, reliable datagrams \(FI_EP_RDM\), polled", text)


def test_doctor_names_what_is_wrong(cluster):
    cluster.conf("fanout = many\n")
    command = ["env", "SONDE_PLUGIN=/nonexistent", SONDE, "--config", cluster.dir / "sonde.conf"]
    done = cluster.run([*command, "doctor"], user=USER)
    cluster.conf("")
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert any("sonde.conf:1: fanout = many: expected a whole number" in line for line in failed)
    assert any("no spank_sonde.so at /nonexistent" in line for line in failed)
