"""A batch script, and how long it lasts. Only the standard library is here."""

import re
import subprocess
import time


class BatchJob:
    """sbatch --wait looks every 2 to 10 s whether the job has ended: too seldom for a late end to be seen. This
    looks all the while. It is used like subprocess.Popen."""

    INTERVAL = 0.1

    def __init__(self, cluster, words, script):
        self.cluster = cluster
        self.returncode, self.output = cluster.run(["sbatch", "--parsable", *words, "--wrap", script])
        # What sbatch says of telemetry may stand above.
        numbers = re.findall(r"^\d+$", self.output, re.MULTILINE)
        self.number = numbers[-1] if self.returncode == 0 and numbers else None

    def communicate(self, timeout=100):
        """Waits until Slurm is done with the job and its nodes: what sbatch said."""
        end = time.monotonic() + timeout
        looked = time.monotonic()
        while self.number and self._is_there():
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"job {self.number}", timeout)
            time.sleep(max(self.INTERVAL, time.monotonic() - looked))
            looked = time.monotonic()
        if self.number:
            self.returncode = self._code()
        return self.output, None

    def kill(self):
        if self.number:
            self.cluster.run(["scancel", self.number], user=None)

    def _is_there(self):
        return self.cluster.run(["squeue", "--noheader", "--jobs", self.number], user=None)[1].strip() != ""

    def _code(self):
        """Of an array the largest, as sbatch --wait has it."""
        shown = self.cluster.run(["scontrol", "show", "job", "--oneliner", self.number], user=None)[1]
        codes = re.findall(r" ExitCode=(\d+):(\d+)", shown)
        assert codes, f"no exit code of job {self.number}: {shown}"
        return max(128 + int(signal) if int(signal) else int(code) for code, signal in codes)
