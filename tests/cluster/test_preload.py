"""The libraries that count calls are loaded into tasks, where the tasks can read them, and into
nothing else that Slurm runs for the step."""

import json
import pathlib
import subprocess
import tempfile

import pytest
from conftest import LIBRARIES, PLUGSTACK, ROOT, SLURM_HEADERS
from telemetry import Step, without_sonde
from test_io import ASKED, build, check, memory, nothing_runs_on, srun  # noqa: F401

OURS = f"LD_PRELOAD={LIBRARIES}/libsonde.so.1:{LIBRARIES}/sonde/libsonde-io.so"
# What a site's script does: looks at its environment, writes a file, runs programs.
SCRIPT = """#!/bin/bash
env > $LOOK/{name}.env
echo of the site > $MEMORY/of_{name}
cp $MEMORY/of_{name} $MEMORY/copy_of_{name}
rm $MEMORY/of_{name} $MEMORY/copy_of_{name}
"""


@pytest.fixture(scope="module")
def cluster(make_cluster):
    # srun loads it as well, as the user.
    directory = tempfile.TemporaryDirectory(prefix="sonde-plugin.")
    pathlib.Path(directory.name).chmod(0o755)
    plugin = pathlib.Path(directory.name) / "other_root.so"
    source = ROOT / "tests" / "cluster" / "other_root.c"
    subprocess.run(["cc", "-shared", "-fPIC", *SLURM_HEADERS, "-o", plugin, source], check=True)
    scripts = [f"Task{name.title()}=@DIR@/{name}" for name in ("prolog", "epilog")]
    plugstack = f"optional {plugin} hide={LIBRARIES}\n{PLUGSTACK}"
    made = make_cluster(nodes=1, slurm_conf=scripts, plugstack=plugstack)
    made.conf("")
    for name in ("prolog", "epilog"):
        (made.dir / name).write_text(SCRIPT.format(name=name))
        (made.dir / name).chmod(0o755)
    yield made
    directory.cleanup()


@pytest.fixture(scope="module")
def work(cluster):
    return build(cluster, "io_work.c", "io_work")


@pytest.fixture
def look(cluster):
    path = cluster.dir / "look"
    path.mkdir(exist_ok=True)
    path.chmod(0o777)
    return path


def preloaded(path):
    return [line for line in path.read_text().splitlines() if line.startswith("LD_PRELOAD=")]


def seen(look, memory):  # noqa: F811
    return {"LOOK": str(look), "MEMORY": str(memory)}


def test_scripts_of_the_site_have_none_of_them_and_are_not_counted(cluster, look, memory, work):  # noqa: F811
    command = f"env > {look}/task.env; exec {work} {memory}"
    step = srun(cluster, "-N1", *ASKED, "bash", "-c", command, env=seen(look, memory))
    assert preloaded(look / "task.env") == [OURS]
    assert preloaded(look / "prolog.env") == [] and preloaded(look / "epilog.env") == []
    check(step.profile(), [json.loads(step.stdout)], mountpoint="/dev/shm")


def test_the_users_own_libraries_reach_these_scripts_as_ever(cluster, look, memory):  # noqa: F811
    env = seen(look, memory) | {"LD_PRELOAD": "libm.so.6"}
    srun(cluster, "-N1", *ASKED, "true", env=env)
    for name in ("prolog", "epilog"):
        assert preloaded(look / f"{name}.env") == ["LD_PRELOAD=libm.so.6"], name


def test_in_a_batch_script_and_its_steps(cluster, look, memory, work):  # noqa: F811
    script = f"env > {look}/task.env; srun bash -c 'env > {look}/step.env'"
    export = ",".join(f"{name}={value}" for name, value in seen(look, memory).items())
    job = cluster.sbatch(script, options=["-N1", *ASKED, f"--export=ALL,{export}"])
    assert cluster.wait_job(job) == "COMPLETED"
    assert preloaded(look / "task.env") == preloaded(look / "step.env") == [OURS]
    assert preloaded(look / "prolog.env") == [] and preloaded(look / "epilog.env") == []


def test_a_task_whose_root_has_no_such_libraries_runs_as_ever(cluster, look, memory):  # noqa: F811
    env = seen(look, memory) | {"HIDE": "1"}
    step = srun(cluster, "-N1", *ASKED, "bash", "-c", "ls; env", env=env)
    assert without_sonde(step.stderr) == []
    assert "LD_PRELOAD=" not in step.stdout
    assert f"not all of the libraries are in {LIBRARIES}" in cluster.log("n1")


def test_what_runs_in_a_container_of_slurms_has_none_of_them(cluster, look, memory):  # noqa: F811
    env = seen(look, memory) | {"IN_CONTAINER": "1"}
    step = Step(cluster, ["srun", "-N1", *ASKED, "env"], env=env)
    assert step.wait()[0] == 0, step.stderr
    assert "SLURM_CONTAINER=/bundle" in step.stdout and "LD_PRELOAD=" not in step.stdout
