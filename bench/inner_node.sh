#!/usr/bin/env bash
# CPU time of an inner node per tick and child, in steps of 1,000 to 100,000 nodes
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_inner_node" "$@"
