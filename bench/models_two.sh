#!/usr/bin/env bash
# How far predictions by models of two parameters lie from the truth; Extra-P's of the same data
#
# With SONDE_EXTRAP_PYTHON, a Python that has Extra-P (pip install extrap==4.2.5), Extra-P models the
# same data.
set -euo pipefail
bench=$SONDE_BUILD/bench/bench_models_two
"$bench"
[[ -n ${SONDE_EXTRAP_PYTHON:-} ]] || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$bench" --data >"$folder/data"
"$SONDE_EXTRAP_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/models_two_extrap.py" "$folder/data" "$folder/found"
"$bench" --judge "$folder/found"
