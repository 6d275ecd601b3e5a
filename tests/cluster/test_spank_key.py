"""The key of a step is its daemons' secret: tasks, Prolog, Epilog and job records do not show it."""

import re
import subprocess

import pytest
from conftest import PLUGIN
from plugin_alone import PLUGSTACK, Daemon
from tap import Tap, credentials_in

# Of zeros alone it says that there is none yet.
KEY = re.compile(r"(?!0{64})[0-9a-f]{64}")
WATCHED = "--telemetry-level=1"
# Of Slurm's own, and what a key is carried in.
NAMES = ("SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_rendezvous",
         "_SLURM_SPANK_OPTION_sonde_telemetry_rendezvous")  # fmt: skip


@pytest.fixture(scope="module")
def places(make_cluster, tmp_path_factory):
    """A cluster whose Prolog and Epilog write their environment down, with the stand-in's records."""
    assert PLUGIN.exists(), f"not built: {PLUGIN}"
    directory = tmp_path_factory.mktemp("scripts")
    for name in ("prolog", "epilog"):
        script = directory / name
        script.write_text(f"#!/bin/sh\nenv >>{directory}/{name}.env\n")
        script.chmod(0o755)
    cluster = make_cluster(
        plugstack=PLUGSTACK,
        slurm_conf=(
            f"Prolog={directory}/prolog", f"Epilog={directory}/epilog", "PrologFlags=Alloc",
            # Writes every option that a command has into the system's log.
            "CliFilterPlugins=cli_filter/syslog",
        ),  # fmt: skip
        nodes=2,
    )
    cluster.scripts = directory
    return cluster, Daemon(cluster)


def shown(cluster):
    """What a user or an administrator can see of a job while it runs and afterwards."""
    records = cluster.slurm("scontrol", "show", "job", "-dd")
    records += cluster.run(["scontrol", "show", "step"], user="root").stdout
    records += "".join(path.read_text() for path in cluster.scripts.glob("*.env"))
    return records


def check(text, *, what):
    assert not KEY.search(text), f"a key in {what}"
    for name in NAMES:
        assert f"{name}=" not in text, f"{name} in {what}"


@pytest.mark.parametrize("export", [[], ["--export=NONE"], ["--export=PATH"]])
@pytest.mark.parametrize("level", [[WATCHED], []])
def test_tasks_do_not_see_the_key(places, level, export):
    cluster, daemon = places
    daemon.forget()
    done = cluster.run(["srun", "-N2", *level, *export, "/usr/bin/env"])
    assert done.returncode == 0, done.stderr
    assert "SLURM_PROCID=1" in done.stdout, "the environment of both tasks"
    check(done.stdout, what="a task's environment")
    nodes = daemon.records("node")
    assert len(nodes) == (2 if level else 0)
    assert all(len(node.launch["key"]) == 64 for node in nodes), "the daemons have it"


def test_a_batch_script_and_its_steps_do_not_see_it(places):
    cluster, daemon = places
    daemon.forget()
    script = "env; srun -N2 env; srun --telemetry-level=0 env; srun -N1 bash -c 'srun --overlap env'"
    job = cluster.sbatch(script, options=["-N2", WATCHED])
    assert cluster.wait_job(job) == "COMPLETED"
    check((cluster.home() / f"slurm-{job}.out").read_text(), what="a script's or a step's environment")
    assert len(daemon.records("node")) == 4 and len(daemon.records("solo")) == 1


def test_neither_records_nor_prolog_and_epilog_show_it(places):
    cluster, daemon = places
    daemon.forget()
    steps = cluster.popen(["srun", "-N2", WATCHED, "bash", "-c", f"until [ -e {cluster.dir}/go ]; do sleep 0.05; done"])
    daemon.wait_records(2, "node")
    while_it_runs = shown(cluster)
    (cluster.dir / "go").touch()
    steps.communicate(timeout=30)
    check(while_it_runs, what="the records of a running job")
    cluster.wait_for(lambda: (cluster.scripts / "epilog.env").exists(), "the Epilog")
    text = shown(cluster)
    assert "SPANK__SLURM_SPANK_OPTION_sonde_telemetry_level=1" in text, "Prolog sees other options"
    check(text, what="what is left of a job")


def test_who_sees_slurms_messages_does_not_see_it(places):
    """They are authenticated, not encrypted: munge wraps the key for root, who runs slurmstepd."""
    cluster, daemon = places
    daemon.forget()
    tap = Tap()
    try:
        done = cluster.run(["srun", "-N2", WATCHED, "true"])
    finally:
        heard = tap.stop().values()
    assert done.returncode == 0, done.stderr
    (head,) = daemon.records("head")
    key = head.launch["key"]
    assert [node.launch["key"] for node in daemon.records("node")] == [key] * 2
    assert [data for data in heard if key.encode() in data] == []
    assert credentials_in(heard), "the option was not seen at all"  # who can open these: test_attempts.py


SYSLOG = """
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
static void Write(const char* format, va_list values) {
  FILE* file = fopen(getenv("SYSLOG_FILE"), "a");
  if (file == NULL) return;
  vfprintf(file, format, values);
  fputc('\\n', file);
  fclose(file);
}
void vsyslog(int priority, const char* format, va_list values) { Write(format, values); }
void syslog(int priority, const char* format, ...) {
  va_list values;
  va_start(values, format);
  Write(format, values);
  va_end(values);
}
void __syslog_chk(int priority, int flag, const char* format, ...) {
  va_list values;
  va_start(values, format);
  Write(format, values);
  va_end(values);
}
"""


def test_what_srun_writes_into_the_systems_log_has_no_key(places):
    """cli_filter/syslog writes all options down, and other such plugins read them."""
    cluster, daemon = places
    daemon.forget()
    library, log = cluster.dir / "syslog.so", cluster.home() / "syslog"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-o", library, "-"], input=SYSLOG, text=True, check=True
    )
    preload = [f"LD_PRELOAD={library}", f"SYSLOG_FILE={log}"]
    done = cluster.run(["env", *preload, "srun", "-N2", WATCHED, "env", "-u", "LD_PRELOAD", "true"])
    assert done.returncode == 0, done.stderr
    text = log.read_text()
    assert "telemetry-rendezvous" in text, "that it is there is how Slurm carries it"
    check(text, what="the system's log")
    assert len(daemon.records("node")) == 2


def test_a_step_of_two_components_meets_its_head(places):
    cluster, daemon = places
    daemon.forget()
    done = cluster.run(["srun", WATCHED, "-N1", "/usr/bin/env", ":", "-N1", "/usr/bin/env"])
    assert done.returncode == 0, done.stderr
    check(done.stdout, what="a task's environment")
    (head,) = daemon.records("head")
    assert {node.launch["key"] for node in daemon.records("node")} == {head.launch["key"]}
    assert len(daemon.records("node")) == 2
