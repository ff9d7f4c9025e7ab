#!/bin/bash
# lockbench: its numbers agree with each other, and it notices a lock that does not exclude.
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
    "stall": 0 <= r["longest_stall_ns"] <= r["seconds"] * 1e9,
    "cpu": abs(r["cpu_seconds"] / r["operations"] * 1e6 - r["cpu_seconds_per_million"]) < 0.01 + (
        0.01 * r["cpu_seconds_per_million"]),
    "exclusive": r["exclusive"] is True,
    "rounds": "rounds_per_second" not in r or (
        abs(r["rounds_per_second"] * threads / r["per_second"] - 1) < 0.01),
    "roles": "readers" not in r or (
        r["readers"]["operations"] + r["writers"]["operations"] == r["operations"]),
}
print(" ".join(name for name, good in checks.items() if not good) or "consistent")'
# Short, but longer where a busy machine gets nothing done in a moment.
measure() {
  for ms in 50 500 5000; do
    try "$LOCKBENCH" --json --ms $ms "$@"
    [[ $out == *'"operations":0,'* ]] || break
  done
}
for object in mutex spin rwlock c11-mutex cond cond-pingpong cond-broadcast; do
  for threads in 1 2 6; do
    measure --object $object --threads $threads --section 50 --think 50
    expect "lockbench: $object, $threads threads" \
      "$code:$err:$($PYTHON -c "$consistent" $threads <<<"$out")" "0::consistent"
  done
done
for object in mutex spin cond cond-pingpong none; do
  measure --alone --object $object
  expect "lockbench: $object alone" "$code:$err:$($PYTHON -c "$consistent" 1 <<<"$out")" \
    "0::consistent"
done
field() { $PYTHON -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."): value = value[name]
print(value)' "$1" <<<"$out"; }

# Threads that only read, or only write, are counted apart.
measure --object rwlock --roles fixed --reads 50 --threads 4 --think 2000
expect "lockbench: fixed roles" "$code:$(field readers.threads):$(field writers.threads)" "0:2:2"
expect "lockbench: writers' share is that of their own threads" "$($PYTHON -c 'import json, sys
r = json.load(sys.stdin)
writers = r["per_thread"][2:]
print(sum(writers) == r["writers"]["operations"] and
      abs(min(writers) * 2 / max(sum(writers), 1) - r["writers"]["least_to_mean"]) < 0.001)' \
  <<<"$out")" True
measure --section 1000 --think-x 4 --threads 1
expect "lockbench: think time as a multiple" "$(field think_ns)" 4000
expect "lockbench: think time takes its time" \
  "$(awk -v r="$(field per_second)" 'BEGIN { print (r > 0 && r < 230000) ? "yes" : r }')" yes
measure --object cond-broadcast
expect "lockbench: a broadcast wakes 64" "$code:$(field threads)" "0:64"
measure --line-reads 100000 --threads 1 --section 0
expect "lockbench: reads of the line take their time" \
  "$(awk -v r="$(field per_second)" 'BEGIN { print (r > 0 && r < 200000) ? "yes" : r }')" yes

# The measured time is the real one: from before the first operation to after the last.
before=$EPOCHREALTIME
try "$LOCKBENCH" --json --object spin --threads 16 --ms 150
wall=$(awk -v a="$before" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
expect "lockbench: its seconds passed" "$(awk -v s="$(field seconds)" -v w="$wall" \
  -v c="$(field cpu_seconds)" -v n="$(nproc)" \
  'BEGIN { good = s >= 0.15 && s <= w && c <= s * n * 1.02 + 0.005
           print good ? "yes" : s " of " w ", CPU " c }')" yes

try "$LOCKBENCH" --limits --json
expect "lockbench: limits" "$code:$err:$($PYTHON -c 'import json, sys
r = json.load(sys.stdin)
several = r["cpus"] > 1
good = 0 < r["atomic_ns"] < 1000 and r["turns_per_ns"] > 0 and r["clock_ns"] > 0
# On a busy machine nobody may have slept when woken: 0, not measured.
good = good and all(r[name] == 0 or r[name] > 50 for name in ("context_switch_ns", "futex_wake_ns"))
print(good and (r["bounce_ns"] > 1) == several or r)' <<<"$out")" "0::True"
try "$LOCKBENCH" --limits
expect_match "lockbench: limits as text" "$code:$err:$out" \
  "0::CPUs *atomic exchange *line bounce*futex wake to run*hand-over on one CPU*"
try "$LOCKBENCH" --threads 2 --ms 40
expect_match "lockbench: text" "$code:$err:$out" \
  "0::mutex, 2 threads, section 100 ns, *operations*Jain*p99.9*CPU*per thread*"
try "$LOCKBENCH" --json --threads 1 --section 100000 --ms 200
rate=$($PYTHON -c 'import json, sys; print(json.load(sys.stdin)["per_second"])' <<<"$out")
# A busy machine makes it slower; nothing makes a section of 100 microseconds much shorter.
expect "lockbench: a section takes its time" \
  "$(awk -v r="$rate" 'BEGIN { print (r > 0 && r < 11500) ? "yes" : r }')" yes

for bad in "--threads 0" "--threads 5000" "--threads x" "--object lock" "--section -1" "--ms 0" \
  "--seconds 0" "--seconds nan" "--reads 101" "--think-x -1" "--think-x nan" "--roles both" \
  "--turns 0" "--alone --object cond-broadcast" "--bogus" "extra"; do
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

try "$LOCKBENCH" --object none --threads 4 --ms 300 --section 500
expect_match "lockbench: no lock at all is noticed" "$code:$err" \
  "1:lockbench: error: the lock does not exclude: *"
# A lock that never opens: the measurement does not end, and nobody takes it for a result.
compile stuck.so -shared -fPIC <<'EOC'
#include <pthread.h>
int pthread_mutex_unlock(pthread_mutex_t* m) { return (void)m, 0; }
EOC
LD_PRELOAD="$scratch/stuck.so" timeout 2 "$LOCKBENCH" --json --threads 2 --ms 50 \
  >"$scratch/out" 2>&1
expect "lockbench: a lock that never opens gives no result" "$?:$(cat "$scratch/out")" "124:"

# One thread is late by more than the whole measurement: it counts, with nothing done.
compile late.so -shared -fPIC <<'EOC'
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
static int chosen;
static __thread int seen;
int pthread_mutex_lock(pthread_mutex_t* m) {
  static int (*lock)(pthread_mutex_t*);
  if (lock == 0) lock = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_lock");
  if (!seen++ && __atomic_exchange_n(&chosen, 1, __ATOMIC_RELAXED) == 0) usleep(400000);
  return lock(m);
}
EOC
try env LD_PRELOAD="$scratch/late.so" "$LOCKBENCH" --json --threads 4 --ms 100 --think 1000
expect "lockbench: a late thread is counted" "$code:$($PYTHON -c 'import json, sys
r = json.load(sys.stdin)
good = sorted(r["per_thread"])[0] == 0 and r["least_to_mean"] == 0 and r["jain"] < 0.76
good = good and r["wait_ns"]["longest"] > 300e6 and r["longest_stall_ns"] > 80e6
print(good and r["drain_ns"] > 100e6 or r)' <<<"$out")" "0:True"

expect "lockbench: needs libc alone" \
  "$(readelf -d "$LOCKBENCH" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')" "libc.so.6"
exit $status
