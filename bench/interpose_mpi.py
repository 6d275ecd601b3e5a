#!/usr/bin/env python3
# What libsonde-mpi.so adds to calls of real MPI libraries: MPICH and Open MPI, one rank with itself

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from private_cluster import BUILD, figure

ROUNDS = 7
CALLS = pathlib.Path(__file__).resolve().with_name("mpi_calls.c")


def run(program, options, home):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SONDE_"))}
    env.update(HOME=str(home), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    sonde = BUILD / "cli" / "sonde"
    command = [sonde, "run", "-q", "--level", "1", *options, "--", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench/interpose_mpi: {program}: {done.stderr}{done.stdout}")
    return {name: float(ns) for name, ns in map(str.split, done.stdout.splitlines())}


def main():
    with tempfile.TemporaryDirectory() as directory:
        for library in ("mpich", "openmpi"):
            compiler = shutil.which(f"mpicc.{library}")
            if compiler is None:
                print(f"no mpicc.{library}: left out")
                continue
            program = pathlib.Path(directory) / library
            subprocess.run([compiler, "-O2", "-o", program, CALLS], check=True)
            rounds = []
            for number in range(ROUNDS):
                turns = [("bare", ()), ("watched", ("--mpi",))]
                turn = {}
                for kind, options in turns if number % 2 == 0 else reversed(turns):
                    turn[kind] = run(program, options, directory)
                rounds.append(turn)
            for name in rounds[0]["bare"]:
                added = sorted(t["watched"][name] - t["bare"][name] for t in rounds)
                bare = statistics.median(t["bare"][name] for t in rounds)
                figure(f"interpose_mpi.{library}_{name}_bare", bare, "ns", 1)
                figure(f"interpose_mpi.{library}_{name}_added", statistics.median(added), "ns", 1)
                print(f"  added in single rounds: {added[0]:.1f} to {added[-1]:.1f} ns")


if __name__ == "__main__":
    sys.exit(main())
