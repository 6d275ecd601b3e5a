#!/usr/bin/env bash
# /api/query over HTTP: 64 series of an hour, job-wide series, 200 kB answers, 64 clients, and a head's ticks
# meanwhile
set -euo pipefail
"$SONDE_BUILD/bench/bench_http" "$@"
exec python3 "$SONDE_ROOT/bench/http_head.py"
