#!/usr/bin/env bash
# Bytes per value of a block, and the time to encode and decode it, beside databases
#
#   scripts/bench codec               of build/.../codec.csv, which scripts/bench codec_record writes,
#                                     beside Prometheus and VictoriaMetrics; else of made-up data
#   bench/codec.sh FILE.csv           of that file, with SONDE_BUILD set
set -euo pipefail
data=${1:-$SONDE_BUILD/codec.csv}
if [[ -f $data ]]; then
  exec python3 "$(dirname "$0")/codec_peers.py" "$data"
fi
exec "$SONDE_BUILD/bench/bench_codec"
