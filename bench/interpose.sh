#!/usr/bin/env bash
# What counting a call of MPI or for a file adds to it
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_interpose"
