"""The options of srun, sbatch and salloc: what is accepted, what is refused and how."""

import pytest
from plugin_alone import _daemon, cluster, daemon  # noqa: F401

SECOND_LINES = {"srun": "hostname", "salloc": "true", "sbatch": "--wrap=true"}
INVALID = [
    ("level", "5", "expected 0 (off)"),
    ("level", "abc", "expected 0 (off)"),
    ("level", "", "expected 0 (off)"),
    ("period", "1ms", "expected a time from 10ms to 1h"),
    ("events", "a,,b", "expected 1 to 32 names of events"),
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


# Nobody typed these in the command that they reach.
INHERITED = [
    ("SLURM_TELEMETRY_LEVEL", "high"),
    ("SLURM_TELEMETRY_PERIOD", "1ms"),
    ("SLURM_TELEMETRY_EVENTS", "a,,b"),
    ("SLURM_TELEMETRY_MPI", "maybe"),
    ("SLURM_TELEMETRY_IO", "1"),
    ("SLURM_TELEMETRY_FUNCTIONS", "all"),
    ("SLURM_TELEMETRY_TAG", "=="),
    ("SLURM_TELEMETRY_ALARMS", "/nonexistent/my.rules"),
    ("SLURM_SPANK__SLURM_SPANK_OPTION_sonde_telemetry_level", "7"),
]


@pytest.mark.parametrize("program", SECOND_LINES)
@pytest.mark.parametrize("variable, value", INHERITED)
def test_what_is_inherited_never_stops_a_command(cluster, daemon, program, variable, value):
    done = cluster.run(["env", f"{variable}={value}", program, SECOND_LINES[program]])
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "sonde:" in line]
    option = variable.rpartition("_")[2].lower()
    source = variable if variable.startswith("SLURM_TELEMETRY") else "inherited"
    assert f"sonde: --telemetry-{option}={value}: expected" in line
    assert line.endswith(f"({source}); ignored")


def test_a_wrong_default_leaves_what_was_typed(cluster, daemon):
    wrong = ["SLURM_TELEMETRY_LEVEL=high", "SLURM_TELEMETRY_PERIOD=1ms"]
    done = cluster.run(["env", *wrong, "srun", "--telemetry-level=1", "true"])
    assert done.returncode == 0
    (node,) = daemon.records("node")
    assert (node.launch["level"], node.launch["period"]) == ("1", "1000000000")


def test_a_file_of_rules_is_found_wherever_a_step_is_started(cluster, daemon):
    rules = cluster.home() / "my.rules"
    rules.write_text("busy: node_load1 > 1000\n")
    (cluster.home() / "elsewhere").mkdir(exist_ok=True)
    script = "#!/bin/bash\n#SBATCH --telemetry-level=1\n#SBATCH --telemetry-alarms=my.rules\n"
    script += "cd elsewhere; srun -N1 true\n"
    submitted = cluster.run("cd && sbatch --parsable --wait", input=script)
    assert submitted.returncode == 0, submitted.stderr
    for role in ("head", "solo"):
        (record,) = daemon.records(role)
        assert record.launch["alarms"] == str(rules)


def test_a_file_of_rules_that_has_gone_away_stops_no_step(cluster, daemon):
    rules = cluster.home() / "gone.rules"
    rules.write_text("busy: node_load1 > 1000\n")
    script = "#!/bin/bash\n#SBATCH --telemetry-level=1\n#SBATCH --telemetry-alarms=gone.rules\n"
    script += "rm gone.rules; srun -N1 echo it runs\n"
    submitted = cluster.run("cd && sbatch --parsable --wait", input=script)
    assert submitted.returncode == 0, submitted.stderr
    output = (cluster.home() / f"slurm-{submitted.stdout.strip()}.out").read_text()
    assert "it runs" in output and "expected a file of alarm rules" in output
    (head,) = daemon.records("head")
    assert "alarms" not in head.launch


def test_invalid_directive_of_a_script_is_refused(cluster, daemon):
    script = "#!/bin/bash\n#SBATCH --telemetry-level=9\ntrue\n"
    done = cluster.run(["sbatch"], input=script)
    assert done.returncode == 255
    assert "sonde: --telemetry-level=9: expected" in done.stderr


def test_a_level_that_a_node_does_not_know_is_the_highest_there(cluster, daemon):
    # The variable that carries the option inside a job is not validated by Slurm.
    variable = "_SLURM_SPANK_OPTION_sonde_telemetry_level=77"
    script = f"export {variable}\nsrun -N1 echo fine\n"
    job = cluster.sbatch(script, options=["-wn1", f"--export=ALL,{variable}"])
    assert cluster.wait_job(job) == "COMPLETED"
    assert (cluster.home() / f"slurm-{job}.out").read_text() == "fine\n"
    # srun was not asked for telemetry, so its step has no head.
    (solo,) = daemon.records()
    assert (solo.launch["step"], solo.launch["level"]) == ("batch", "4")
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
        "--telemetry-functions",
        "--telemetry-alarms=FILE",
        "--telemetry-tag=NAME=VALUE,...",
    ):
        assert option in done.stdout
