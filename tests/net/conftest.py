"""Fixtures for steps in network namespaces; see step.py. SONDE_BUILD and SONDE_PROGRAMS as for
tests/cluster; what sanitizers find in a daemon fails the test that was running then."""

import dataclasses
import pathlib
import subprocess

import pytest
from daemons import BUILD, PROGRAMS, ROOT, SONDE, SONDED
from spaces import Network, missing
from step import Step

HERE = pathlib.Path(__file__).resolve().parent
REPORTS = PROGRAMS / "reports"  # of sanitizers: tests/cluster/sanitizer_options.cc
# ctest's SKIP_RETURN_CODE for these tests: shown as skipped, never as passed.
SKIPPED = 77


def pytest_sessionstart(session):
    why = missing()
    if why:
        pytest.exit(why, returncode=SKIPPED)
    absent = [str(path) for path in (SONDED, SONDE) if not path.exists()]
    if absent:
        pytest.exit(f"not built: {', '.join(absent)}; set SONDE_BUILD or build", returncode=1)


@dataclasses.dataclass
class Programs:
    application: pathlib.Path
    skew: pathlib.Path
    library: pathlib.Path  # where libsonde is


def make_programs(directory):
    """What the tests' own C sources make."""
    library = BUILD / "libclient"
    made = Programs(directory / "app", directory / "skew.so", library)
    flags = ["-I", ROOT, f"-L{library}", "-lsonde", "-pthread"]
    subprocess.run(["cc", "-o", made.application, HERE / "app.c", *flags], check=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made.skew, HERE / "skew.c"], check=True)
    return made


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return make_programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def network():
    made = Network()
    yield made
    made.close()


@pytest.fixture
def make_step(programs, network, tmp_path):
    """Makes a step, another when that is closed; all are taken away at the test's end."""
    steps = []

    def make(**options):
        directory = tmp_path / f"step{len(steps)}"
        directory.mkdir()
        assert all(step.closed for step in steps), "a network holds one step at a time"
        steps.append(Step(programs, network, directory, **options))
        return steps[-1]

    yield make
    for step in steps:
        step.close()


@pytest.fixture(autouse=True)
def sanitizers_find_nothing():
    before = set(REPORTS.glob("sonded.*"))
    yield
    found = sorted(set(REPORTS.glob("sonded.*")) - before)
    if found:
        texts = "\n".join(f"{path}:\n{path.read_text(errors='replace')}" for path in found)
        pytest.fail(f"what sanitizers found in sonded:\n{texts}", pytrace=False)
