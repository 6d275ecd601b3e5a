"""Whatever happens to a step, nothing of ours is in its control group when Slurm looks there.

Since Slurm 25.05 the end of a step kills what is in the control groups of its tasks, and waits for
what is in slurmstepd's own, where daemons are: each process of ours that stays there drains the node.
"""

import os
import re
import signal

import pytest

from guest_cluster import MORE, has_all_samples

DRAINED = "IDLE+DRAIN Kill task failed"

# The longest one; then before the first task, while tasks start, and after them.
NAMES = (
    "acting_head", "plain", "unwritable_output", "unwritable_batch_output", "missing_program", "missing_mpi",
    "missing_container", "hung_filesystem", "failing_prolog", "cancelled", "failing_init_post_opt", "failing_user_init",
    "failing_task_init_privileged", "failing_task_init", "failing_task_post_fork", "failing_task_exit",
    "failing_mpi_prefork", "short_epilog", "slow_epilog", "all_metrics", "killed_daemon",
    "exporters_readers", "followers", "alarm_command", "key", "failing_task_exit_first",
    "alarm_command_of_killed", "stopped_daemon", "killed_slurmstepd", "stopped_start", "killed_at_end",
)  # fmt: skip


def wanted(request, fixture):
    """The scenarios of the tests that will run: with -k these may be few."""
    items = [item for item in request.session.items if item.path == request.path]
    return [item.callspec.params["name"] for item in items
            if fixture in item.fixturenames and hasattr(item, "callspec")]  # fmt: skip


@pytest.fixture(scope="module")
def seen(request, scenarios):
    return scenarios(*wanted(request, "seen"))


def test_slurm_waits_for_what_is_in_its_own_control_group(seen):
    """Sid goes on: what these tests are about began with 25.05."""
    if os.environ.get("SONDE_GUEST", "sid") != "sid":
        pytest.skip("an older release")
    release = tuple(map(int, re.search(r"(\d\d)\.(\d\d)", seen["version"]).groups()))
    assert release >= (25, 5), seen["version"]


def check_times(seen):
    """The commands, and Slurm after them, wait hardly longer than without telemetry."""
    without, watched = seen["without"], seen["with"]
    assert watched["waited"] <= without["waited"] + seen["more"], "s that the commands waited"
    assert watched["settled"] <= without["settled"] + MORE, "s until Slurm was done with the nodes"


def check(seen, name):
    without, watched = seen[name]["without"], seen[name]["with"]
    assert without["code"] != -signal.SIGKILL, "it took longer than the scenario gives it"
    assert watched["code"] == without["code"], watched["output"]
    assert watched["left"] == {}, "still in the step's control group 3 s after its end"
    assert watched["stayed"] < 3, "s in the step's control group after its tasks' end"
    check_times(seen[name])
    assert watched["nodes"] == without["nodes"]
    assert watched["left_at_all"] == {}


def was_to_fail(seen):
    assert seen["without"]["code"] != 0


def failed_or_said_so(seen):
    """srun of Slurm 22.05 says it and ends with 0."""
    without = seen["without"]
    assert without["code"] != 0 or "launch failed" in without["output"], without


def killed_in_time(seen):
    output = seen["with"]["output"]
    assert output.endswith("killed at its end\n"), output


def was_watched(seen):
    output = " ".join(seen["with"]["output"].split())
    assert re.search(r"Sonde: \S+ \(sleep\) on \S+: completed", output), output
    assert has_all_samples(output), output


def names_what_was_not_asked(seen):
    output = " ".join(seen["with"]["output"].split())
    assert "the space of /tmp/hung (fuse.sshfs) is not recorded" in output, output


def shows_no_key(seen):
    """Neither a task nor a record: it has 64 hexadecimal digits; zeros say that there is none yet."""
    output = seen["with"]["output"]
    assert output.count("SLURM_PROCID=") >= 4 and "JobState=" in output, output
    assert not re.findall(r"(?!0{64})[0-9a-f]{64}", output)


# What was to fail failed, what was to run was watched, and what else a scenario is about.
BESIDES = {
    "missing_container": was_to_fail, "failing_mpi_prefork": failed_or_said_so, "killed_at_end": killed_in_time,
    "short_epilog": was_watched, "slow_epilog": was_watched, "all_metrics": was_watched,
    "hung_filesystem": names_what_was_not_asked, "key": shows_no_key,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_as_without_telemetry(seen, name):
    if name == "stopped_start" and DRAINED in seen[name]["without"]["code"][1].values():
        # As 22.05 does: its slurmstepd waits for the stopped process for ever, and with it what it started.
        pytest.skip("Slurm drains the node without telemetry, too")
    check(seen, name)
    if name in BESIDES:
        BESIDES[name](seen[name])


# Callbacks run in processes of their own then, which share slurmstepd's memory and not its descriptors.
CONTAINED = ("plain", "unwritable_output", "failing_task_post_fork", "cancelled")


def knows_contain_spank(root):
    """Slurm 22.05 does not, nor Dirs of job_container.conf; a parameter that it does not know it ignores."""
    libraries = list(root.glob("usr/lib/*/slurm-wlm/libslurmfull.so"))
    assert libraries, f"no Slurm in {root}"
    return any(b"contain_spank" in library.read_bytes() for library in libraries)


@pytest.fixture(scope="module")
def seen_contained(root, scenarios):
    if not knows_contain_spank(root):
        pytest.skip("this Slurm has no contain_spank")
    return scenarios(*CONTAINED, contain=True)


@pytest.mark.parametrize("name", CONTAINED)
def test_nodes_are_as_without_telemetry_with_contain_spank(seen_contained, name):
    check(seen_contained, name)


def test_a_step_is_watched_with_contain_spank(seen_contained):
    was_watched(seen_contained["plain"])
