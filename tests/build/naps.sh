#!/bin/bash
# The variables about naps at work: what a waiter for a held spinlock does meanwhile (naps.c).
. "$(dirname "$0")/common.sh"
gcc -O1 -D_GNU_SOURCE tests/build/naps.c -o "$scratch/naps" -pthread ||
  { echo "not ok naps - naps.c does not compile"; exit 1; }
waiter() { # VARIABLE...: sets sleeps, cpu_ms
  read -r sleeps cpu_ms < <(env LD_PRELOAD="$PRELOAD" RELOCK_SPIN=ticket "$@" "$scratch/naps")
}
more() { # NAME LARGE SMALL: LARGE is several times SMALL
  if [ "$2" -gt $((4 * $3 + 4)) ]; then echo "ok $1"; else echo "not ok $1 - $2 against $3"; fi
}
waiter RELOCK_NAP_US=20; short=$sleeps
waiter RELOCK_NAP_US=40000; long=$sleeps
more "RELOCK_NAP_US: a waiter sleeps the more often the shorter its naps" "$short" "$long"
waiter RELOCK_SPIN_BEFORE_NAP_US=1000000; pausing=$cpu_ms
waiter RELOCK_SPIN_BEFORE_NAP_US=0 RELOCK_NAP_US=4000; napping=$cpu_ms
if [ "$(nproc)" = 1 ]; then
  echo "  one CPU: nobody pauses for an owner that cannot run"
else
  more "RELOCK_SPIN_BEFORE_NAP_US: a waiter pauses for so long" "$pausing" "$napping"
fi
