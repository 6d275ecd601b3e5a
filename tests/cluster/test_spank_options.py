"""The options of srun, sbatch and salloc: what is accepted, what is refused and how."""

import pytest
from plugin_alone import _daemon, cluster, daemon  # noqa: F401

SECOND_LINES = {"srun": "hostname", "salloc": "true", "sbatch": "--wrap=true"}
INVALID = [
    ("level", "5", "expected 0 (off)"),
    ("level", "abc", "expected 0 (off)"),
    ("level", "", "expected 0 (off)"),
    ("period", "1ms", "expected a time from 10ms to 1h"),
    ("events", "a,,b", "expected 1 to 24 names of events"),
    ("mpi", "maybe", "expected yes or no"),
    ("io", "1", "expected yes or no"),
]


@pytest.mark.parametrize("program", SECOND_LINES)
@pytest.mark.parametrize("option, value, expected", INVALID)
def test_invalid_option_is_refused_with_one_line(cluster, daemon, program, option, value, expected):
    done = cluster.run([program, f"--telemetry-{option}={value}", SECOND_LINES[program]])
    assert done.returncode == 255
    ours = [line for line in done.stderr.splitlines() if "sonde:" in line]
    assert len(ours) == 1 and f"sonde: --telemetry-{option}={value}: {expected}" in ours[0]
    assert f"Invalid --telemetry-{option} argument" in done.stderr


@pytest.mark.parametrize("program", SECOND_LINES)
def test_invalid_default_names_its_variable(cluster, daemon, program):
    done = cluster.run([program, SECOND_LINES[program]], env={"SLURM_TELEMETRY_LEVEL": "high"})
    assert done.returncode != 0
    assert "sonde: --telemetry-level=high: expected" in done.stderr
    assert "(from SLURM_TELEMETRY_LEVEL)" in done.stderr


def test_invalid_directive_of_a_script_is_refused(cluster, daemon):
    script = "#!/bin/bash\n#SBATCH --telemetry-level=9\ntrue\n"
    done = cluster.run(["sbatch"], input=script)
    assert done.returncode == 255
    assert "sonde: --telemetry-level=9: expected" in done.stderr


def test_invalid_value_that_reaches_a_node_means_no_telemetry(cluster, daemon):
    # The variable that carries the option inside a job is not validated by Slurm.
    variable = "_SLURM_SPANK_OPTION_sonde_telemetry_level=77"
    script = f"export {variable}\nsrun -N1 echo fine\n"
    job = cluster.sbatch(script, options=["-wn1", f"--export=ALL,{variable}"])
    assert cluster.wait_job(job) == "COMPLETED"
    assert (cluster.home() / f"slurm-{job}.out").read_text() == "fine\n"
    assert daemon.records() == []
    # Some releases call the callback twice; one line for each step is enough.
    lines = [line for line in cluster.log("n1").splitlines() if "--telemetry-level=77" in line]
    steps = [line.split("[")[2].split("]")[0] for line in lines]
    assert steps == [f"{job}.batch", f"{job}.0"]


def test_options_reach_the_daemons(cluster, daemon):
    options = ["--telemetry-level=1", "--telemetry-period=1.5s", "--telemetry-events=cycles,cache:u"]
    assert cluster.run(["srun", *options, "true"]).returncode == 0
    for record in daemon.wait_records(2):
        assert record.launch["level"] == "1"
        assert record.launch["period"] == "1500000000"
        assert record.launch["events"] == "cycles,cache:u"


def test_environment_gives_defaults_that_an_option_overrides(cluster, daemon):
    env = "SLURM_TELEMETRY_LEVEL=2 SLURM_TELEMETRY_PERIOD=100ms SLURM_TELEMETRY_EVENTS=cycles"
    assert cluster.run(f"{env} srun --telemetry-level=1 true").returncode == 0
    (node,) = daemon.records("node")
    found = (node.launch["level"], node.launch["period"], node.launch["events"])
    assert found == ("1", "100000000", "cycles")


def test_level_of_a_script_reaches_its_steps_and_environment_wins(cluster, daemon):
    script = "#!/bin/bash\n#SBATCH --telemetry-level=1\nsrun true\nsrun --telemetry-level=2 true\n"
    job = cluster.sbatch(script)
    assert cluster.wait_job(job) == "COMPLETED"
    levels = {record.launch["step"]: record.launch["level"] for record in daemon.records()}
    assert levels == {"batch": "1", "0": "1", "1": "2"}
    done = cluster.run(["sbatch", "--parsable"], input=script, env={"SLURM_TELEMETRY_LEVEL": "3"})
    job = int(done.stdout)
    assert cluster.wait_job(job) == "COMPLETED"
    levels = {r.launch["step"]: r.launch["level"] for r in daemon.records(step=f"{job}.")}
    assert levels == {"batch": "3", "0": "3", "1": "2"}


def test_salloc_passes_the_level_to_its_steps(cluster, daemon):
    done = cluster.run(["salloc", "-N1", "--telemetry-level=1", "srun", "hostname"])
    assert done.returncode == 0, done.stderr
    assert [record.launch["role"] for record in daemon.records()] == ["head", "node"]


def test_options_are_explained(cluster, daemon):
    done = cluster.run(["srun", "--help"])
    for option in (
        "--telemetry-level=0..4",
        "--telemetry-period=TIME",
        "--telemetry-events=LIST",
        "--telemetry-mpi",
        "--telemetry-io",
        "--telemetry-alarms=FILE",
        "--telemetry-tag=NAME=VALUE,...",
    ):
        assert option in done.stdout
