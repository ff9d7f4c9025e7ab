#!/bin/bash
# RELOCK_RULES: the ruled object changes its lock and no other does; what a wrong file does.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"
PRELOAD=$BUILD/librelock.so
gcc -O1 -o "$scratch/objects" tests/tools/ruled_objects.c -pthread || exit 2
gcc -O1 -shared -fPIC -o "$scratch/libplug.so" -x c - <<'EOP' || exit 2
#include <pthread.h>
pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t hidden = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t* hidden_lock(void) { return &hidden; }
void library_make(pthread_mutex_t* mutex) {
  pthread_mutex_init(mutex, 0);
  __asm__ volatile("");
}
EOP
library=$scratch/libplug.so

# Runs the program with the rules on standard input; which objects behave as $wanted says.
objects() { # LOCK [VARIABLES...]
  local lock=$1
  shift
  cat >"$scratch/rules"
  env RELOCK_LOCK="$lock" RELOCK_WAIT=park RELOCK_PROMOTE_US=1000000 RELOCK_RULES="$scratch/rules" LD_PRELOAD="$PRELOAD" "$@" \
    "$program" "$library" >"$scratch/out" 2>"$scratch/err"
  code=$?
  [ $code = 0 ] || echo "exit status $code"
  sed -n "s/: $wanted\$//p" "$scratch/out" | paste -sd, | sed 's/,/, /g'
}
program=$scratch/objects
in_program=$("$program" | sed -n 's/: barges$//p' | grep -v spin | paste -sd, | sed 's/,/, /g')

wanted="hands over"
expect "a file without rules changes nothing" "$(objects tas <<<'# nothing')" ""
ruled() { # RULES EXPECTED: with tas for all others
  expect "tas, but ${1//$'\n'/; }" "$(objects tas <<<"$1")" "$2"
}
ruled "symbol global ticket" "global"
ruled "symbol objects:local qspinlock" "local"
ruled "symbol row+40 ticket" "row[1]"
ruled "symbol recurs?ve auto-ticket" "recursive"
ruled "symbol checked ticket-backoff" "checked"
ruled "symbol for_cond* cna" "condition's"
ruled "init make_first ticket" "made first"
ruled "init make_c11 ticket" "made as C11"
ruled "init make_* auto-ticket" "made first, made second, made as C11, made second and seen here"
ruled "site lock_here ticket" "first seen here, made second and seen here"
ruled "symbol spin ticket" "spin"
ruled "symbol spin ticket kind=mutex" ""
ruled "symbol *spin ticket" "spin, other spin"
ruled "symbol libplug.so:hidden ticket" "library's hidden"
ruled "init library_make ticket" "library-made"
ruled "module libplug.so ticket" "library's, library's hidden, library-made"
ruled "module objects ticket kind=mutex" \
  "$in_program"
# The first match wins, whatever it looks at and whenever that is known.
ruled $'symbol global tas\nsymbol global ticket' ""
ruled $'site lock_here tas\ninit make_second ticket' "made second"
ruled $'init make_second ticket\nsite lock_here tas' "made second, made second and seen here"
ruled $'symbol row+80 tas\nsymbol row ticket\nmodule * tas' "row[1]"

wanted=barges
expect "ticket, but symbol global tas" "$(objects ticket <<<'symbol global tas')" "global"
expect "ticket, but the C library's for some" \
  "$(objects ticket <<<$'symbol global glibc\ninit make_first glibc\nsite lock_here glibc')" \
  "global, made first, first seen here, made second and seen here"
wanted="hands over"
expect "the C library's, but ticket for some" \
  "$(objects glibc <<<$'symbol global ticket\ninit make_first ticket\nsite lock_here ticket
symbol for_condition ticket\nsymbol spin ticket')" \
  "global, made first, first seen here, made second and seen here, condition's, spin"
expect "rules while a profile is recorded" \
  "$(objects tas RELOCK_PROFILE=1 RELOCK_LOG_FILE=/dev/null RELOCK_PROFILE_DIR="$scratch" \
    <<<$'symbol global ticket\nsite lock_here ticket')" \
  "global, first seen here, made second and seen here"

