#!/bin/sh
# The metrics of a script, in as few lines as it takes: pi by Leibniz's series.
#
#   srun --telemetry-level=1 ./example.sh [BLOCKS]
#
# It runs just the same without telemetry: then `sonde put` and its like do nothing and succeed.
set -eu

blocks=${1:-50}
block=100000 # terms
sum=0

sonde phase begin sum # a band on every plot
n=0
while [ "$n" -lt $((blocks * block)) ]; do
  sum=$(awk -v sum="$sum" -v n="$n" -v block="$block" 'BEGIN {
    for (end = n + block; n < end; n++) sum += (n % 2 == 0 ? 4 : -4) / (2 * n + 1)
    printf "%.17g", sum
  }')
  n=$((n + block))
  # A counter only grows, in many processes as in one. Tags tell apart what is counted under one
  # name. The rank is a tag of every series already.
  sonde put --add --unit 1 --tag kind=positive example_terms_total=$((block / 2))
  sonde put --add --unit 1 --tag kind=negative example_terms_total=$((block / 2))
  # A gauge is what is true now.
  sonde put --unit 1 "example_error=$(awk -v sum="$sum" 'BEGIN {
    error = sum - atan2(0, -1)
    printf "%.17g", error < 0 ? -error : error
  }')"
done
sonde phase end sum
sonde annotate the sum is there

sonde figure --unit 1 "example_pi=$sum" # what the run is judged by
printf 'pi is about %.9f\n' "$sum"
