#!/usr/bin/env bash
# Records this node's series with `sonde run` as input of bench/codec: a CSV of time and values
#
#   scripts/bench codec_record        10 minutes at level 2, into codec.csv of the build
#   bench/codec_record.sh OUT.csv [SECONDS [LEVEL]]     with SONDE_BUILD set
#
# The command that is watched computes, writes and reads a file and rests; whatever else the node
# does is in its series too.
set -euo pipefail
out=${1:-$SONDE_BUILD/codec.csv} seconds=${2:-600} level=${3:-2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/work.sh" <<'WORK'
end=$((SECONDS + $1))
while ((SECONDS < end)); do
  for ((i = 0; i < 300000; i++)); do :; done
  head -c 20000000 /dev/urandom >"$2/file"
  cat "$2/file" >/dev/null
  rm "$2/file"
  sleep $((1 + RANDOM % 10))
done
WORK
SONDE_ARCHIVE=$folder/archive "$SONDE_BUILD/cli/sonde" run --quiet --level "$level" \
  bash "$folder/work.sh" "$seconds" "$folder"
SONDE_ARCHIVE=$folder/archive "$SONDE_BUILD/cli/sonde" export --quiet --all --to csv:- --scope node >"$out"
echo "$out: $(($(wc -l <"$out") - 1)) samples of $(head -1 "$out" | tr -cd , | wc -c) series" >&2
