"""scripts/demo installs and builds what it runs, and leaves the rest to scripts/test."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release"))


def run(*command, **options):
    return subprocess.run(
        [str(c) for c in command], check=True, capture_output=True, text=True, **options
    ).stdout


@pytest.fixture
def checkout():
    """A directory that ordinary users can reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="sonde-demo-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


@pytest.fixture
def asked(checkout):
    """Runs a script with the arguments in a checkout where cmake and scripts/deps only write down what is
    asked of them; gives that, a line a command. The build fails, so nothing runs after it."""
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    programs = checkout / "bin"
    programs.mkdir()
    for stub in (programs / "cmake", checkout / "scripts" / "deps"):
        stub.write_text(f'#!/bin/sh\necho "{stub.name} $*" >>{checkout}/asked\n[ "$1" != --build ]\n')
        stub.chmod(0o755)

    def run_script(*script):
        (checkout / "asked").write_text("")
        return subprocess.run(
            [checkout / "scripts" / script[0], *script[1:]],
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def ask(*script):
        assert run_script(*script).returncode != 0
        deps, configure, build = (checkout / "asked").read_text().splitlines()
        return deps, configure, build

    ask.run = run_script
    return ask


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs run as somebody else")
@pytest.mark.parametrize("script", ["demo", "test"])
def test_a_checkout_that_jobs_cannot_reach_is_refused_before_it_is_built(asked, checkout, script):
    checkout.chmod(0o700)
    done = asked.run(script)
    assert done.returncode == 1
    assert f"{checkout} is closed to ordinary users" in done.stderr
    assert (checkout / "asked").read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="scripts/demo needs root")
def test_the_first_demo_does_without_what_only_tests_need(asked):
    deps, configure, build = asked("demo")
    assert deps == "deps install demo"
    assert "--preset release" in configure and "-DSONDE_TESTS=OFF" in configure
    assert build.endswith(" --target demo")


@pytest.mark.skipif(os.geteuid() != 0, reason="scripts/demo needs root")
def test_a_demo_leaves_what_the_tests_have_built(asked, checkout):
    cache = checkout / "build" / "release" / "CMakeCache.txt"
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
