#!/usr/bin/env bash
# How often the period of noisy series is found, and how long that takes; FTIO's on the same data
#
# With SONDE_FTIO_PYTHON, a Python that has FTIO (pip install ftio-hpc==0.0.9), FTIO looks for the
# periods of the same series.
set -euo pipefail
bench=$SONDE_BUILD/bench/bench_periods
"$bench"
[[ -n ${SONDE_FTIO_PYTHON:-} ]] || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$bench" --data >"$folder/data"
"$SONDE_FTIO_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/periods_ftio.py" "$folder/data" "$folder/found"
"$bench" --judge "$folder/found"
