# shellcheck shell=bash
# What scripts/test, bench and demo have in common. Sourced, never run.

SONDE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SONDE_BUILD=$SONDE_ROOT/build/release
export SONDE_ROOT SONDE_BUILD

# sonde_die MESSAGE: names the script, says what is wrong, ends it.
sonde_die() {
  echo "scripts/$(basename "$0"): $*" >&2
  exit 1
}

# sonde_setup KIND...: dependencies of these kinds, configured and built, into build/release.
# Its progress goes to stderr: stdout belongs to the script's own result.
sonde_setup() {
  local jobs
  jobs=$(nproc)
  # Linking and Boost's headers take about 1 GiB a job: fewer jobs where memory is short.
  local memory_gib=$(($(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) / 1048576))
  ((jobs > memory_gib)) && jobs=$((memory_gib > 0 ? memory_gib : 1))
  {
    echo "== dependencies"
    "$SONDE_ROOT/scripts/deps" install "$@"
    echo "== configure"
    cmake -S "$SONDE_ROOT" --preset release
    echo "== build"
    cmake --build "$SONDE_BUILD" --parallel "$jobs"
  } >&2
}
