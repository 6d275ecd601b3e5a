#!/usr/bin/env bash
# Questions to a step of 256 nodes: 10 minutes at 1 Hz, by host and job-wide, from request to JSON
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_query_tree" "$@"
