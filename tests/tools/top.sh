#!/bin/bash
# relock top: one frame for scripts, what is refused, and (top_terminal.py) the live screen.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"

# hot_lock is waited for about all the time, in long waits; calm_lock seldom in total, but in many
# short waits.
compile contend -g -rdynamic <<'EOC'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
pthread_mutex_t hot_lock = PTHREAD_MUTEX_INITIALIZER, calm_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t ended;
static void hold(long ns) { nanosleep(&(struct timespec){0, ns}, 0); }
__attribute__((noinline)) void use_hot(void) {
  pthread_mutex_lock(&hot_lock);
  hold(20000000);
  pthread_mutex_unlock(&hot_lock);
}
__attribute__((noinline)) void use_calm(void) {
  pthread_mutex_lock(&calm_lock);
  hold(500000);
  pthread_mutex_unlock(&calm_lock);
  hold(1000000);
}
static void* hot(void* unused) { while (!ended) use_hot(); return unused; }
static void* calm(void* unused) { while (!ended) use_calm(); return unused; }
static void end(int number) { ended = number; }
int main(int count, char** words) {
  pthread_t threads[6];
  signal(SIGTERM, end);
  if (count > 1) { while (!ended) pause(); return words == 0; }
  for (int i = 0; i < 6; i++) pthread_create(&threads[i], 0, i < 3 ? hot : calm, 0);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
  return 0;
}
EOC
wait_until() { # CONDITION
  for _ in $(seq 300); do eval "$1" && return 0; sleep 0.05; done
  return 1
}
"$RELOCK" record --lock ticket -o "$scratch/run" --log-file "$scratch/log" -- "$scratch/contend" 2>/dev/null &
recorder=$!
wait_until 'ls "$scratch"/run/relock.*.prof >/dev/null 2>&1'
file=$(ls "$scratch"/run/relock.*.prof)
pid=${file##*contend.} pid=${pid%.prof}
sleep 0.3

row() { grep " mutex $1 (contend)" <<<"$out"; }
try "$RELOCK" top --once --interval 0.5 "$pid"
expect_match "top --once: a process" "$code:$err:$(head -n 1 <<<"$out")" \
  "0::relock top: contend\[$pid\] running, *"
expect_match "top --once: the rates are those of the interval" "$(sed -n 3p <<<"$out")" \
  "locks by time waited, rates over the last [5-9]?? ms"
# Three threads take turns with hot_lock, so two always wait: 2 s for each second.
expect_match "top --once: the hot lock, two threads waiting for it" "$(row hot_lock)" \
  *"  [12].?? s "*"mutex hot_lock (contend)"
expect "top --once: it comes first, the calm one second" \
  "$(sed -n '6,7s/.* mutex \([a-z_]*\) .*/\1/p' <<<"$out")" "hot_lock
calm_lock"
expect_match "top --once: waits of 20 to 40 ms" "$(row hot_lock | awk '{ print $5, $6 }')" \
  "[234]?.? ms"
for target in "$file" "$recorder"; do
  try "$RELOCK" top --once --interval 0.2 "$target"
  expect_match "top --once: ${target/#"$scratch"\/run\//}: the same" "$code:$err:$out" \
    "0::relock top: contend\[$pid\] running, *hot_lock*"
done
try "$RELOCK" top --once --interval 0.1 --top 1 "$pid"
expect "top --once: --top bounds the rows" "$code:$(lines_in "$out")" 0:6

refused() { # NAME PATTERN ARGUMENTS...
  local name=$1 pattern=$2
  shift 2
  try "$RELOCK" top "$@"
  expect_match "top refuses: $name" "$code:$(lines_in "$err"):$out:$err" \
    "2:1::relock: error: $pattern"
}
refused "no terminal" "standard output: not a terminal: use --once*" "$pid"
refused "a process that is not there" "999999999: no such process*" --once 999999999
refused "a number that is none" "0: not a process ID" --once 0
sleep 60 &
refused "a process that is not recorded" "$!: *relock record*" --once $!
kill $!
refused "a file that is not there" "$scratch/none: No such file*" --once "$scratch/none"
refused "a file that is no profile" "/etc/passwd: not a relock profile" --once /etc/passwd
head -c 5000 "$file" >"$scratch/cut"
refused "a profile cut off" "$scratch/cut: truncated profile" --once "$scratch/cut"
refused "a directory" "$scratch: not a regular file" --once "$scratch"
for bad in 0 -1 x 1e9 nan ""; do
  refused "--interval '$bad'" "--interval $bad: accepted: 0.1..3600 seconds" --once --interval "$bad" \
    "$pid"
done
refused "nothing to look at" "*" --once

RELOCK_PROFILE=1 RELOCK_PROFILE_DIR=$scratch/run LD_PRELOAD=$BUILD/librelock.so \
  "$scratch/contend" idle &
idle=$!
wait_until 'grep -q librelock-profile /proc/$idle/maps'
try "$RELOCK" top --once $idle
expect "top --once: a process that has not waited yet" "$code:$err:$out" \
  "0::relock top: contend[$idle] runs, and no thread has had to wait for a lock yet"
kill $idle
wait $idle

if [ -e /usr/lib/python3/dist-packages/pyte/__init__.py ]; then
  /usr/bin/python3 "$(dirname "$(readlink -f "$0")")/top_terminal.py" "$RELOCK" "$pid" "$scratch" ||
    status=1
else
  miss "top: on a terminal" "python3-pyte is not installed (make deps-test)"
fi
kill "$pid" 2>/dev/null
wait $recorder
try "$RELOCK" top --once "$file"
expect_match "top --once: a run that has ended is shown as a whole" "$code:$err:$out" \
  "0::relock top: contend\[$pid\] ended, *over the whole run*hot_lock*"
(cd "$scratch/run" && "$RELOCK" top --once "$pid" >"$scratch/out")
expect_match "top --once: by its number, where its profile lies" "$?:$(cat "$scratch/out")" \
  "0:relock top: contend\[$pid\] ended, *"
exit $status
