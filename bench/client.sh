#!/usr/bin/env bash
# What an application's updates and moments cost, beside prometheus-cpp where it is installed
set -euo pipefail
exec "$SONDE_BUILD/bench/bench_client"
