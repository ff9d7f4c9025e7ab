#!/bin/bash
# tests/tools/run.sh [BUILD] - the relock command and lockbench, as a user meets them.
here=$(dirname "$(readlink -f "$0")")
status=0
for script in list check launch record lockbench bench; do
  bash "$here/$script.sh" "$@" || status=1
done
exit $status
