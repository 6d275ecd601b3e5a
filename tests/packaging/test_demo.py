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
    """Runs a script with the arguments in a checkout where cmake, ctest, scripts/deps and scripts/prepare only write
    down what is asked of them. Gives what is asked for the build, in its order, and what is asked beside it, a line
    a command. The build fails when all has been asked, so nothing runs after it. asked.run takes their exit codes,
    by their names in capitals."""
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    programs = checkout / "bin"
    programs.mkdir()
    stub = f"""#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>{checkout}/asked
case "$name $1 $2" in
  prepare*) exit "${{PREPARE:-0}}" ;;
  ctest*) exit "${{CTEST:-0}}" ;;
  "deps install run") exit "${{DEPS:-0}}" ;;
  "cmake --build"*) until grep -q "$LAST" {checkout}/asked; do sleep 0.02; done; exit "${{CMAKE:-1}}" ;;
esac
"""
    for path in (programs / "cmake", programs / "ctest", checkout / "scripts" / "deps", checkout / "scripts" / "prepare"):
        path.write_text(stub)
        path.chmod(0o755)

    def run_script(*script, last="", **codes):
        (checkout / "asked").write_text("")
        return subprocess.run(
            [checkout / "scripts" / script[0], *script[1:]],
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LAST": last, **codes},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def ask(*script, last):
        assert run_script(*script, last=last).returncode == 1
        lines = (checkout / "asked").read_text().splitlines()
        beside = [line for line in lines if line.startswith("prepare") or line.startswith("deps install run")]
        return [line for line in lines if line not in beside], beside

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
    (deps, configure, build), beside = asked("demo", last="deps install run")
    assert deps == "deps install demo"
    assert "--preset release" in configure and "-DSONDE_TESTS=OFF" in configure
    assert build.endswith(" --target demo")
    assert beside == ["deps install run"]


@pytest.mark.skipif(os.geteuid() != 0, reason="scripts/demo needs root")
def test_a_demo_leaves_what_the_tests_have_built(asked, checkout):
    cache = checkout / "build" / "release" / "CMakeCache.txt"
    cache.parent.mkdir(parents=True)
    cache.touch()
    (_, configure, build), _ = asked("demo", last="deps install run")
    assert "SONDE_TESTS" not in configure and "--preset" not in configure
    assert build.endswith(" --target demo")


def test_the_tests_build_everything_and_prepare_beside_it(asked):
    (deps, configure, build), beside = asked("test", last="prepare")
    assert deps == "deps install build"
    assert configure.endswith("--preset release")
    assert build.endswith(" --target all")
    assert beside == ["deps install run test web", "prepare "]


@pytest.mark.parametrize(
    "prepare, ctest, code", [(0, 0, 0), (77, 0, 0), (78, 0, 1), (0, 8, 8), (77, 8, 8), (78, 8, 1)]
)
def test_tests_run_without_what_could_not_be_made_and_it_is_said_last(asked, checkout, prepare, ctest, code):
    made = checkout / "build" / "release" / "made"
    made.mkdir(parents=True)
    if prepare:
        (made / "mypy.why").write_text("there is no network\n")
    done = asked.run("test", last="prepare", CMAKE="0", PREPARE=str(prepare), CTEST=str(ctest))
    assert done.returncode == code, done.stderr
    assert "ctest --test-dir" in (checkout / "asked").read_text()
    assert done.stdout.endswith("\nmypy: there is no network\n") == (prepare != 0)


@pytest.mark.parametrize("codes", [{"DEPS": "100"}, {"PREPARE": "3"}])
def test_no_test_runs_without_packages(asked, checkout, codes):
    done = asked.run("test", last="deps install run", CMAKE="0", **codes)
    assert str(done.returncode) in codes.values(), done.stderr
    assert "ctest" not in (checkout / "asked").read_text()


def test_a_quick_run_prepares_what_its_tests_need(asked):
    _, beside = asked("test", "--quick", last="prepare")
    assert beside == ["deps install run test", "prepare mypy"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_fresh_root_is_skipped_by_who_may_not_make_one(asked, checkout):
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    # Not as if in a fresh root, where this test may run.
    elsewhere = {name: value for name, value in os.environ.items() if name != "SONDE_FRESH"}
    fresh = checkout / "scripts" / "fresh"
    done = subprocess.run([*nobody, fresh], env=elsewhere, capture_output=True, text=True, check=False)
    assert done.returncode == 77 and "needs root" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize(
    "files, jobs",
    [({}, "2 2"), ({"cpu.max": "max 100000", "memory.max": "max"}, "2 2"), ({"cpu.max": "50000 100000"}, "1 2"),
     ({"cpu.max": "150000 100000"}, "2 2"), ({"memory.max": str(3 << 29)}, "2 1"), ({"memory.max": "4096"}, "2 1")],
)  # fmt: skip
def test_a_containers_quotas_bound_the_jobs(tmp_path, files, jobs):
    (tmp_path / "nproc").write_text("#!/bin/sh\necho 2\n")
    (tmp_path / "nproc").chmod(0o755)
    write = "".join(f"echo '{text}' >/sys/fs/cgroup/{name}\n" for name, text in files.items())
    script = f"""
mount -t tmpfs tmpfs /sys/fs/cgroup
{write}source {ROOT}/scripts/lib.sh
PATH={tmp_path}:$PATH
echo "$(sonde_processors) $(sonde_jobs 2)"
"""
    assert run("unshare", "--mount", "bash", "-euc", script).strip() == jobs


def test_the_demo_needs_nothing_of_the_tests(tmp_path):
    script = f'source {ROOT}/scripts/lib.sh; echo "${{SONDE_NOT_IN_DEMO[@]}}"'
    options = run("bash", "-c", script).split()
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("GTest", "benchmark", "Python3")]
    run("cmake", "-S", ROOT, "--preset", "release", "-B", tmp_path, *options, *absent)
    demo = run("ninja", "-C", tmp_path, "-t", "commands", "demo").splitlines()
    assert not [command for command in demo if "/tests/" in command or "/bench/" in command]
    assert len(demo) > 100
    # What is compiled for the demo serves the tests: they compile it in the same way.
    tested = run("ninja", "-C", BUILD, "-t", "commands", "demo")
    assert "\n".join(demo).replace(str(tmp_path), str(BUILD)) == tested.strip()


def test_the_demo_s_packages_are_no_compilers_and_programs_of_tests():
    def packages(*kinds):
        return set(run(ROOT / "scripts" / "deps", "list", "apt", *kinds).split())

    assert {"g++", "slurm-wlm", "munge", "libmpich-dev"} <= packages("demo", "run")
    assert packages("demo") < packages("build")
    assert not packages("demo", "run") & packages("test", "bench", "web")
