#!/bin/bash
# The README names every lock and every variable of the tables, and no other lock or variable.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
locks=$(sed -n 's/^ *RELOCK_LOCK_ROW([^"]*"\([^"]*\)".*/\1/p' locks/lock_list.def)
variables=$(grep -o '"RELOCK_[A-Z_]*"' policy/options.def | tr -d '"')
case_of() { # NAME COMMAND...
  local name=$1; shift
  if "$@"; then echo "ok readme $name"; else echo "not ok readme $name - not in README.md"; fi
}
for lock in $locks; do case_of "lock $lock" grep -q "^| \`$lock\` |" README.md; done
for variable in $variables; do case_of "variable $variable" grep -q "^| .*\`$variable\`" README.md; done
unknown=$(grep -o '`RELOCK_[A-Z_]*' README.md | tr -d '`' | sort -u | grep -vxF "$variables")
if [ -z "$unknown" ]; then echo "ok readme knows no other variable"
else echo "not ok readme knows no other variable -" $unknown; fi
