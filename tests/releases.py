"""The plugin for the Slurm of another release of Debian, for tests/cluster and tests/guest."""

import fcntl
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


class BuildError(Exception):
    """A command that failed, and what it said."""


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def plugin(build, release, include):
    """spank_sonde.so, compiled beside `build` against the headers in `include`. Two that want it at
    once wait; the second one has nothing to compile."""
    own = build.parent / f"slurm-{release}"
    own.mkdir(parents=True, exist_ok=True)
    with open(own / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run("cmake", "-S", ROOT, "-B", own, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            "-DSONDE_PLUGIN_ONLY=ON", f"-DSLURM_INCLUDE={include}")  # fmt: skip
        run("ninja", "-C", own)
    return own / "spank" / "spank_sonde.so"
