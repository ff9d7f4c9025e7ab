#!/bin/bash
# lockbench: its numbers agree with each other, it notices a lock that does not exclude, and the
# driver of make bench runs.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"

consistent='import json, sys
r = json.loads(sys.stdin.read())
threads = int(sys.argv[1])
counts = r["per_thread"]
squares = sum(c * c for c in counts)
jain = sum(counts) ** 2 / (len(counts) * squares)
waits = r["wait_ns"]
checks = {
    "threads": len(counts) == threads == r["threads"],
    "sum": sum(counts) == r["operations"] > 0,
    "rate": abs(r["per_second"] * r["seconds"] / r["operations"] - 1) < 0.01,
    "jain": abs(jain - r["jain"]) < 0.001,
    "least": abs(min(counts) / (sum(counts) / threads) - r["least_to_mean"]) < 0.001,
    "percentiles": waits["p50"] <= waits["p99"] <= waits["p99_9"] <= waits["longest"],
    "samples": 0 < waits["sampled"] <= r["operations"] + 2 * threads,
    "exclusive": r["exclusive"] is True,
}
print(" ".join(name for name, good in checks.items() if not good) or "consistent")'
for object in mutex spin cond rwlock; do
  for threads in 1 2 5; do
    try "$LOCKBENCH" --json --object $object --threads $threads --ms 60 --section 50 --think 50
    expect "lockbench: $object, $threads threads" \
      "$code:$err:$($PYTHON -c "$consistent" $threads <<<"$out")" "0::consistent"
  done
done
try "$LOCKBENCH" --json --alone --ms 40
expect "lockbench: alone" "$code:$err:$($PYTHON -c "$consistent" 1 <<<"$out")" "0::consistent"
try "$LOCKBENCH" --threads 2 --ms 40
expect_match "lockbench: text" "$code:$err:$out" \
  "0::mutex, 2 threads, section 100 ns, *operations*Jain*p99.9*CPU*per thread*"
try "$LOCKBENCH" --json --threads 1 --section 100000 --ms 200
rate=$($PYTHON -c 'import json, sys; print(json.load(sys.stdin)["per_second"])' <<<"$out")
# A busy machine makes it slower; nothing makes a section of 100 microseconds much shorter.
expect "lockbench: a section takes its time" \
  "$(awk -v r="$rate" 'BEGIN { print (r > 500 && r < 11500) ? "yes" : r }')" yes

for bad in "--threads 0" "--threads 5000" "--threads x" "--object lock" "--section -1" "--ms 0" \
  "--seconds 0" "--seconds nan" "--reads 101" "--bogus" "extra"; do
  # shellcheck disable=SC2086
  try "$LOCKBENCH" $bad
  expect "lockbench: $bad is refused" "$code:$out:$(lines_in "$err")" "2::1"
done

# Locks that let everybody in: the plant that shows the check can fail.
compile broken.so -shared -fPIC <<'EOC'
#include <pthread.h>
int pthread_mutex_lock(pthread_mutex_t* m) { return (void)m, 0; }
int pthread_mutex_unlock(pthread_mutex_t* m) { return (void)m, 0; }
int pthread_spin_lock(pthread_spinlock_t* s) { return (void)s, 0; }
int pthread_spin_unlock(pthread_spinlock_t* s) { return (void)s, 0; }
int pthread_rwlock_rdlock(pthread_rwlock_t* l) { return (void)l, 0; }
int pthread_rwlock_wrlock(pthread_rwlock_t* l) { return (void)l, 0; }
int pthread_rwlock_unlock(pthread_rwlock_t* l) { return (void)l, 0; }
EOC
for object in mutex spin rwlock; do
  try env LD_PRELOAD="$scratch/broken.so" "$LOCKBENCH" --object $object --threads 4 --ms 300 \
    --section 500 --reads 50
  expect_match "lockbench: a broken $object lock is noticed" "$code:$err" \
    "1:lockbench: error: the lock does not exclude: *"
done

expect "lockbench: needs libc alone" \
  "$(readelf -d "$LOCKBENCH" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')" "libc.so.6"
try env BUILD="$BUILD" tools/bench.sh --rounds 1 --ms 20 --threads 1,2 --sections 0 \
  --json "$scratch/bench.json"
expect_match "bench: every lock is measured" "$code:$err" "0:"
for name in $(lock_names); do
  expect "bench: $name has its rows" "$(grep -c "^  $name  *[0-9]" <<<"$out")" 3
done
expect "bench: single runs are kept" "$($PYTHON -c 'import json, sys
print(sum(len(row["runs"]) for row in json.load(open(sys.argv[1]))))' "$scratch/bench.json")" \
  $((2 * ($(lock_names | wc -l) + 1)))
try env BUILD="$BUILD" tools/bench.sh --locks nonsense
expect_match "bench: an unknown lock is refused" "$code:$err" "1:bench: nonsense: no such lock *"
exit $status
