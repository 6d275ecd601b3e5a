#!/usr/bin/env bash
# Time to look at 1,000 alarm rules in a row of the step's reduced series
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_alarms" "$@"
