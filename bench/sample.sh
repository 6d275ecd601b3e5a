#!/usr/bin/env bash
# CPU per metric and sample of the collectors, beside node_exporter where it is installed
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_sample" "$@"
