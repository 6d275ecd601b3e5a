#!/usr/bin/env bash
# An archive of 100,000 profiles: lists, filters, shows, serves and takes in steps, warm and evicted
#
# PROFILES=N of them (100000), RUNS=N of each command (31). The archive is made once, in
# build/.../archive-bench, and takes about 4 GB.
set -euo pipefail
exec python3 "$(dirname "$0")/archive.py"
