#!/bin/bash
# demo.sh - what relock is for, on a program that nobody here wrote: RocksDB's block cache under
# four threads, each of whose shards is guarded by one mutex. First it runs with its own locks
# swapped and recorded, and the hottest locks are printed with the stacks of those who wait and of
# those who make them wait. Then the same program runs bare and with other locks.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
BUILD=${BUILD:-build}
preload=$(readlink -f "$BUILD")/librelock.so
relock=$(readlink -f "$BUILD")/relock
locks=${DEMO_LOCKS:-glibc auto-ticket cna}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/relock-demo.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT

program=(cache_bench -threads=4 -ops_per_thread="${DEMO_OPS:-400000}" -num_shard_bits=1
  -cache_size=33554432)
command -v cache_bench >/dev/null || { echo "demo: cache_bench (package rocksdb-tools) is missing" >&2; exit 1; }

say() { printf '\n== %s\n' "$*"; }
throughput() { sed -n 's/.*QPS *= *\([0-9]*\).*/\1/p; s/.*Thread ops\/sec *= *\([0-9]*\).*/\1/p' "$1" | head -n 1; }
measure() { # TITLE COMMAND...: one line
  local title=$1 start=$EPOCHREALTIME; shift
  if ! "$@" >"$scratch/out" 2>"$scratch/err"; then
    echo "demo: $title failed: $(tail -n 1 "$scratch/err")" >&2
    exit 1
  fi
  awk -v t="$title" -v a="$start" -v b="$EPOCHREALTIME" -v q="$(throughput "$scratch/out")" \
    'BEGIN { printf "%-24s %6.2f s   %s operations/s\n", t, b - a, q == "" ? "-" : q }'
}

say "recording: relock record -- ${program[*]}"
if [ -x "$relock" ] && [ -e "${preload%.so}-profile.so" ]; then
  (cd "$scratch" && "$relock" record -- "${program[@]}" >out 2>err) ||
    { echo "demo: relock record failed: $(tail -n 1 "$scratch/err")" >&2; exit 1; }
  profile=$(find "$scratch" -name '*.prof' | head -n 1)
  [ -n "$profile" ] || { echo "demo: no profile was written" >&2; exit 1; }
  "$relock" report --top 2 "$profile" || exit 1
else
  echo "(the recorder is not built yet: only the locks are swapped)"
fi

say "the same program with other locks"
measure "bare (glibc's locks)" "${program[@]}"
for lock in $locks; do
  measure "RELOCK_LOCK=$lock" env LD_PRELOAD="$preload" RELOCK_LOCK="$lock" "${program[@]}"
done
