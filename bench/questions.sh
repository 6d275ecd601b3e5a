#!/usr/bin/env bash
# CPU time of questions to a running head, for steps of 1,000 to 100,000 nodes
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_questions" "$@"
