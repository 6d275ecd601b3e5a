#!/usr/bin/env bash
# CPU time of a row that lacks a node on the head's loop, for steps of 1,000 to 100,000 nodes
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_lacking" "$@"
