"""Steps on Slurm 26.05, or on that of SONDE_GUEST, with a unified cgroup v2, in user-mode Linux
(scripts/guest).

The guest runs scenarios.py, which needs nothing but Python there; the tests look at what it saw. A boot
with a cluster takes most of a minute, so the scenarios of a module share one.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import made  # noqa: E402  (of tests/, for which the path had to be set)
import releases  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build" / "release")).resolve()
GUEST = ROOT / "scripts" / "guest"
RELEASE = os.environ.get("SONDE_GUEST", "sid")
SKIPPED = 77
# The C library and what belongs to it must be the guest's own.
OF_LIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        pytest.fail(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}", pytrace=False)
    return done.stdout


def pytest_sessionstart(session):
    missing = [name for name in ("linux.uml", "patchelf") if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        pytest.exit(f"needs root and {', '.join(missing) or 'nothing else'}", returncode=SKIPPED)
    if made.place(f"slurm-{RELEASE}") is None:
        pytest.exit(made.why(f"slurm-{RELEASE}"), returncode=SKIPPED)
    if not releases.plugin_of(BUILD, RELEASE).exists():
        pytest.exit(made.why(f"plugin-{RELEASE}"), returncode=SKIPPED)


def libraries(program):
    """The shared libraries of a program that the guest may lack."""
    found = re.findall(r"=> (/\S+)", run("ldd", program))
    return [path for path in found if not OF_LIBC.match(os.path.basename(path))]


def stage_programs(stage):
    """The programs of this machine's build, with the libraries that they need beside them."""
    for folder, names in (("daemon", ("sonded", "sonded-head")), ("cli", ("sonde",))):
        (stage / folder).mkdir()
        for name in names:
            program = stage / folder / name
            shutil.copy2(BUILD / folder / name, program)
            (stage / "lib").mkdir(exist_ok=True)
            for library in libraries(program):
                shutil.copy2(library, stage / "lib")
            run("patchelf", "--set-rpath", "$ORIGIN/../lib", program)
    shutil.copytree(
        BUILD / "libclient", stage / "libclient", ignore=shutil.ignore_patterns("CMakeFiles", "*.cmake", "*.a")
    )


def stage_plugins(stage, include):
    """The plugin for the guest's Slurm, compiled here against its headers."""
    (stage / "spank").mkdir()
    shutil.copy2(releases.plugin(BUILD, RELEASE, include), stage / "spank")
    source = ROOT / "tests" / "guest" / "failing_plugin.c"
    run("cc", "-shared", "-fPIC", f"-I{include}", "-o", stage / "failing_plugin.so", source)


def stage_module(stage, name):
    """A module of the guest's kernel, which comes with the kernel and not with the guest's root."""
    kernel = run("linux.uml", "--version").strip()
    shutil.copy2(f"/usr/lib/uml/modules/{kernel}/kernel/{name}", stage)


@pytest.fixture(scope="session")
def root():
    """The root directory that the guest has."""
    return pathlib.Path(run(GUEST, "root", "--made", RELEASE).strip())


@pytest.fixture(scope="session")
def stage(root, tmp_path_factory):
    """A directory with the programs and plugins for the guest."""
    stage = tmp_path_factory.mktemp("stage")
    stage_programs(stage)
    stage_plugins(stage, root / "usr" / "include")
    stage_module(stage, "fs/fuse/fuse.ko")
    # Jobs run as ordinary users.
    run("chmod", "-R", "a+rX", stage)
    return stage


class Seen(dict):
    """What a guest's scenarios showed; a test of one that showed nothing fails, and no other test."""

    def __getitem__(self, name):
        value = super().__getitem__(name)
        if isinstance(value, dict) and "failed" in value:
            pytest.fail(f"{name}: {value['failed']}", pytrace=False)
        return value


def keep(seen):
    """For the table of docs/admin.md (table.py), if SONDE_SEEN names a directory."""
    if "SONDE_SEEN" not in os.environ:
        return
    path = pathlib.Path(os.environ["SONDE_SEEN"]) / f"{RELEASE}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | seen, indent=1))


def in_guest(stage, options, program, *words):
    """What a program of this folder prints in a guest."""
    done = subprocess.run(
        [GUEST, "run", "--made", RELEASE, "--share", f"sonde={stage}", "--share", f"scripts={ROOT / 'scripts'}",
         "--share", f"tests={ROOT / 'tests' / 'guest'}", "--timeout", "2300", *options, "--",
         "python3", "-B", f"/share/tests/{program}", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.fail(f"the guest failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}", pytrace=False)
    print(done.stderr, file=sys.stderr)  # how long each scenario took, for pytest -s
    seen = Seen(json.loads(done.stdout))
    if "contain" not in words:
        keep(seen)
    return seen


@pytest.fixture(scope="session")
def scenarios(stage):
    """Runs scenarios in a guest: name -> what was seen."""
    return lambda *names, contain=False: in_guest(
        stage, [], "scenarios.py", "contain" if contain else "plain", *names
    )


@pytest.fixture(scope="session")
def node_scenarios(stage, tmp_path_factory):
    """The same, where each node is a guest of its own."""

    def run_in_guests(*names):
        work = tmp_path_factory.mktemp("work")
        work.chmod(0o755)
        options = ["--nodes", "2", "--memory", "1G", "--node-memory", "512M", "--share", f"work={work}"]
        return in_guest(stage, options, "node_scenarios.py", *names)

    return run_in_guests
