#!/bin/bash
# relock run: the program's status, signals, arguments and environment; what is refused.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"
first_lock=$(lock_names | head -n 1) last_lock=$(lock_names | tail -n 1)

# Python imports locks, so relock has nothing to remark on it.
for wanted in 0 1 2 77 255; do
  try "$RELOCK" run -- $PYTHON -c "import os; os._exit($wanted)"
  expect "run: exit status $wanted passes through" "$code:$out:$err" "$wanted::"
done
for name in TERM KILL SEGV INT; do
  try bash -c "'$RELOCK' run -- $PYTHON -c 'import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIG$name)' 2>/dev/null; echo \$?"
  expect "run: death by SIG$name passes through" "$out" $((128 + $(kill -l $name)))
done
"$RELOCK" run -- $PYTHON -c 'import os; print(os.getpid())' >"$scratch/pid" &
wait $!
expect "run: the program takes the command's place" "$(cat "$scratch/pid")" $!

show='import sys, os; print("|".join(sys.argv[1:]))'
try "$RELOCK" run --lock "$first_lock" -- $PYTHON -c "$show" --lock x "" "a b" -- --help
expect "run: arguments arrive as they were" "$out" "--lock|x||a b|--|--help"
try "$RELOCK" run --lock="$first_lock" $PYTHON -c "$show" --verbose
expect "run: without -- the first word that is no option is the program" "$out" "--verbose"
try bash -c "echo text | '$RELOCK' run -- $PYTHON -c 'print(input())'"
expect "run: standard input is the program's" "$out" text

variables='import os; print([os.environ.get(n, "") for n in
  ("RELOCK_LOCK", "RELOCK_MUTEX", "RELOCK_SPIN", "RELOCK_WAIT", "RELOCK_PROFILE")])'
try "$RELOCK" run --lock "$first_lock" --mutex "$last_lock" --spin "$first_lock" --wait park -- \
  $PYTHON -c "$variables"
expect "run: options become variables" "$out" \
  "['$first_lock', '$last_lock', '$first_lock', 'park', '']"
RELOCK_LOCK=$last_lock RELOCK_WAIT=spin try "$RELOCK" run --wait park -- $PYTHON -c "$variables"
expect "run: an option beats a variable, other variables stay" "$out" \
  "['$last_lock', '', '', 'park', '']"
for name in $(lock_names); do
  try "$RELOCK" run --lock "$name" -- $PYTHON -c 'print("ran")'
  expect "run: --lock $name" "$code:$out:$err" "0:ran:"
done

preload='import os; print(os.environ["LD_PRELOAD"])'
try "$RELOCK" run -- $PYTHON -c "$preload"
expect "run: the library beside the command is preloaded" "$out" "$BUILD/librelock.so"
try "$RELOCK" run -- grep -o "$BUILD/librelock.so" /proc/self/maps
expect "run: and really loaded" "$(sort -u <<<"$out")" "$BUILD/librelock.so"
other=$(gcc -print-file-name=libm.so.6)
LD_PRELOAD=$other try "$RELOCK" run -- $PYTHON -c "$preload"
expect "run: other preloaded libraries come after it" "$out" "$BUILD/librelock.so:$other"

