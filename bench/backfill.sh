#!/usr/bin/env bash
# How long after a step of 10,000 nodes the last of their series is stored, simulated from measured costs
set -euo pipefail
archive=$(mktemp -d "${SONDE_BENCH_TMP:-/dev/shm}/sonde-backfill-XXXXXX")
trap 'rm -rf "$archive"' EXIT
for seconds in ${SONDE_BACKFILL_SECONDS:-30 600}; do
  for way in apart joined; do
    echo "# a step of $seconds s, blocks $way"
    "$SONDE_BUILD/bench/bench_backfill" "${1:-10000}" "$seconds" "$archive/$seconds-$way" "$way"
  done
done
