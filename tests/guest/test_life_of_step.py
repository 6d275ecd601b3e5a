"""Steps that live in unusual ways end as they would without telemetry, and leave the nodes as they were."""

import os

import pytest

from test_end_of_step import check, wanted

NAMES = (
    "heterogeneous", "overlapping", "array", "terminal", "interactive", "suspended", "requeued", "dead_node",
    "time_limit", "memory_exceeded", "memory_at_limit", "memory_at_limit_in_batch",
    "room_for_daemons", "restarted_slurmd", "reconfigured", "short_steps",
)  # fmt: skip
# Slurm 22.05 has none in the guest (guest_cluster.has_cgroups).
NEED_CGROUPS = ("memory_exceeded", "memory_at_limit", "memory_at_limit_in_batch", "room_for_daemons")


@pytest.fixture(scope="module")
def seen(request, scenarios):
    names = wanted(request, "seen")
    if os.environ.get("SONDE_GUEST") == "bookworm":
        names = [name for name in names if name not in NEED_CGROUPS]
    return scenarios(*names)


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_as_without_telemetry(seen, name):
    if name not in seen:
        pytest.skip("without control groups Slurm limits no memory")
    check(seen, name)


def test_a_step_that_is_not_watched_leaves_the_daemons_their_room(seen):
    """Slurm sets the job's limit anew when it starts."""
    if "room_for_daemons" not in seen:
        pytest.skip("not asked for, or Slurm limits no memory")
    without, watched = (list(map(int, seen["room_for_daemons"][how]["output"].split())) for how in ("without", "with"))
    assert without == [100 << 20] * 3
    assert len(watched) == 3 and min(watched) >= (100 + 64) << 20, watched
