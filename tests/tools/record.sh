#!/bin/bash
# relock record: stands in for the program (status, signals) and says where the profile is.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"
profiles=$scratch/profiles

for wanted in 0 3 255; do
  try "$RELOCK" record -o "$profiles" -- $PYTHON -c "import os; os._exit($wanted)"
  expect "record: exit status $wanted passes through" "$code:$out" "$wanted:"
done
for name in TERM KILL SEGV HUP; do
  try bash -c "ulimit -c 0; '$RELOCK' record -o '$profiles' -- $PYTHON -c 'import os, signal
os.kill(os.getpid(), signal.SIG$name)' 2>/dev/null; echo \$?"
  expect "record: death by SIG$name is repeated" "$out" $((128 + $(kill -l $name)))
done

# Signals sent to the command reach the program once; a program that ends by them ends it too.
echoer='import signal, sys, time
seen = []
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, frame: seen.append(number))
print("ready", flush=True)
end = time.time() + 20
while not seen and time.time() < end:
    time.sleep(0.01)
time.sleep(0.2)
print([signal.Signals(number).name for number in seen])
sys.exit(9)'
wait_for_line() { # FILE TEXT
  for _ in $(seq 500); do
    grep -q "$2" "$1" 2>/dev/null && return 0
    sleep 0.02
  done
  return 1
}
for name in TERM INT HUP QUIT USR1 USR2; do
  rm -f "$scratch/seen"
  # Job control off makes background jobs ignore INT and QUIT, so a python starts the command.
  $PYTHON - "$RELOCK" record -o "$profiles" -- $PYTHON -c "$echoer" "SIG$name" \
    >"$scratch/seen" 2>/dev/null <<'EOP' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
EOP
  command_pid=$!
  wait_for_line "$scratch/seen" ready
  kill -s $name $command_pid
  wait $command_pid
  expect "record: SIG$name is passed on, once" "$?:$(tail -n 1 "$scratch/seen")" "9:['SIG$name']"
done
"$RELOCK" record -o "$profiles" -- $PYTHON -c 'print("ready", flush=True)
import time; time.sleep(20)' >"$scratch/seen" 2>/dev/null &
command_pid=$!
wait_for_line "$scratch/seen" ready
kill -TERM $command_pid
wait $command_pid
expect "record: a program that a signal ends" "$?" 143
try "$RELOCK" record -o "$profiles" -- $PYTHON -c 'import signal
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))'
expect "record: no signal is left blocked in the program" "$out" "[]"

variables='import os; print([os.environ.get(n, "") for n in
  ("RELOCK_PROFILE", "RELOCK_PROFILE_DIR", "RELOCK_LOG_INTERVAL", "RELOCK_LOG_FILE")])'
try "$RELOCK" record -o "$profiles" --interval 7 --log-file "$scratch/log" -- \
  $PYTHON -c "$variables"
expect "record: options become variables" "$out" "['1', '$profiles', '7', '$scratch/log']"
(cd "$scratch" && mkdir sub && "$RELOCK" record --dir sub -- \
  $PYTHON -c "$variables" >"$scratch/out" 2>/dev/null)
expect "record: a relative directory is made absolute" "$(cat "$scratch/out")" \
  "['1', '$scratch/sub', '', '']"

refused() { # NAME PATTERN ARGUMENTS...
  local name=$1 pattern=$2
  shift 2
  try "$RELOCK" record "$@" -- touch "$scratch/started"
  expect_match "refused: $name" "$code:$(lines_in "$err"):$(ls "$scratch/started" 2>/dev/null):$err" \
    "2:1::relock: error: $pattern"
}
refused "a directory below nothing" "/nonexistent/x/y: *" -o /nonexistent/x/y
echo text >"$scratch/data"
refused "a file as directory" "$scratch/data: not a directory*" -o "$scratch/data"
refused "a bad interval" "RELOCK_LOG_INTERVAL=often: accepted: 0..86400 seconds: *" --interval often
refused "a bad lock" "RELOCK_LOCK=x: *" --lock x
try "$RELOCK" record -o "$profiles" -- "$scratch/nothing"
expect "record: no such program is 127" "$code" 127
try "$RELOCK" record -o "$profiles" -- "$scratch/data"
expect "record: not executable is 126" "$code" 126

# Two threads that get into each other's way leave a profile, and the command says where.
here=$scratch/contended
try "$RELOCK" record -o "$here" --log-file "$scratch/log" -- "$LOCKBENCH" --threads 4 --ms 300
file=$(ls "$here"/relock.*.prof 2>/dev/null | head -n 1)
expect "record: a profile is written" "$code:$([ -s "$file" ] && echo there)" "0:there"
expect "record: and announced" "$(grep '^relock: profile: ' <<<"$err")" \
  "relock: profile: $file (relock report $file)"
try "$RELOCK" report "$file"
expect_match "record: the announced command prints it" "$code:$out" "0:?*"
mkdir "$scratch/stated"
RELOCK_PROFILE_DIR=$scratch/stated try "$RELOCK" record -- "$LOCKBENCH" --threads 4 --ms 200
expect "record: RELOCK_PROFILE_DIR says where without an option" \
  "$code:$(ls "$scratch/stated"/relock.*.prof 2>/dev/null | wc -l)" "0:1"

# The log's file is settled while the program is where it was started, and never lost in silence.
mkdir "$scratch/elsewhere"
compile moving -pthread <<'EOC'
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* work(void* unused) {
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&mutex);
    usleep(200);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}
int main(void) {
  pthread_t threads[3];
  if (chdir("elsewhere") != 0) return 1;
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  return 0;
}
EOC
(cd "$scratch" && "$RELOCK" record -o "$here" --log-file own.log -- ./moving >"$scratch/out" 2>&1)
expect "record: a relative log file stays where the program was started" \
  "$?:$([ -s "$scratch/own.log" ] && echo there):$(ls "$scratch/elsewhere")" "0:there:"
for bad in /nonexistent/x "$scratch" /dev/full; do
  try "$RELOCK" record -o "$here" --log-file "$bad" -- "$LOCKBENCH" --threads 4 --ms 200
  expect_match "record: a log file that cannot be written, $bad" \
    "$code:$(grep -c "^relock: warning: RELOCK_LOG_FILE=$bad: ..*: the log " <<<"$err")" "0:1"
done
try "$RELOCK" record -o "$scratch/empty" -- /bin/true
expect_match "record: a program without locks leaves no profile, and that is said" "$code:$err" \
  "0:*no profile was written*"
exit $status