for place in bin/../lib/relock bin/../lib; do
  root=$scratch/${place//[.\/]/_}
  mkdir -p "$root/bin" "$root/${place#bin/../}"
  cp "$RELOCK" "$root/bin/" && cp "$BUILD/librelock.so" "$root/${place#bin/../}/"
  try "$root/bin/relock" run -- $PYTHON -c "$preload"
  expect "run: installed, with the library in ${place#bin/}" "$out" \
    "$root/${place#bin/../}/librelock.so"
done
mkdir "$scratch/alone" && cp "$RELOCK" "$scratch/alone/"
try "$scratch/alone/relock" run -- $PYTHON -c "print(1)"
expect_match "run: without the library nothing is started" "$code:$out:$err" \
  "1::relock: error: $scratch/alone: librelock.so is not here*"
mkdir "$scratch/a b" && cp "$RELOCK" "$BUILD/librelock.so" "$scratch/a b/"
try "$scratch/a b/relock" run -- $PYTHON -c "print(1)"
expect_match "run: a place that LD_PRELOAD cannot name" "$code:$out:$err" \
  "1::relock: error: *LD_PRELOAD cannot name*"

# Wrong values: one line, status 2, and the program is not started.
refused() { # NAME PATTERN COMMAND...
  local name=$1 pattern=$2
  shift 2
  rm -f "$scratch/started"
  try "$@" touch "$scratch/started"
  local started=""
  [ -e "$scratch/started" ] && started=started
  expect_match "refused: $name" "$code:$(lines_in "$err"):$started:$out:$err" \
    "2:1:::relock: error: $pattern"
}
refused "an unknown lock" "RELOCK_LOCK=mcs: accepted: *$last_lock*: nothing was started" \
  "$RELOCK" run --lock mcs --
refused "an empty lock" "RELOCK_LOCK=: accepted: *" "$RELOCK" run --lock "" --
refused "an unknown mutex lock" "RELOCK_MUTEX=x: *" "$RELOCK" run --mutex x --
refused "an unknown wait" "RELOCK_WAIT=busy: accepted: spin|park|adaptive: *" \
  "$RELOCK" run --wait busy --
refused "a value with control characters" 'RELOCK_LOCK=a?b: *' "$RELOCK" run --lock $'a\nb' --
refused "a bad variable" "RELOCK_PROFILE=maybe: accepted: 0|1: *" \
  env RELOCK_PROFILE=maybe "$RELOCK" run --
refused "a number out of range" "RELOCK_LOG_INTERVAL=86401: accepted: 0..86400 seconds: *" \
  env RELOCK_LOG_INTERVAL=86401 "$RELOCK" run --
refused "a bad topology" "RELOCK_TOPOLOGY=0-3,3: accepted: *" \
  env RELOCK_TOPOLOGY=0-3,3 "$RELOCK" run --
refused "an unknown variable" "RELOCK_LOKC: no such variable: *did you mean RELOCK_LOCK?" \
  env RELOCK_LOKC=tas "$RELOCK" run --
try "$RELOCK" run --lock "$first_lock" --
expect_match "refused: no program" "$code:$out:$err" "2::relock: error: no program given: *"

# Programs that cannot be run, with a shell's statuses.
try "$RELOCK" run -- "$scratch/nothing"
expect "run: no such program is 127" "$code:$(lines_in "$err")" 127:1
try "$RELOCK" run -- no-such-program-anywhere
expect "run: not in PATH is 127" "$code:$(lines_in "$err")" 127:1
echo text >"$scratch/data"
try "$RELOCK" run -- "$scratch/data"
expect "run: not executable is 126" "$code:$(lines_in "$err")" 126:1
try "$RELOCK" run -- "$scratch"
expect "run: a directory is 126" "$code:$(lines_in "$err")" 126:1

# Programs that relock cannot work on.
echo '#include <unistd.h>
int main(int c, char** v) { return c > 1 && symlink("x", v[1]) != 0; }' >"$scratch/touch.c"
gcc -static -o "$scratch/static" "$scratch/touch.c" && gcc -o "$scratch/suid" "$scratch/touch.c" &&
  chmod u+s "$scratch/suid"
for kind in static suid; do
  refused "$kind" "*: nothing was started; start it without relock*" \
    "$RELOCK" run -- "$scratch/$kind" "$scratch/started"
done
cp "$scratch/suid" "$scratch/alien" && chmod u-s "$scratch/alien" &&
  printf '\xf3' | dd of="$scratch/alien" bs=1 seek=18 conv=notrunc status=none
refused "another architecture" "*another architecture*" "$RELOCK" run -- "$scratch/alien"

# Warned about, and started.
try "$RELOCK" run -- /bin/echo hello
expect_match "run: a program without locks is started with a warning" \
  "$code:$out:$(lines_in "$err"):$err" "0:hello:1:relock: warning: /bin/echo: neither *"
printf '#!/bin/sh\necho "$1"; exit 5\n' >"$scratch/script.sh" && chmod +x "$scratch/script.sh"
try "$RELOCK" run -- "$scratch/script.sh" word
expect_match "run: a script is started with a warning" "$code:$out:$err" \
  "5:word:relock: warning: $scratch/script.sh: a script for /bin/sh: *"
printf 'echo plain "$1"\n' >"$scratch/plain" && chmod +x "$scratch/plain"
try "$RELOCK" run -- "$scratch/plain" word
expect_match "run: a script without a first line goes to the shell" "$code:$out" "0:plain word"
exit $status
