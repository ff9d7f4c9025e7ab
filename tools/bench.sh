#!/bin/bash
# What `make bench` runs: lockbench's grid, every lock against glibc. Arguments go to bench.py.
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
# Not a version manager's shell script that is called python3: it takes longer than a short run.
python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3) ||
  { echo "bench: python3 is needed" >&2; exit 2; }
build=${BUILD:-build}
# Compiled scripts belong to the build, not to the sources.
if [ -d "$build" ]; then
  PYTHONPYCACHEPREFIX=$(readlink -f "$build")/pycache
  export PYTHONPYCACHEPREFIX
else
  export PYTHONDONTWRITEBYTECODE=1
fi
exec "$python" tools/bench.py --build "$build" "$@"
