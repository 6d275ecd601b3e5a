"""Which Slurm a build is for: CMake takes the headers that it was told to take and no others, says their
release, and knows where that Slurm looks for plugins. The plugin alone needs nothing but these headers."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = pathlib.Path("/usr/include/slurm")
# What a build of everything looks for, and a build of the plugin alone must do without.
ABSENT = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Boost", "fmt", "CLI11", "PkgConfig", "Threads")]
ABSENT += ["-DCMAKE_Fortran_COMPILER=/nonexistent"]


def configure(build, *options):
    command = ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DSONDE_PLUGIN_ONLY=ON", "-DSONDE_UNITY=ON", *ABSENT, *options]
    if shutil.which("ccache"):
        command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def headers(include, number):
    """This machine's headers as those of another release."""
    shutil.copytree(HEADERS, include / "slurm")
    file = include / "slurm" / "slurm_version.h"
    text, count = re.subn(r"(?m)^(#define SLURM_VERSION_NUMBER) .*", rf"\1 {number}", file.read_text())
    assert count == 1
    file.write_text(text)
    return include


def found(done):
    assert done.returncode == 0, done.stderr
    return re.search(r"-- Slurm (\S+) \(headers in (\S+), plugin for (\S+)\)", done.stdout).groups()


@pytest.mark.parametrize("missing", ["slurm", "slurm/spank.h", "slurm/slurm_version.h"])
def test_headers_that_are_not_there_are_refused(tmp_path, missing):
    include = headers(tmp_path / "include", "0x1a0505")
    path = include / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = configure(tmp_path / "build", f"-DSLURM_INCLUDE={include}")
    text = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert f"SLURM_INCLUDE={include}: there are no headers of Slurm" in text
    assert "slurm/spank.h" in text and "SLURM_VERSION_NUMBER" in text


def test_without_being_told_it_says_what_it_found(tmp_path):
    number = re.search(r"SLURM_VERSION_NUMBER 0x(\w+)", (HEADERS / "slurm_version.h").read_text()).group(1)
    year, month, patch = bytes.fromhex(number.zfill(6))
    version, include, _ = found(configure(tmp_path / "build"))
    assert (version, include) == (f"{year}.{month:02d}.{patch}", "/usr/include")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A build against headers of 26.05.5."""
    place = tmp_path_factory.mktemp("other")
    include = headers(place / "include", "0x1a0505")
    build = place / "build"
    assert found(configure(build, f"-DSLURM_INCLUDE={include}/"))[:2] == ("26.05.5", str(include))
    return build


def test_the_plugin_alone_is_built_for_the_headers_named(other):
    subprocess.run(["ninja", "-C", other], check=True, capture_output=True)
    plugin = other / "spank" / "spank_sonde.so"
    listed = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", plugin], check=True, capture_output=True, text=True
    ).stdout
    address = int(re.search(r"(\w+)\s+\d+ OBJECT .* plugin_version$", listed, re.M).group(1), 16)
    # Constants lie in the file where they lie in memory.
    assert int.from_bytes(plugin.read_bytes()[address : address + 4], "little") == 0x1A0505
    built = {path.name for path in other.rglob("*") if path.suffix == ".so" or os.access(path, os.X_OK) and path.is_file()}
    assert {name for name in built if "CMake" not in name and not name.startswith("a.out")} == {"spank_sonde.so"}


def test_other_headers_that_the_compiler_finds_first_are_refused(other, tmp_path):
    env = {**os.environ, "CPATH": str(headers(tmp_path / "include", "0x180b05"))}
    # What is compiled already is not compiled again.
    subprocess.run(["ninja", "-C", other, "-t", "clean"], check=True, capture_output=True)
    done = subprocess.run(["ninja", "-C", other], env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "headers of another Slurm" in done.stdout


@pytest.mark.parametrize(
    "include, plugins, debian, expected",
    [
        # A Slurm of its own prefix: wherever Sonde goes.
        ("opt/slurm/include", "opt/slurm/lib/slurm", False, "{root}/opt/slurm/lib/slurm"),
        ("opt/slurm/include", "opt/slurm/lib64/slurm", False, "{root}/opt/slurm/lib64/slurm"),
        ("opt/slurm/include", None, False, "{root}/opt/slurm/lib/slurm"),
        # A distribution's: below the prefix of Sonde.
        ("usr/include", "usr/lib64/slurm", False, "lib64/slurm"),
        ("usr/include", "usr/lib/{triplet}/slurm-wlm", True, "lib/{triplet}/slurm-wlm"),
        ("usr/include", None, True, "lib/{triplet}/slurm-wlm"),
    ],
)
def test_the_plugin_goes_where_that_slurm_looks(tmp_path, include, plugins, debian, expected):
    triplet = subprocess.run(
        ["c++", "-print-multiarch"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if "{triplet}" in f"{plugins}{expected}" and not triplet:
        pytest.skip("this compiler has no folder for each architecture")
    root = tmp_path / "root"
    headers(root / include, "0x1a0505")
    if plugins:
        directory = root / plugins.format(triplet=triplet)
        directory.mkdir(parents=True)
        (directory / "proctrack_linuxproc.so").touch()
    if debian:
        (root / "etc").mkdir()
        (root / "etc" / "debian_version").touch()
    told = found(configure(tmp_path / "build", f"-DSLURM_INCLUDE={root / include}"))[2]
    assert told == expected.format(root=root, triplet=triplet)
    # What is asked for goes before what is found.
    told = found(configure(tmp_path / "build", "-DSONDE_SLURM_PLUGIN_DIR=elsewhere"))[2]
    assert told == "elsewhere"
