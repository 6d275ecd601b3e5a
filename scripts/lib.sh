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

# sonde_open_to_users: ends the script where ordinary users cannot reach the checkout. Jobs of the
# private clusters run as one of them, and run what is built there.
sonde_open_to_users() {
  local path=$SONDE_ROOT
  while [[ $path != / ]]; do
    [[ $(stat -c %A "$path") == *[xt] ]] ||
      sonde_die "$path is closed to ordinary users, so jobs cannot run what is built in $SONDE_ROOT:" \
        "move the checkout, or chmod o+x that directory"
    path=$(dirname "$path")
  done
}

# What a first build for the demo leaves out. scripts/test adds it later in the same folder, where the
# preset turns it on, and compiles only what is new.
readonly SONDE_NOT_IN_DEMO=(-DSONDE_TESTS=OFF -DSONDE_BENCH=OFF -DSONDE_FORTRAN=OFF
  -DSONDE_PYTHON_PACKAGE=OFF)

# sonde_setup TARGET KIND...: dependencies of these kinds, and TARGET built in build/release: demo or
# all. Its progress goes to stderr: stdout belongs to the script's own result.
sonde_setup() {
  local target=$1 jobs
  shift
  jobs=$(nproc)
  # Linking and Boost's headers take about 1 GiB a job: fewer jobs where memory is short.
  local memory_gib=$(($(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) / 1048576))
  ((jobs > memory_gib)) && jobs=$((memory_gib > 0 ? memory_gib : 1))
  {
    echo "== dependencies"
    "$SONDE_ROOT/scripts/deps" install "$@"
    echo "== configure"
    sonde_configure "$target"
    echo "== build"
    # Files done, files there are, and seconds gone.
    NINJA_STATUS=${NINJA_STATUS:-'[%f/%t, %e s] '} \
      cmake --build "$SONDE_BUILD" --parallel "$jobs" --target "$target"
  } >&2
}

sonde_configure() {
  if [[ $1 == all ]]; then
    cmake -S "$SONDE_ROOT" --preset release
  elif [[ -e $SONDE_BUILD/CMakeCache.txt ]]; then
    # What is built there besides stays: turned off, its files would be deleted.
    cmake "$SONDE_BUILD"
  else
    cmake -S "$SONDE_ROOT" --preset release "${SONDE_NOT_IN_DEMO[@]}"
  fi
}
