"""What others get of a user's running step, archive and servers: nothing.

OTHER_USER, with processes on the same hosts, tries in six places what USER or root may do: on the nodes, at the head,
at the archive, at the server of a site, at the end of a tunnel, and with what a host shares. A third one hears the
wire. Each attempt is a function that gives what it got as text, or Refused with the words in which it was refused.
Where it has a `control`, it is first made by the one who may, who must get something: so nobody is refused for want of
a path, a port or a process. The table of all attempts stands at the end; docs/security.md says what follows.
"""

import contextlib

import pytest

pytest.register_assert_rewrite("attempts")
from attempts import archive, head, host, node, site, wire  # noqa: E402, F401  (each registers its attempts)
from attempts.making import ATTEMPTS, TABLE, Refused  # noqa: E402
from attempts.world import World  # noqa: E402
from conftest import OTHER_USER  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def table():
    """Of the attempts that were made: python3 -m pytest -s shows it."""
    yield
    print()
    for place in dict.fromkeys(place for place, _, _ in TABLE.values()):
        print(place)
        for _, what, came in (row for row in TABLE.values() if row[0] == place):
            print(f"  {what:<88} {came[:100]}")
    print(f"{len(TABLE)} attempts")


@pytest.fixture(scope="module")
def world(cluster):
    # Not below pytest's own directory, which each run of pytest closes to others when it starts.
    directory = cluster.dir / "attempts"
    directory.mkdir(mode=0o755)
    with contextlib.ExitStack() as stack:
        made = World(cluster, directory, stack)
        yield made
        made.check_undisturbed()


@pytest.mark.parametrize(("name", "place", "what", "control", "function"), ATTEMPTS.values())
def test_attempt(world, name, place, what, control, function):
    TABLE[name] = (place, what, "was not made to the end")
    try:
        possible = control and function(world, control)
        assert not isinstance(possible, Refused), f"{control} gets nothing either: {possible}"
        got = function(world, OTHER_USER)
    except pytest.skip.Exception as why:
        TABLE[name] = (place, what, f"skipped: {why}")
        raise
    refused = isinstance(got, Refused)
    TABLE[name] = (place, what, f"nothing: {got}" if refused else f"GOT {got}")
    assert refused, f"{OTHER_USER} {what}: got {got}"
