#!/bin/bash
# counted.sh - that the swapped lock is really used, by counting its operations: see counted.c.
. "$(dirname "$0")/common.sh"
gcc -O1 -I. -D_GNU_SOURCE tests/build/counted.c -o "$scratch/counted" -pthread -ldl ||
  { echo "not ok counted - counted.c does not compile"; exit 1; }
expect "bare, nothing is counted" "$("$scratch/counted" | sed 's/ of.*//' | xargs)" \
  "mutex 0 mtx 0 rwlock 0"
for lock in $(lock_names); do
  counts=$(cd "$scratch" && env LD_PRELOAD="$PRELOAD" RELOCK_LOCK="$lock" RELOCK_PROFILE=1 \
    RELOCK_LOG_FILE=/dev/null ./counted)
  short=$(awk '$2 != $4 || $4 < 4 { print }' <<<"$counts")
  expect "every acquisition is counted with RELOCK_LOCK=$lock" \
    "$(wc -l <<<"$counts"):$short" "3:"
done
