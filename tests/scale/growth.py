"""Costs of a few nodes and of many, from a program of bench/: what must not grow with the number of nodes."""

import subprocess

FEW, MANY = 1_000, 32_000
RUNS = 3


class Costs(dict):
    """The least cost of each figure in some runs: a processor that others use as well makes work cost more, never less."""

    def __init__(self, program, few=FEW, many=MANY):
        super().__init__()
        self.few, self.many = few, many
        self.command = [program, str(few), str(many)]
        self.runs = 0
        self.measure()

    def measure(self):
        self.runs += 1
        done = subprocess.run(self.command, capture_output=True, text=True, check=True, timeout=180)
        for line in done.stdout.splitlines():
            _, name, value, _ = line.split()
            self[name] = min(float(value), self.get(name, float("inf")))

    def growth(self, name):
        return self[f"{name}_{self.many}"] / self[f"{name}_{self.few}"]

    def check(self, holds):
        """It may take another run, or two, to see that it does."""
        while not holds() and self.runs < RUNS:
            self.measure()
        assert holds(), self

    def check_growth(self, name, most):
        self.check(lambda: self.growth(name) <= most)
