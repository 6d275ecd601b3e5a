#!/usr/bin/env bash
# What reading the profile of a large step costs, CPU time and memory by node, for 1,000 to 32,000 nodes
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_reading" "$@"
