#!/usr/bin/env bash
# CPU time of sonde top for steps of 4, 1,000 and 10,000 nodes, without the terminal
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_top" "$@"
