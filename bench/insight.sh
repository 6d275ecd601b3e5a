#!/usr/bin/env bash
# Time to find the phases of a day and the stragglers of 1,000 ranks, and how often that is right
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_insight" "$@"
