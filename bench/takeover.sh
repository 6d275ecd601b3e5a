#!/usr/bin/env bash
# Time until all nodes have found the acting head, for steps of 100 to 10,000 nodes
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_takeover" "$@"
