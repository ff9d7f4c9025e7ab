#!/bin/bash
# relock list shows every row of both tables; help and usage errors of the command itself.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"

try "$RELOCK" list
expect "list: exit status" "$code" 0
expect "list: nothing on standard error" "$err" ""
for name in $(lock_names); do
  expect "list: lock $name has its row" "$(grep -c "^[* ] $name  *fair: " <<<"$out")" 1
done
for name in $(option_names); do
  expect "list: $name with default and range" \
    "$(grep -A1 "^  $name  *[a-z0-9]" <<<"$out" | grep -c ' default: .*; accepted: ..*')" 1
done
expect "list: exactly one default lock" "$(grep -c '^\*' <<<"$out")" 1
expect "list: RELOCK_PROFILE_RATE as in its row" \
  "$(grep -A1 RELOCK_PROFILE_RATE <<<"$out" | grep -c 'default: 10000; accepted: 1..1000000 ')" 1
"$RELOCK" list >/dev/full 2>/dev/null
expect "list: a full disk is an error" $? 1

usage() { # NAME ARGUMENTS...: exit status 2, one line, nothing on standard output
  local name=$1
  shift
  try "$RELOCK" "$@"
  expect "usage: $name" "$code:$(lines_in "$err"):$out" "2:1:"
}
usage "no subcommand"
usage "an unknown subcommand" frobnicate
usage "an unknown option" list --fast
usage "run without a program" run
usage "run with an unknown option" run --lokc tas -- true
usage "an option without its value" run --lock
usage "check without a program" check
usage "too many arguments" list tas
for command in "" run record list check; do
  # shellcheck disable=SC2086
  try "$RELOCK" $command --help
  expect "help: relock $command --help" "$code:$([ -n "$out" ] && echo text):$err" "0:text:"
done
exit $status
