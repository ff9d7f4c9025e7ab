#!/bin/bash
# tests/fuzz/run.sh - profiles that somebody damaged or made up: the reader and all reports, under
# AddressSanitizer and UBSan. With SLOW=1 libFuzzer looks for new ones, FUZZ_SECONDS (300) long.
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
BUILD=$(readlink -f "${1:-${BUILD:-build}}")
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
status=0
seconds=5 seed=1
[ -n "${SLOW:-}" ] && seconds=60 seed=$RANDOM
echo "  seed $seed"
"$BUILD/profile_replay" $seconds $seed tests/fuzz/corpus/* || {
  echo "not ok fuzz: replay - exit status $?"
  status=1
}
[ -n "${SLOW:-}" ] || exit $status

scratch=$(mktemp -d "${TMPDIR:-/tmp}/relock-fuzz.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
if ! make --no-print-directory "BUILD=$BUILD" "$BUILD/profile_fuzzer" >"$scratch/make" 2>&1; then
  tail -n 5 "$scratch/make" | sed 's/^/  /'
  echo "not ok fuzz: the fuzzer is built - see above"
  exit 1
fi
mkdir "$scratch/new"
if "$BUILD/profile_fuzzer" -max_total_time="${FUZZ_SECONDS:-300}" -max_len=400 -rss_limit_mb=4096 \
  -timeout=60 -artifact_prefix="$BUILD/fuzz-" "$scratch/new" tests/fuzz/corpus \
  >"$scratch/log" 2>&1; then
  grep -E '^(Done|#[0-9]+[[:space:]]+DONE)' "$scratch/log" | sed 's/^/  /'
  echo "ok fuzz: libFuzzer finds nothing"
else
  tail -n 30 "$scratch/log" | sed 's/^/  /'
  echo "not ok fuzz: libFuzzer finds nothing - input kept as $BUILD/fuzz-*"
  status=1
fi
exit $status
