#!/bin/bash
# What `make bench` runs: lockbench's grid, every lock against glibc. Arguments go to bench.py.
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
command -v python3 >/dev/null || { echo "bench: python3 is needed" >&2; exit 2; }
exec python3 -B tools/bench.py --build "${BUILD:-build}" "$@"
