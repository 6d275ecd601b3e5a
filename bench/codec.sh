#!/usr/bin/env bash
# Bytes per sample of a block, and the time to encode and decode one
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_codec" "$@"
