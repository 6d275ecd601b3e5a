# shellcheck shell=bash
# What scripts/test, bench, load and demo have in common. Sourced, never run.

SONDE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SONDE_BUILD=$SONDE_ROOT/build/release
export SONDE_ROOT SONDE_BUILD

# The exit code of what is not to be had on this machine, and no fault of Sonde's; and scripts/prepare's of what is.
readonly SONDE_SKIPPED=77 SONDE_UNMADE=78

# Ordinary users run what is built.
umask 022

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
        "move the checkout, for example to /srv, or chmod o+x that directory"
    path=$(dirname "$path")
  done
}

# What a first build for the demo leaves out. scripts/test adds it later in the same folder, where the
# preset turns it on, and compiles only what is new.
readonly SONDE_NOT_IN_DEMO=(-DSONDE_TESTS=OFF -DSONDE_BENCH=OFF -DSONDE_FORTRAN=OFF
  -DSONDE_PYTHON_PACKAGE=OFF)

# sonde_part NAME COMMAND...: says that it begins, runs it, and says what it took. In a shell of its own, so that
# nobody else's time counts.
sonde_part() (
  local name=$1 begin=$EPOCHREALTIME used
  shift
  echo "== $name"
  "$@"
  read -ra used </proc/self/stat  # in hundredths of a second, its own and its children's
  awk -v name="$name" -v begin="$begin" -v end="$EPOCHREALTIME" \
    -v ticks=$((used[13] + used[14] + used[15] + used[16])) \
    'BEGIN { printf "== %s: %.0f s, %.0f s of CPU time\n", name, end - begin, ticks / 100 }'
)

# sonde_setup TARGET KINDS COMMAND...: the dependencies of these kinds, and with them TARGET, demo or all, built in
# build/release. COMMAND sees to what is needed afterwards, and runs beside it; sonde_beside is its exit code: 0,
# SONDE_SKIPPED or SONDE_UNMADE, with all others the script ends. Progress goes to stderr: stdout belongs to the
# script's own result.
sonde_beside=0
sonde_setup() {
  local target=$1 to_build_with beside log
  read -ra to_build_with <<<"$2"
  shift 2
  log=$(mktemp -t sonde-setup.XXXXXX)
  {
    sonde_part "packages to build with" "$SONDE_ROOT/scripts/deps" install "${to_build_with[@]}"
    "$@" >"$log" 2>&1 &
    beside=$!
    # shellcheck disable=SC2064  # these are what they are now
    trap "kill $beside 2>/dev/null || true; wait $beside || true; cat '$log' >&2; rm -f '$log'" EXIT
    sonde_part configure sonde_configure "$target"
    sonde_part build sonde_build "$target"
    tail --follow --lines=+1 --sleep-interval=0.1 --pid="$beside" "$log"
    wait "$beside" || sonde_beside=$?
    rm -f "$log"
    trap - EXIT
    ((sonde_beside == 0 || sonde_beside == SONDE_SKIPPED || sonde_beside == SONDE_UNMADE)) || exit "$sonde_beside"
  } >&2
}

# sonde_install KIND...: what no build waits for. Packages that are being installed are installed to the end,
# whoever ends the script.
sonde_install() {
  trap 'exit 143' TERM
  sonde_part "packages to run with" "$SONDE_ROOT/scripts/deps" install "$@"
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

# sonde_processors: as many as there are, or as a container's quota allows.
sonde_processors() {
  local quota period processors
  processors=$(nproc)
  if read -r quota period 2>/dev/null </sys/fs/cgroup/cpu.max && [[ $quota != max ]]; then
    quota=$(((quota + period - 1) / period))
    ((processors <= quota)) || processors=$quota
  fi
  echo "$processors"
}

# sonde_jobs MOST: as many at a time, or fewer where memory is short: linking, Boost's headers and browsers take about
# 1 GiB each.
sonde_jobs() {
  local most memory_gib
  memory_gib=$(($(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) / 1048576))
  if read -r most 2>/dev/null </sys/fs/cgroup/memory.max && [[ $most != max ]]; then
    ((memory_gib <= most >> 30)) || memory_gib=$((most >> 30))
  fi
  if (($1 <= memory_gib)); then echo "$1"; else echo $((memory_gib > 0 ? memory_gib : 1)); fi
}

# sonde_ctest BUILD ARGUMENT...: most tests wait most of the time, so there are three places for each processor. What
# computes all the time says PROCESSORS, which is how many places it takes.
sonde_ctest() {
  local build=$1
  shift
  ctest --test-dir "$build" --output-on-failure --no-tests=error -j"$(sonde_jobs $(($(sonde_processors) * 3)))" "$@"
}

sonde_build() {
  # Files done, files there are, and seconds gone.
  NINJA_STATUS=${NINJA_STATUS:-'[%f/%t, %e s] '} \
    cmake --build "$SONDE_BUILD" --parallel "$(sonde_jobs "$(sonde_processors)")" --target "$1"
}
