#!/bin/bash
# tests/tools/run.sh [BUILD] - the relock command and lockbench, as a user meets them.
here=$(dirname "$(readlink -f "$0")")
status=0
for script in $(cd "$here" && ls *.sh | grep -vx 'run.sh\|common.sh'); do
  bash "$here/$script" "$@" || status=1
done
exit $status
