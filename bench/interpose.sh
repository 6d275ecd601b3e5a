#!/usr/bin/env bash
# What counting a call of MPI, for a file or of the program's own functions adds to it
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_interpose"
