#!/bin/bash
# relock compare: rounds, what it notices, what it concludes, how it ends.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"

refused() { # NAME PATTERN ARGUMENTS...
  local name=$1 pattern=$2
  shift 2
  try "$RELOCK" compare "$@" touch "$scratch/started"
  expect_match "refused: $name" "$code:$(lines_in "$err"):$(ls "$scratch/started" 2>/dev/null):$err" \
    "2:1::relock: error: $pattern"
}
refused "an unknown lock" "--locks nosuch: *accepted: all*auto-ticket*" --locks tas,nosuch --
refused "an empty name in the list" "--locks : *" --locks tas, --
refused "no rounds" "-n 0: accepted: 1 to 1000 *" -n 0 --
refused "a part of a round" "-n 1.5: *" -n 1.5 --
refused "rounds in words" "-n seven: *" -n seven --
refused "a broken expression" "--metric *: not a regular expression*" --metric '(' --
refused "a direction without a figure" "--lower-is-better: *" --lower-is-better --
refused "no time" "--timeout 0: *" --timeout 0 --
refused "an unknown format" "--format xml: accepted: text|json: *" --format xml --
refused "an unknown option" "*--nosuch*" --nosuch --
RELOCK_WAIT=never refused "a bad variable in the environment" "RELOCK_WAIT=never: *" --
refused "no such program" "/nonexistent: no such program" -- /nonexistent
try "$RELOCK" compare -n 1
expect_match "refused: no program" "$code:$err" "2:relock: error: no program given*"
gcc -static -x c -o "$scratch/static" - <<<'int main(void) { return 0; }'
try "$RELOCK" compare -n 1 -- "$scratch/static"
expect_match "refused: a static program" "$code:$(lines_in "$err"):$err" \
  "2:1:relock: error: */static: *static*nothing was started*"

# A program that writes down how it was started, and can be told what to do under a lock.
cat >"$scratch/program" <<'EOP'
#!/bin/sh
lock=none
case $LD_PRELOAD in *librelock.so*) lock=$RELOCK_LOCK ;; esac
echo "$lock" >>"$LOG"
eval "$1"
EOP
chmod +x "$scratch/program"
export LOG=$scratch/log
compare() { # [OPTIONS...] SHELL-TEXT
  : >"$LOG"
  try "$RELOCK" compare "${@:1:$#-1}" -- "$scratch/program" "${@: -1}"
}

compare -n 6 --locks ticket,tas,cna,tas 'exit 0'
expect "bare once more, to begin with" "$(head -n 1 "$LOG")" none
sed -i 1d "$LOG"
expect "each runs once in each round" \
  "$(for i in 0 1 2 3 4 5; do sed -n "$((4 * i + 1)),$((4 * i + 4))p" "$LOG" | sort | xargs; done |
    sort | uniq -c | xargs)" "6 cna none tas ticket"
orders=$(paste -d' ' - - - - <"$LOG" | sort -u | wc -l)
[ "$orders" -gt 1 ] && pass "rounds have an order of their own" ||
  miss "rounds have an order of their own" "$orders order"
expect "a line of progress for each round" "$(grep -c '^relock: round [0-9] of 6 done' <<<"$err")" 6
expect "rows: bare and the locks of the list, once" \
  "$(grep -oE '^. (bare|tas|ticket|cna|auto|glibc) ' <<<"$out" | xargs)" "bare tas ticket cna"
compare -n 1 'exit 0'
expect "all locks without --locks" "$(sed 1d "$LOG" | sort | xargs)" \
  "$({ lock_names; echo none; } | sort | xargs)"
expect_match "one round is not taken for knowledge" "$code:$out" "0:*One round says nothing*"
RELOCK_MUTEX=ticket RELOCK_LOCK=cna compare -n 1 --locks tas 'echo "m=$RELOCK_MUTEX" >>$LOG'
expect "nothing overrides the lock" "$(sed 1,2d "$LOG" | sort | xargs)" "m= m= none tas"

echo 'symbol a tas' >"$scratch/rules"
(cd "$scratch" && : >"$LOG" && "$RELOCK" compare -n 4 --locks tas --rules rules --metric 'r=(.*)' -- \
  "$scratch/program" 'echo "r=${RELOCK_RULES:+2}${RELOCK_RULES:-1}"' >"$scratch/out" 2>/dev/null)
expect_match "rules take part beside the locks" "$(tail -n 1 "$scratch/out")" \
  "Use rules: *; set LD_PRELOAD=/*librelock.so RELOCK_RULES=$scratch/rules"
echo 'symbol a' >"$scratch/rules"
refused "wrong rules" "RELOCK_RULES=$scratch/rules:1: *" --rules "$scratch/rules" --

compare -n 5 --locks tas,ticket '[ $lock = tas ] || sleep 0.06; sleep 0.02'
expect_match "a better lock is named with the line to set" "$code:$(tail -n 1 <<<"$out")" \
  "0:Use tas: the wall time is * % lower than *between *; set LD_PRELOAD=/*librelock.so RELOCK_LOCK=tas"
expect_match "and marked in the table" "$out" "*
\* tas *"
compare -n 5 --locks tas,ticket '[ $lock = none ] || sleep 0.06; sleep 0.02'
expect_match "worse locks are said to be worse" "$code:$(tail -n 1 <<<"$out")" \
  "0:Stay with the C library's locks: no lock is better, and all are worse*"
compare -n 4 --locks tas --metric 'rate=(\d+)' 'echo rate=100'
expect_match "no difference is noise" "$code:$(tail -n 1 <<<"$out")" \
  "0:Stay with the C library's locks: the difference is noise*"
rates='case $lock in none) echo "rate=1,000 per s";; tas) echo "rate=2,000 per s";;
  *) echo "rate=500.5 per s" >&2;; esac'
