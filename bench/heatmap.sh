#!/usr/bin/env bash
# Time and CPU time of a heatmap of 1,000 nodes and 1,000 s at 1 Hz, from the archive to the JSON
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_heatmap" "$@"
