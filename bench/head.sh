#!/usr/bin/env bash
# CPU time of a head per node and tick, for steps of 1,000 to 100,000 nodes
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_head" "$@"
