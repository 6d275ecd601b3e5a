#!/usr/bin/env bash
# What an update of an application's metric costs, beside prometheus-cpp where it is installed
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_client"
