#!/bin/bash
# tests/build/run.sh - what must hold of the outputs themselves: dependencies, exports, the
# swapped lock at work, the instructions of the fast path, a tree that rebuilds nothing, replay
# strings. BUILD names the build folder.
here=$(dirname "$(readlink -f "$0")")
status=0
for script in packages links exports counted incremental quiet unwind fast_path readme replay naps runner; do
  bash "$here/$script.sh" || status=1
done
exit $status
