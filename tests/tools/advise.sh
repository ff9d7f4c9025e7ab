#!/bin/bash
# relock advise: from a real profile to a rules file that changes the locks it names, and no others.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"
compile server <<'EOP'
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t quiet = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t* made;
static void work(long ns) {
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  do clock_gettime(CLOCK_MONOTONIC, &b);
  while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < ns);
}
void make_lock(pthread_mutex_t* mutex) { pthread_mutex_init(mutex, 0); __asm__ volatile(""); }
static void* serve(void* p) {
  pthread_mutex_lock(&quiet);  // held by main meanwhile
  pthread_mutex_unlock(&quiet);
  for (int i = 0; i < 4000; ++i) {
    pthread_mutex_lock(&hot);
    work(8000);
    pthread_mutex_unlock(&hot);
    pthread_mutex_lock(made);
    work(8000);
    pthread_mutex_unlock(made);
  }
  return p;
}
int main(void) {
  made = malloc(sizeof *made);
  make_lock(made);
  pthread_t t[3];
  pthread_mutex_lock(&quiet);
  for (int i = 0; i < 3; ++i) pthread_create(&t[i], 0, serve, 0);
  struct timespec pause = {0, 10000000};
  nanosleep(&pause, 0);
  pthread_mutex_unlock(&quiet);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  return 0;
}
EOP

record() { # NAME LOCK [VARIABLES...]
  rm -rf "$scratch/$1"
  env RELOCK_LOG_FILE=/dev/null "${@:3}" "$RELOCK" record --lock "$2" -o "$scratch/$1" -- \
    "$scratch/server" 2>/dev/null
  profile=$(echo "$scratch/$1"/*.prof)
}
rules_in() { grep -v '^#' <<<"$1" | grep . | sort; }

# Three threads on what is said to be one CPU, under a lock that hands over in order.
record ordered ticket
try "$RELOCK" advise --cpus 1 --rules "$scratch/rules" "$profile"
expect "ordered locks on too few CPUs: rules for the two that are hot" "$code:$(rules_in "$out")" \
  "0:init server:make_lock tas
symbol server:hot tas kind=mutex"
expect_match "with the reason in numbers" "$(sed 's/^#  *//' <<<"$out" | xargs -d '\n')" \
  "*mutex hot: * waits in * acquisitions, * in all (* % of the threads' time)*tas instead of ticket: ticket hands over in order, and with * threads on 1 CPU *"
expect_match "a quiet lock is left alone" "$(grep -A1 quiet <<<"$out" | tr '\n' ' ')" \
  "*stays: too little to gain*"
expect "the file is what was printed" "$(cat "$scratch/rules")" "$out"
expect_match "and where it is" "$err" "relock: 2 rules in $scratch/rules; *"

# The library reads the file: the two change, the third stays.
try env RELOCK_VERBOSE=1 "$RELOCK" run --lock ticket --rules "$scratch/rules" -- "$scratch/server"
expect "the file picks the lock of those two" \
  "$code:$(sed -n 's/.*rules: line [0-9]* (\(.*\)): first mutex served by \([a-z-]*\),.*/\1 \2/p' <<<"$err" | sort)" \
  "0:init server:make_lock tas
symbol server:hot tas"
try "$RELOCK" advise --cpus 64 "$profile"
expect_match "the same with CPUs for all: nothing gains, and that is said" \
  "$code:$(rules_in "$out"):$(tail -n 1 <<<"$out")" "0::# No lock would gain from another backend*"

# Threads dealt over many nodes: hardly two are on the same.
# Again where a busy machine let them meet too seldom.
for attempt in 1 2 3; do
  record nodes qspinlock RELOCK_TOPOLOGY=threads:64
  try "$RELOCK" advise --cpus 8 "$profile"
  [ "$(rules_in "$out" | wc -l)" = 2 ] && break
done
expect "hand-offs across nodes: cna" "$code:$(rules_in "$out")" \
  "0:init server:make_lock cna
symbol server:hot cna kind=mutex"

try "$RELOCK" advise "$scratch/server"
expect_match "a file that is no profile" "$code:$(lines_in "$err"):$err" "2:1:relock: error: $scratch/server: *"
try "$RELOCK" advise /nonexistent
expect_match "no file" "$code:$err" "2:relock: error: /nonexistent: *"
try "$RELOCK" advise
expect_match "no argument" "$code:$(lines_in "$err")" "2:1"
try "$RELOCK" advise --cpus none "$profile"
expect_match "a wrong number of CPUs" "$code:$err" "2:relock: error: --cpus none: accepted: 1 to 65536"
try "$RELOCK" advise --rules "$profile" "$profile"
expect_match "the rules never overwrite the profile" "$code:$err" "2:relock: error: *is one of the profiles*"
try "$RELOCK" advise --rules /nonexistent/rules "$profile"
expect_match "rules that cannot be written" "$code:$err" "1:relock: error: /nonexistent/rules: *"
exit $status
