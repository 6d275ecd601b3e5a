#!/usr/bin/env bash
# CPU time of the hints of a step on 1,000 nodes, from its archived profile
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_hints" "$@"
