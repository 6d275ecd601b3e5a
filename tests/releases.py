"""The plugin for the Slurm of another release of Debian, for tests/cluster and tests/guest."""

import fcntl
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


class BuildError(Exception):
    """A command that failed, and what it said."""


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise BuildError(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def folder(build, release):
    return build.parent / f"slurm-{release}"


def plugin_of(build, release):
    """Where spank_sonde.so is, if it is."""
    return folder(build, release) / "spank" / "spank_sonde.so"


def plugin(build, release, include, **options):
    """spank_sonde.so, compiled beside `build` against the headers in `include`. Two that want it at
    once wait; the second one has nothing to compile. `options` are for the commands' processes."""
    own = folder(build, release)
    own.mkdir(parents=True, exist_ok=True)
    with open(own / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Where the sources are the same for two releases, the second one's are compiled already.
        cache = f"-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_BASEDIR={ROOT};CCACHE_NOHASHDIR=1;ccache"
        # By one name: scripts/slurm has a link to the root's headers, and another name compiles all anew.
        run("cmake", "-S", ROOT, "-B", own, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            "-DSONDE_PLUGIN_ONLY=ON", f"-DSLURM_INCLUDE={include.resolve()}",
            *([cache] if shutil.which("ccache") else []), **options)  # fmt: skip
        run("ninja", "-C", own, **options)
    return plugin_of(build, release)


def find_plugin(build, release, include):
    """spank_sonde.so for these headers, if nothing of it has changed since it was compiled; else None."""
    own = folder(build, release)
    if not plugin_of(build, release).exists():
        return None
    if f"SLURM_INCLUDE:PATH={include.resolve()}\n" not in (own / "CMakeCache.txt").read_text():
        return None
    with open(own / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return plugin_of(build, release) if "no work to do" in run("ninja", "-C", own, "-n") else None
