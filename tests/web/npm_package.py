"""Packages of npm that tests compare with, each fetched once."""

import pathlib
import subprocess
import tempfile


def fetch_package(name, packages):
    """The folder of a package, NAME@VERSION, below `packages`, or None. Another run may do the same at the same
    time."""
    place = packages / name
    if place.is_dir():
        return place
    packages.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=packages) as made:
        try:
            subprocess.run(["npm", "pack", "--silent", name], cwd=made, check=True, timeout=60,
                           capture_output=True)
            packed = next(pathlib.Path(made).glob("*.tgz"))
            subprocess.run(["tar", "xzf", packed], cwd=made, check=True)
            (pathlib.Path(made) / "package").rename(place)
        except (OSError, subprocess.SubprocessError, StopIteration):
            return place if place.is_dir() else None
    return place
