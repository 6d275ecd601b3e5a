#!/usr/bin/env bash
# CPU time a node of stragglers, time budget, energy and heatmap, of steps of 500 and 8,000 nodes
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_insight_steps" "$@"