objects tas <<<'symbol rwlock glibc' >/dev/null
expect "a readers-writer lock of the C library beside one of ours" \
  "$(grep 'rwlock:' "$scratch/out" | sort | uniq | sed 's/.*: //' | sort -u | wc -l)" 2
expect "its words are the C library's" "$(grep '^rwlock' "$scratch/out")" \
  "$("$program" | grep '^rwlock')"

# Opened by name, a library is seen when one of its objects is: its exported names count.
export LD_LIBRARY_PATH=$scratch
library=libplug.so
ruled $'symbol library_lock ticket\ninit library_make ticket' "library's, library-made"
offset=$(nm "$scratch/libplug.so" | awk '$3 == "hidden" { print $1 }')
ruled "symbol libplug.so:+0x$offset ticket" "library's hidden"
unset LD_LIBRARY_PATH
library=$scratch/libplug.so
# Without a symbol table the dynamic one names what it can, and an address in the module the rest.
offset=$(nm "$program" | awk '$3 == "local" { print $1 }')
strip -o "$scratch/stripped" "$program"
program=$scratch/stripped
ruled $'symbol local ticket' ""
ruled "symbol stripped:+0x$offset ticket" "local"
program=$scratch/objects

objects tas RELOCK_VERBOSE=1 <<<$'symbol global ticket wait=adaptive\nsymbol nosuch tas' >/dev/null
expect_match "RELOCK_VERBOSE says what was found and applied" "$(grep rules: "$scratch/err")" \
  "relock: rules: $scratch/rules: 2 rules, 1 places found*
relock: rules: line 1 (symbol global): first mutex served by ticket, wait adaptive"

# ---- wrong files -----------------------------------------------------------------------------
expect "the rest of a file stands" \
  "$(objects tas <<<$'symbol global nosuch\nsymbol local ticket\nsymbols recursive ticket')" "local"
expect_match "each wrong line is named" "$(cat "$scratch/err")" \
  "relock: warning: $scratch/rules:1: no such lock*: line ignored
relock: warning: $scratch/rules:3: a rule begins with *: line ignored"
{ for _ in $(seq 40); do echo nonsense; done; echo "symbol local ticket"; } |
  objects tas >"$scratch/changed"
expect "many wrong lines are not all named" "$(cat "$scratch/changed"):$(wc -l <"$scratch/err")" "local:11"
try env RELOCK_RULES=/nonexistent LD_PRELOAD="$PRELOAD" /bin/true
expect_match "no file: one line, and the program runs" "$code:$(lines_in "$err"):$err" \
  "0:1:relock: warning: RELOCK_RULES=/nonexistent: No such file or directory: no rules"
head -c 300 "$PRELOAD" >"$scratch/binary"
try env RELOCK_RULES="$scratch/binary" LD_PRELOAD="$PRELOAD" /bin/true
expect_match "a file of something else" "$code:$(lines_in "$err"):$err" "0:1:*not a text file: no rules"

printf 'symbol a tas\nsymbol b\n' >"$scratch/wrong"
try "$RELOCK" run --rules "$scratch/wrong" -- touch "$scratch/started"
expect_match "relock run refuses a wrong line" \
  "$code:$(lines_in "$err"):$(ls "$scratch/started" 2>/dev/null):$err" \
  "2:1::relock: error: RELOCK_RULES=$scratch/wrong:2: a rule needs *: nothing was started"
try "$RELOCK" run --rules "$scratch/nosuch" -- touch "$scratch/started"
expect_match "relock run refuses a missing file" "$code:$err" \
  "2:relock: error: RELOCK_RULES=*: No such file or directory: nothing was started"
(cd "$scratch" && echo 'symbol a tas' >right && "$RELOCK" run --rules right -- \
  sh -c 'echo $RELOCK_RULES') >"$scratch/out" 2>&1
expect "relock run makes the path absolute" "$(tail -n 1 "$scratch/out")" "$scratch/right"

# ---- everything else stays as it is ----------------------------------------------------------
if [ -z "${SLOW:-}" ]; then  # test-slow runs all of them
  CONFIGS=tas-ruled tests/conformance/run.sh "$BUILD" mutex_fields mutex_progress \
    cond_mutex_kinds cond_ownership fork_held timed_mutex host_seccomp host_dlclose spin_exclusion
  [ $? = 0 ] || status=1
fi
exit $status
