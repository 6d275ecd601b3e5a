#!/usr/bin/env bash
# Round trips, CPU and memory of links between daemons: sockets and libfabric
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_links" "$@"
