"""What `cmake --install` puts where: programs and libraries without debug information, which stands
apart."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))
# Below the prefix. Slurm's plugin directory and the Python package's may be anywhere.
PROGRAMS = ["bin/sonde", "libexec/sonde/sonded", "libexec/sonde/sonded-head"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The prefix, in a directory of the test's own."""
    destination = tmp_path_factory.mktemp("installed")
    subprocess.run(
        ["cmake", "--install", BUILD], check=True, capture_output=True,
        env=os.environ | {"DESTDIR": str(destination)},
    )  # fmt: skip
    return next(destination.rglob("bin")).parent


def sections(path):
    command = ["readelf", "--sections", "--wide", path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def binaries(prefix):
    for path in sorted(prefix.rglob("*")):
        is_debug = (prefix / "lib" / "debug") in path.parents
        if path.is_file() and not path.is_symlink() and not is_debug:
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def test_nothing_that_runs_has_debug_information(installed):
    found = {str(path.relative_to(installed)): sections(path) for path in binaries(installed)}
    assert set(PROGRAMS) <= set(found)
    assert any(path.endswith("spank_sonde.so") for path in found)
    for path, text in found.items():
        assert ".debug_info" not in text, path
        assert ".gnu_debuglink" in text, path


def test_debuggers_find_it_under_the_same_path(installed):
    destination = pathlib.Path(str(installed).split("/installed")[0])
    for path in binaries(installed):
        inside = "/" + "/".join(path.relative_to(destination).parts[1:])
        debug = installed / "lib" / "debug" / f".{inside}.debug"
        assert ".debug_line" in sections(debug), path


def test_what_is_installed_runs(installed):
    done = subprocess.run(
        [installed / "bin" / "sonde", "--version"], check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("sonde ")
