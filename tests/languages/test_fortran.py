"""The Fortran module: the installed one of gfortran, and its source, as for other compilers."""

import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT, run

if not shutil.which("gfortran"):
    pytest.skip("gfortran is not installed", allow_module_level=True)

SOURCE = ROOT / "tests" / "languages" / "application.f90"
MODULE = ROOT / "libclient" / "fortran" / "sonde.f90"
LIBRARY = BUILD / "libclient"
STRICT = "-Wall -Wextra -Wpedantic -Werror -fcheck=all".split()


@pytest.fixture(params=["module", "source", "optimised"])
def program(request, tmp_path):
    flags = ["-O3" if request.param == "optimised" else "-O0", f"-J{tmp_path}", *STRICT]
    if request.param == "module":
        built = BUILD / "libclient" / "fortran"
        parts = [f"-I{built / 'modules'}", SOURCE, f"-L{built}", "-lsonde_fortran"]
        flags.append("-std=f2018")
    else:
        parts = ["-std=f2008", MODULE, SOURCE]
    link = [f"-L{LIBRARY}", "-lsonde", f"-Wl,-rpath,{LIBRARY}"]
    command = ["gfortran", *flags, *parts, "-o", tmp_path / "application", *link]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tmp_path / "application"


def test_the_module(watch, program):
    done = watch(program)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    gauges = [done.last("app_gauge", part=str(i)) for i in range(1, 5)]
    assert gauges == [0.1, 0.5, 2.0**60, -4]
    assert done.entry("app_gauge", part="1")["unit"] == "seconds"
    assert done.last("app_total", a="1", b="2") == 3110.75
    assert done.last("app_timed") == 4
    values = done.distribution("app_values")
    assert (values["count"], values["sum"], values["min"], values["max"]) == (4, 11, 1.5, 4)
    assert done.phases() == {"a phase": (1, 1)} and done.remarks() == ["a remark"]
    assert done.figures() == {"app_speed": (3.5, "1"), "app_cells": (5, "1")}
    without = run(program, "without")
    assert (without.returncode, without.stdout) == (0, ""), without.stdout + without.stderr
