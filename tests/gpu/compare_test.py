#!/usr/bin/env python3
"""The comparison with nvidia-smi finds what differs: on a stand-in for NVML and for nvidia-smi.

    compare_test.py GPU_PROBE STANDIN_LIBRARY
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

SMI = """#!/bin/sh
case $1 in
  -L) echo "GPU 0: Stand-in (UUID: GPU-0)" ;;
  *power.draw) echo "0, %s" ;;
  *utilization.gpu) echo "0, 90" ;;
  *memory.used) echo "0, 1024" ;;
  *clocks.sm) echo "0, %s" ;;
  *sw_power_cap) echo "0, Active" ;;
  *hw_slowdown) echo "0, Not Active" ;;
  *temperature.gpu) echo "0, [N/A]" ;;
  *) exit 2 ;;
esac
"""


def compare(program, library, watts, megahertz, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        smi = pathlib.Path(folder) / "nvidia-smi"
        smi.write_text(SMI % (watts, megahertz), encoding="utf-8")
        smi.chmod(0o755)
        run = subprocess.run(
            [sys.executable, HERE / "compare_with_nvidia_smi.py", program, "--library", library,
             "--period", "0.1"],
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **(environment or {})},
            capture_output=True, text=True, check=False,
        )
    print(run.stdout, run.stderr)
    return run.returncode, run.stdout


def main(program, library):
    gpu = {"GPU_STANDIN_WATTS": "300"}
    status, text = compare(program, library, "300.00", "1700", gpu)
    assert status == 0, status
    for field in ("power.draw", "memory.used", "clocks.sm", "utilization.gpu",
                  "clocks_throttle_reasons.sw_power_cap", "clocks_throttle_reasons.hw_slowdown"):
        assert f"GPU 0 {field}: agrees" in text, field
    assert "300.0 W by the power" in text
    status, text = compare(program, library, "300.00", "850", gpu)
    assert status == 1 and "clocks.sm: DIFFERS" in text
    status, text = compare(program, library, "300.00", "1700")
    assert status == 77 and "there is no NVIDIA GPU here" in text


if __name__ == "__main__":
    main(*sys.argv[1:])
