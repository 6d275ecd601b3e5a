#!/usr/bin/env bash
# CPU time of taking one child's frame of 300 metrics: receive, decode, merge
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_merge" "$@"