compare -n 4 --locks tas,ticket --metric 'rate=(\S+) per s' "$rates"
expect_match "a figure on either stream decides" "$(tail -n 1 <<<"$out")" \
  "Use tas: the figure is 100.0 % higher than*"
compare -n 4 --locks tas,ticket --lower-is-better --metric 'rate=(\S+) per s' "$rates"
expect_match "a figure that shall be low" "$(tail -n 1 <<<"$out")" \
  "Use ticket: the figure is 50.0 % lower*"
compare -n 2 --locks tas --metric 'nosuch=(.*)' "$rates"
expect_match "no figure: one line after the first run" "$code:$(wc -l <"$LOG"):$err" \
  "1:1:*relock: error: --metric nosuch=*: no line *"

compare -n 2 --locks tas,ticket '[ $lock != ticket ] || { echo ouch >&2; exit 3; }'
expect_match "another exit status is said plainly" "$code:$out" \
  "1:*ticket does not agree with bare: exit status 3 in 2 of 2 runs, bare exit status 0; last words: ouch*"
compare -n 2 --locks tas '[ $lock != tas ] || kill -SEGV $$'
expect_match "so is a signal" "$code:$out" "1:*tas does not agree*ended by SIGSEGV in 2 of 2*"
compare -n 2 --locks tas,ticket --same-output 'echo $lock | tr -d a-m | grep -c .'
expect "the same output agrees" "$code:$(grep -c agree <<<"$out")" "0:0"
compare -n 2 --locks tas,ticket --same-output '[ $lock = ticket ] && echo x; echo y'
expect_match "another output does not" "$code:$out" \
  "1:*ticket does not agree with bare: standard output differs from bare's in 2 of 2 runs*"
compare -n 2 --locks tas --same-output 'echo $$'
expect_match "an output that is never the same" "$code:$out" \
  "0:*note: bare runs differ in their standard output*"
compare -n 2 --locks tas 'exit 7'
expect_match "a program that fails bare too" "$code:$out" \
  "0:*note: the program itself fails, bare too: exit status 7*"

running() { # of the processes whose numbers are in the log
  local pid started=0 left=0
  for pid in $(grep -vE '^[a-z]' "$LOG"); do
    started=$((started + 1))
    grep -q '^State:.[^ZX]' "/proc/$pid/status" 2>/dev/null && left=$((left + 1))
  done
  echo "$started started, $left left"
}
compare -n 2 --locks tas,ticket --timeout 0.4 '[ $lock != tas ] || { sleep 57 & echo $! >>$LOG; wait; }'
expect_match "a run that hangs is a failure" "$code:$out" \
  "1:*tas does not agree with bare: did not end within 0.4 s in 1 of 1 runs: killed, and left out*"
expect "what it started ends with it" "$(running)" "1 started, 0 left"
compare -n 1 --locks tas --timeout 0.2 'sleep 9'
expect_match "a program that hangs bare too" "$code:$err" "1:*relock: error: *did not end within 0.2 s bare*"
compare -n 1 --locks tas 'sleep 58 & echo $! >>$LOG'
expect "what a run leaves behind is ended" "$(running)" "3 started, 0 left"

echo data >"$scratch/data"
: >"$LOG"
"$RELOCK" compare -n 2 --locks tas -- "$scratch/program" 'read line; [ "$line" = data ]' \
  <"$scratch/data" >"$scratch/out" 2>/dev/null
expect "each run reads the input from its beginning" "$?:$(grep -c 'program itself' "$scratch/out")" "0:0"

compare -n 2 --locks tas --format json --metric 'r=(.*)' 'echo r=3'
expect "json" "$(printf %s "$out" | $PYTHON -c 'import json, sys
d = json.load(sys.stdin)
bare, tas = d["locks"]
print(d["version"], d["rounds"], d["decides"], bare["lock"], tas["lock"], tas["agrees_with_bare"],
      tas["median"]["figure"], tas["ratio_to_bare"]["figure"]["median"], len(tas["runs"]),
      all(r["wall_s"] > 0 and r["peak_mib"] > 0 and r["exit_status"] == 0 for r in tas["runs"]),
      d["advice"]["outcome"], "ratio_to_bare" in bare)')" \
  "1 2 figure bare tas True 3.0 1.0 2 True noise False"

# Ctrl-C, in the third round.
$PYTHON - "$RELOCK" compare -n 100 --locks tas -- "$scratch/program" 'sleep 0.1' \
  >"$scratch/out" 2>"$scratch/err" <<'EOP' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
EOP
command_pid=$!
for _ in $(seq 500); do
  grep -q 'round 2 of' "$scratch/err" && break
  sleep 0.02
done
kill -INT $command_pid
wait $command_pid
expect_match "Ctrl-C prints what it has" "$?:$(cat "$scratch/out")" \
  "130:*rounds of 100, interrupted*bare *tas *Stay*"

compile hammer <<'EOP'
#include <pthread.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void* work(void* p) {
  for (int i = 0; i < 20000; ++i) { pthread_mutex_lock(&m); ++*(long*)p; pthread_mutex_unlock(&m); }
  return 0;
}
int main(void) {
  long n = 0;
  pthread_t t[4];
  for (int i = 0; i < 4; ++i) pthread_create(&t[i], 0, work, &n);
  for (int i = 0; i < 4; ++i) pthread_join(t[i], 0);
  return n != 80000;
}
EOP
try "$RELOCK" compare -n 2 -- "$scratch/hammer"
expect "a program with locks agrees under every lock" \
  "$code:$(grep -c 'not agree' <<<"$out"):$(grep -cE '^[* ] [a-z]' <<<"$out")" \
  "0:0:$(($(lock_names | wc -l) + 2))"
exit $status
