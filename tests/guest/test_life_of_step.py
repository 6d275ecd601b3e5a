"""Steps that live in unusual ways end as they would without telemetry, and leave the nodes as they were."""

import pytest

from test_end_of_step import check, wanted

NAMES = (
    "heterogeneous", "overlapping", "array", "terminal", "interactive", "suspended", "requeued", "dead_node",
    "time_limit", "memory_exceeded", "memory_at_limit",
    "memory_at_limit_in_batch", "restarted_slurmd", "reconfigured", "short_steps",
)  # fmt: skip


@pytest.fixture(scope="module")
def seen(request, scenarios):
    return scenarios(*wanted(request, "seen"))


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_as_without_telemetry(seen, name):
    check(seen, name)
