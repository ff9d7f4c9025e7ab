#!/bin/bash
# The explorer's replay strings: what a failure prints shows the failure again, anything else is
# refused with one line. No string is written down here, since each depends on every step of a lock.
. "$(dirname "$0")/common.sh"
explorer=$BUILD/explore_tests

# What the case's own line says, which is "(found after N executions: REASON; replay STRING)".
found() {
  printed=$("$explorer" "$1" | grep -F "ok $1 (found")
  string=$(sed 's/.*; replay \([^)]*\))$/\1/' <<<"$printed")
  reason=$(sed 's/.* executions: \(.*\); replay .*/\1/' <<<"$printed")
}
replay() { # STRING CASE: sets shown (the last line), said, status
  shown=$("$explorer" --replay "$1" "$2" 2>"$scratch/err")
  status=$? said=$(cat "$scratch/err") shown=$(tail -n 1 <<<"$shown")
}

documented=$(sed -n "s/^\$ .*explore_tests --replay [^ ]* '\(.*\)'\$/\1/p" tests/explore/README.md | sort -u)
expect "the README of the explorer replays one case" "$(grep -c . <<<"$documented")" 1
for case in "$documented" "planted: the gate wakes nobody/qspinlock mutex" \
  "explorer finds: Peterson with release stores"; do
  found "$case"
  replay "$string" "$case"
  expect "replayed as found: $case" "$status:$shown:$said" "1:$reason:"
done

found "$documented"
refused() { # NAME STRING EXPECTED
  replay "$2" "$documented"
  expect "a replay string $1 is refused" "$status:$shown:$said" "2::relock: error: --replay: $2: $3"
}
accepted="accepted: p<switches>:<choices> as a failure prints it, for example p2:14x0,1,3x0,2"
refused "of other text" garbage "'garbage' is not a choice: $accepted"
refused "with other text inside" p9:zzz "'zzz' is not a choice: $accepted"
refused "that is empty" "" "'' is not a choice: $accepted"
refused "that ends early" "p1:0," "'' is not a choice: $accepted"
refused "without end" p1:9x99999999x0 "'9x99999999x0' is not a choice: $accepted"
refused "with a bound that is no number" pq:0 \
  "it does not begin with p, a number of switches and a colon: $accepted"
own="accepted: what this case prints when it fails, as it is now"
refused "with a thread that is not there" p1:7 \
  "choice 1 is 7, but what can go on there is numbered 0 to 2: $own"
replay "$string,2999x0" "$documented"
expect "a replay string longer than the run is refused" \
  "$status:$shown:$(grep -cE "it has [0-9]+ choices, but the run ends after [0-9]+: $own" <<<"$said")" \
  "2::1"
replay "$string" "no such case"
expect "a replay of an unknown case is refused" "$status:$(wc -l <<<"$said")" "2:1"
"$explorer" "no such case" >/dev/null 2>&1
expect "words that no case contains are refused" "$?" 2
