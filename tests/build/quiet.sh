#!/bin/bash
# What a program that takes no contended lock sees of a preload: nothing, unless asked.
. "$(dirname "$0")/common.sh"
cd "$scratch" || exit 2

run() { # sets out, err, status
  env LD_PRELOAD="$PRELOAD" "$@" /bin/true >out 2>err
  status=$? out=$(cat out) err=$(cat err)
}
run
expect "a preloaded program's output and status are its own" "$out/$err/$status" "//0"
for lock in $(cd "$OLDPWD" && lock_names); do
  run RELOCK_LOCK="$lock"
  expect "RELOCK_LOCK=$lock says nothing" "$out/$err/$status" "//0"
done
run RELOCK_VERBOSE=1
expect "RELOCK_VERBOSE=1 writes one line" "$out/$(wc -l <err)/$status" "/1/0"
run RELOCK_LOCK=nonsense
expect "a bad lock name gives one line and the program runs on" \
  "$out/$(grep -c 'RELOCK_LOCK.*nonsense' err)/$(wc -l <err)/$status" "/1/1/0"
run RELOCK_PROFILE=1
expect "profiling keeps off the program's standard output" "$out/$status" "/0"
