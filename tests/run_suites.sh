#!/bin/bash
# tests/run_suites.sh [SUITE...] - runs the suites, counts their lines, and ends with
# "N passed, N failed". Exit status 1 when anything failed.
#
# A suite is an executable or a script that prints "ok NAME" or "not ok NAME - reason" for each
# case; its other lines are commentary. Without arguments: every $BUILD/*_tests, tests/layers.sh
# and every tests/*/run.sh. BUILD (build) says where the outputs are, SLOW=1 runs the long cases
# too, SUITE_TIMEOUT bounds one suite in seconds. Case names repeat across suites, so failures
# are reported as suite: case.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
export BUILD=${BUILD:-build} SLOW=${SLOW:-} LC_ALL=C.UTF-8
limit=${SUITE_TIMEOUT:-$([ -n "$SLOW" ] && echo 7200 || echo 600)}
unset LD_PRELOAD
while read -r variable; do unset "$variable"; done < <(compgen -e | grep '^RELOCK_')

log=$(mktemp "${TMPDIR:-/tmp}/relock-suite.XXXXXX") || exit 2
failures=$(mktemp "${TMPDIR:-/tmp}/relock-failures.XXXXXX") || exit 2
trap 'rm -f "$log" "$failures"' EXIT
passed=0 failed=0

# A Catch2 binary speaks the protocol through its "lines" reporter; one that has a main of its
# own speaks it without arguments.
command_of() {
  case $1 in
    *_tests)
      if "$1" --list-reporters </dev/null 2>/dev/null | grep -q '^ *lines:'; then
        command=("$1" -r lines "$([ -n "$SLOW" ] && echo '*' || echo '~[slow]')")
      else
        command=("$1")
      fi ;;
    *.sh) command=(bash "$1") ;;
    *) command=("$1") ;;
  esac
}

fail() { failed=$((failed + 1)); echo "  $1: $2" >>"$failures"; }

run_suite() {
  local name=$1 start=$EPOCHREALTIME status good bad line
  name=${name#"$BUILD"/} name=${name#tests/}
  echo "== $name"
  command_of "$1"
  timeout -k 10 "$limit" "${command[@]}" </dev/null >"$log" 2>&1
  status=$?
  # Passing cases are counted, not listed: what a reader needs is the rest.
  grep -av '^ok ' "$log"
  good=$(grep -ac '^ok ' "$log") bad=$(grep -ac '^not ok ' "$log")
  passed=$((passed + good))
  while IFS= read -r line; do fail "$name" "${line#not ok }"; done < <(grep -a '^not ok ' "$log")
  if [ $status = 124 ] || [ $status = 137 ]; then
    fail "$name" "still running after $limit s, or killed"
  elif [ $status -gt 128 ]; then
    fail "$name" "ended by signal $((status - 128))"
  elif [ $((good + bad)) = 0 ]; then
    fail "$name" "printed no case (exit status $status)"
  elif [ $status != 0 ] && [ "$bad" = 0 ]; then
    fail "$name" "exit status $status although no case failed"
  fi
  awk -v n="$name" -v g="$good" -v b="$bad" -v s="$start" -v e="$EPOCHREALTIME" \
    'BEGIN { printf "== %s: %d passed, %d failed, %.1f s\n", n, g, b, e - s }'
}

if [ $# -gt 0 ]; then
  suites=("$@")
else
  suites=()
  for suite in "$BUILD"/*_tests tests/layers.sh tests/*/run.sh; do
    [ -e "$suite" ] && suites+=("$suite")
  done
fi
for suite in "${suites[@]}"; do run_suite "$suite"; done

[ -s "$failures" ] && { echo; echo "failed:"; cat "$failures"; }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
