#!/bin/bash
# The README's tables are what the tables of locks and variables say, and its text names no variable
# that is not there.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
BUILD=${BUILD:-build}
if difference=$("$BUILD/gen_readme" <README.md | diff README.md -); then
  echo "ok readme tables are up to date"
else
  echo "not ok readme tables are up to date - make readme: $(sed -n 2p <<<"$difference")"
fi
variables=$(grep -o '"RELOCK_[A-Z_]*"' policy/options.def | tr -d '"')
unknown=$(grep -o '`RELOCK_[A-Z_]*' README.md | tr -d '`' | sort -u | grep -vxF "$variables")
if [ -z "$unknown" ]; then echo "ok readme knows no other variable"
else echo "not ok readme knows no other variable -" $unknown; fi
