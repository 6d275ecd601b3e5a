#!/usr/bin/env bash
# Models of how metrics grow: how often they are right, their time for 400 metrics of 200 profiles; Extra-P's
#
# With SONDE_EXTRAP_PYTHON, a Python that has Extra-P (pip install extrap==4.2.5), Extra-P models the
# same data, and is judged in the same way.
set -euo pipefail
bench=$SONDE_BUILD/bench/bench_models
if [[ -z ${SONDE_EXTRAP_PYTHON:-} ]]; then
  exec "$bench"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for runs in "" --runs; do
  # shellcheck disable=SC2086  # none or one word
  "$bench" --same $runs
  # shellcheck disable=SC2086
  "$bench" --data $runs >"$folder/data"
  "$SONDE_EXTRAP_PYTHON" "$(dirname "${BASH_SOURCE[0]}")/models_extrap.py" "$folder/data" "$folder/terms"
  # shellcheck disable=SC2086
  "$bench" --judge "$folder/terms" $runs
done
"$bench"
