#!/usr/bin/env bash
# /api/query over HTTP: 64 series of an hour, job-wide series, 200 kB answers, 64 clients at a time
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_http" "$@"
