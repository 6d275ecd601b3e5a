#!/usr/bin/env bash
# The peaks that `sonde peaks` measures here, beside those of likwid-bench
#
#   scripts/bench peaks    with likwid-bench (Debian's package likwid), else without the comparison
#
# Others on the machine make all numbers less: each loop of likwid-bench runs twice, and the best counts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$SONDE_BUILD/cli/sonde" peaks --again --quiet --json --file "$folder/peaks.json" >"$folder/json"
cpus=$(nproc)

# own WHAT RATE: such as all double_flops.
own() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["peaks"][-1][sys.argv[2]][sys.argv[3]])' \
    "$folder/json" "$1" "$2"
}
# likwid TESTS SIZE ITERATIONS LABEL: the best of the tests that this processor can run, in units per second.
likwid() {
  local test best=0 value
  for test in $1 $1; do
    value=$(timeout 60 likwid-bench -t "$test" -w "N:$2:$cpus" -i "$3" 2>/dev/null |
      awk -v label="$4" '$1 == label { print $2 }') || continue
    best=$(awk -v a="$best" -v b="${value:-0}" 'BEGIN { print (a > b ? a : b) }')
  done
  awk -v best="$best" 'BEGIN { printf "%.0f\n", best * 1e6 }'
}
# line NAME OWN UNIT DIVISOR [OTHER]
line() {
  awk -v name="$1" -v own="$2" -v unit="$3" -v by="$4" 'BEGIN { printf "figure peaks.%s %.1f %s\n", name, own / by, unit }'
  [[ -n ${5:-} ]] || return 0
  awk -v name="$1" -v own="$2" -v other="$5" -v unit="$3" -v by="$4" 'BEGIN {
    printf "figure peaks.%s_likwid %.1f %s\n", name, other / by, unit
    printf "figure peaks.%s_ratio %.3f\n", name, own / other }'
}
for what in all one; do
  [[ $what == one ]] && cpus=1
  triad='' flops=''
  if command -v likwid-bench >/dev/null; then
    triad=$(likwid 'stream stream_mem_sse stream_mem_avx512' 384MB $((cpus * 20)) MByte/s:)
    flops=$(likwid 'peakflops_avx_fma peakflops_avx512_fma' $((32 * cpus))kB $((cpus * 30000)) MFlops/s:)
  fi
  line "triad_$what" "$(own $what bytes_per_second)" GB/s 1e9 "$triad"
  line "double_$what" "$(own $what double_flops)" GFLOP/s 1e9 "$flops"
  line "single_$what" "$(own $what single_flops)" GFLOP/s 1e9
done
