#!/usr/bin/env bash
# How large a frame gets by the number of nodes it is of, from 1 to 16,384
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_frame_bytes" "$@"
