"""scripts/demo installs and builds what it runs, and leaves the rest to scripts/test."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))


def run(*command, **options):
    return subprocess.run(
        [str(c) for c in command], check=True, capture_output=True, text=True, **options
    ).stdout


@pytest.fixture
def asked(tmp_path):
    """Runs a script with the arguments in a checkout where cmake and scripts/deps only write down what is
    asked of them; gives that, a line a command. The build fails, so nothing runs after it."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    programs = tmp_path / "bin"
    programs.mkdir()
    for stub in (programs / "cmake", tmp_path / "scripts" / "deps"):
        stub.write_text(f'#!/bin/sh\necho "{stub.name} $*" >>{tmp_path}/asked\n[ "$1" != --build ]\n')
        stub.chmod(0o755)

    def ask(*script):
        (tmp_path / "asked").write_text("")
        done = subprocess.run(
            [tmp_path / "scripts" / script[0], *script[1:]],
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode != 0
        deps, configure, build = (tmp_path / "asked").read_text().splitlines()
        return deps, configure, build

    return ask


@pytest.mark.skipif(os.geteuid() != 0, reason="scripts/demo needs root")
def test_the_first_demo_does_without_what_only_tests_need(asked):
    deps, configure, build = asked("demo")
    assert deps == "deps install demo"
    assert "--preset release" in configure and "-DSONDE_TESTS=OFF" in configure
    assert build.endswith(" --target demo")


@pytest.mark.skipif(os.geteuid() != 0, reason="scripts/demo needs root")
def test_a_demo_leaves_what_the_tests_have_built(asked, tmp_path):
    cache = tmp_path / "build" / "release" / "CMakeCache.txt"
    cache.parent.mkdir(parents=True)
    cache.touch()
    deps, configure, build = asked("demo")
    assert "SONDE_TESTS" not in configure and "--preset" not in configure
    assert build.endswith(" --target demo")


def test_the_tests_build_everything(asked):
    deps, configure, build = asked("test")
    assert deps == "deps install build run test web"
    assert configure.endswith("--preset release")
    assert build.endswith(" --target all")


def test_the_demo_needs_nothing_of_the_tests(tmp_path):
    script = f'source {ROOT}/scripts/lib.sh; echo "${{SONDE_NOT_IN_DEMO[@]}}"'
    options = run("bash", "-c", script).split()
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("GTest", "benchmark", "Python3")]
    run("cmake", "-S", ROOT, "--preset", "release", "-B", tmp_path, *options, *absent)
    demo = run("ninja", "-C", tmp_path, "-t", "commands", "demo").splitlines()
    assert not [command for command in demo if "/tests/" in command or "/bench/" in command]
    assert len(demo) > 130
    # What is compiled for the demo serves the tests: they compile it in the same way.
    tested = run("ninja", "-C", BUILD, "-t", "commands", "demo")
    assert "\n".join(demo).replace(str(tmp_path), str(BUILD)) == tested.strip()


def test_the_demo_s_packages_are_no_compilers_and_programs_of_tests():
    names = set(run(ROOT / "scripts" / "deps", "list", "apt", "demo").split())
    assert {"g++", "slurm-wlm", "munge", "libmpich-dev"} <= names
    tests = set(run(ROOT / "scripts" / "deps", "list", "apt", "test", "bench", "web").split())
    assert names & tests == {"mpich", "libmpich-dev"}
