"""/trace/ftio against FTIO itself, over the same trace: where Sonde says that a metric repeats itself,
FTIO has the same frequency, height and phase; and Sonde says it of nothing of which FTIO does not.

ftio_test.py API_SERVER
FTIO takes 0.8 GB with what it needs, so it is not installed here: SONDE_FTIO_PYTHON names an
interpreter that has it (pip install ftio-hpc==0.0.9); without it the test is skipped.
"""

import json
import math
import os
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

FTIO = os.environ.get("SONDE_FTIO_PYTHON", "")
SERVER = sys.argv[1] if len(sys.argv) > 1 else ""

# For FTIO's interpreter: a trace on stdin, what it finds as JSON in the last line of stdout.
ASK_FTIO = """
import contextlib, io, json, sys
import numpy as np
from ftio.cli.ftio_core import core
from ftio.parse.args import parse_args

found = {}
with contextlib.redirect_stdout(io.StringIO()):
    for name, points in json.load(sys.stdin).items():
        times, values = np.array(points, dtype=float).T
        arguments = parse_args(["-e", "no", "--freq", "1", "-n", "1"], "ftio")
        said, _ = core({"bandwidth": values, "time": times, "total_bytes": 0, "ranks": 1}, arguments)
        found[name] = [np.atleast_1d(one).tolist() for one in
                       (said.dominant_freq, said.amp, said.phi)] + [int(said.n_samples)]
print(json.dumps(found))
"""


@unittest.skipUnless(FTIO, "needs FTIO: SONDE_FTIO_PYTHON=PYTHON names an interpreter with "
                           "ftio-hpc 0.0.9")
class Ftio(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True)
        cls.addClassCleanup(cls.process.communicate, "")
        cls.server = cls.process.stdout.readline().split()[0]

    def ask(self, path, **params):
        request = urllib.request.Request(f"{self.server}{path}?{urllib.parse.urlencode(params)}",
                                         headers={"Authorization": "Bearer api-test"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def test_periods_are_those_of_ftio(self):
        metrics = self.ask("/trace/json", jobid="4711.0")["metrics"]
        done = subprocess.run([FTIO, "-c", ASK_FTIO], input=json.dumps(metrics), text=True,
                              capture_output=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        theirs = json.loads(done.stdout.splitlines()[-1])
        periodic = 0
        for name in metrics:
            if name.startswith("deriv__"):
                ours = self.ask("/trace/ftio", jobid="4711.0", metricid=name)
                with self.subTest(name):
                    periodic += self.compare(ours, *theirs[name])
        self.assertEqual(periodic, 7)  # of disks and network, and of the load

    def compare(self, ours, frequencies, heights, phases, samples):
        """Whether there is a period."""
        if not ours["dominant_freq"]:
            return False
        frequency = ours["dominant_freq"][0]
        near = [i for i, one in enumerate(frequencies) if abs(one - frequency) < 1 / samples]
        self.assertEqual(len(near), 1, f"{frequency} Hz is not among {frequencies}")
        height = ours["amp"][0] / ours["n_samples"]
        self.assertAlmostEqual(heights[near[0]] / samples / height, 1, delta=0.05)
        self.assertAlmostEqual(math.cos(phases[near[0]] - ours["phi"][0]), 1, delta=0.02)
        return True


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
