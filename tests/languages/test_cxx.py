"""sonde.hpp with both compilers, as strict and as poor as users have them."""

import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT, run

SOURCE = ROOT / "tests" / "languages" / "application.cc"
LIBRARY = BUILD / "libclient"
STRICT = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()


def compiled(compiler, program, *flags):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    link = ["-pthread", f"-L{LIBRARY}", "-lsonde", f"-Wl,-rpath,{LIBRARY}"]
    command = [compiler, *flags, *STRICT, "-I", ROOT / "libclient", SOURCE, "-o", program, *link]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("flags", ["-std=c++17 -fno-exceptions -fno-rtti", "-std=c++20 -O2"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header(watch, tmp_path, compiler, flags):
    program = compiled(compiler, tmp_path / "application", *flags.split())
    done = watch(program)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout
    gauge = done.entry("app_gauge", part="3", kind="a")
    assert (gauge["last"], gauge["unit"]) == (1.25, "seconds")
    assert (done.last("app_early"), done.last("app_timed")) == (2, 4)
    assert done.last("app_total") == 40000.5
    assert 0.01 <= done.last("app_seconds_total") < 5
    values = done.distribution("app_values")
    assert (values["count"], values["sum"], values["min"], values["max"]) == (100, 5050, 1, 100)
    times = done.distribution("app_times")
    assert times["count"] == 1 and 0.01 <= times["min"] < 5
    assert done.phases() == {"a phase": (1, 1)} and done.remarks() == ["a remark"]
    assert done.figures() == {"app_speed": (2.5, "1")}
    assert run(program, "without").returncode == 0


MISTAKES = {
    # A list of tags is never taken for a text.
    'sonde::Gauge g("x", "1", {{"key", "value"}});': "Gauge",
    "sonde::Gauge g; g.Add();": "Add",
    "sonde::Counter c; c.Set(1);": "Set",
    "sonde::ScopedTimer t(sonde::Gauge{});": "ScopedTimer",
    'sonde::Gauge g = "x";': "Gauge",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_do_not_compile(tmp_path, line):
    source = tmp_path / "mistake.cc"
    source.write_text(f'#include "sonde.hpp"\nint main() {{ {line} }}\n')
    command = ["g++", "-std=c++17", "-fsyntax-only", "-I", ROOT / "libclient", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and MISTAKES[line] in done.stderr
