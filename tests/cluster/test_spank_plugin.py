"""The plugin as a file: what it brings into srun and slurmstepd."""

import subprocess

import pytest
from conftest import PLUGIN


def symbols(which):
    output = subprocess.run(
        ["nm", "-D", which, PLUGIN], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[-1].split("@")[0]: line.split()[-2] for line in output.splitlines()}


def test_exports_only_what_slurm_looks_for():
    exported = set(symbols("--defined-only"))
    callbacks = {name for name in exported if name.startswith("slurm_spank_")}
    assert exported - callbacks == {
        "plugin_name", "plugin_type", "plugin_version", "spank_plugin_version",
    }  # fmt: skip
    # A crash in these would drain a node, or they do nothing for us.
    assert not callbacks & {
        "slurm_spank_job_prolog", "slurm_spank_job_epilog", "slurm_spank_slurmd_exit",
    }  # fmt: skip
    assert "slurm_spank_init" in callbacks


def test_needs_the_c_library_alone():
    output = subprocess.run(
        ["readelf", "-d", PLUGIN], capture_output=True, text=True, check=True
    ).stdout
    needed = [line.split("[")[1].rstrip("]") for line in output.splitlines() if "(NEEDED)" in line]
    if any("asan" in name or "ubsan" in name or "tsan" in name for name in needed):
        pytest.skip("a sanitizer's build")
    assert set(needed) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_slurm_functions_it_uses_are_in_spank_h_of_every_release():
    used = {name for name in symbols("--undefined-only") if name.startswith(("slurm_", "spank_"))}
    assert used == {
        "slurm_debug", "slurm_error", "slurm_info", "slurm_spank_log", "slurm_verbose", "spank_context",
        "spank_get_item",
        "spank_job_control_setenv", "spank_job_control_unsetenv",
        "spank_option_getopt", "spank_option_register", "spank_setenv", "spank_strerror", "spank_unsetenv",
    }  # fmt: skip
