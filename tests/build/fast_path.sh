#!/bin/bash
# fast_path.sh - what an uncontended lock and unlock execute, instruction by instruction: no call,
# one atomic to lock, at most one to unlock, no system call, for every lock of the list.
# fast_path.sh --listing - prints them, with counts, for the default lock (make disasm).
. "$(dirname "$0")/common.sh"

gcc -O2 -D_GNU_SOURCE tests/build/single_step.c -o "$scratch/step" -pthread -ldl ||
  { echo "not ok fast path - single_step.c does not compile"; exit 1; }
objdump -d --no-show-raw-insn "$PRELOAD" >"$scratch/code"

# "CALL OFFSET INSTRUCTION" in the order of execution.
executed() {
  env LD_PRELOAD="$PRELOAD" "$@" "$scratch/step" >"$scratch/steps" || return
  grep -v ' [^ ]*librelock\.so ' "$scratch/steps" | awk '{ print $1, "left-for", $2 }'
  awk 'FNR == NR { if (match($0, /^ +[0-9a-f]+:\t/)) {
         at = $1; sub(/:/, "", at); text = $0; sub(/^[^\t]*\t/, "", text); sub(/ *#.*/, "", text)
         instruction[at] = text }; next }
       $2 ~ /librelock\.so$/ { print $1, $3, ($3 in instruction ? instruction[$3] : "unknown") }' \
    "$scratch/code" "$scratch/steps"
}
counts() { # CALL: "instructions N atomics N calls N syscalls N"
  awk -v call="$1" '$1 == call {
      n++
      if ($3 == "lock" || ($3 == "xchg" && /\(/)) locked++
      if ($3 ~ /^call/) calls++
      if ($3 == "syscall" || $2 == "left-for" || $3 == "unknown") system_calls++ }
    END { print "instructions", n + 0, "atomics", locked + 0, "calls", calls + 0, "syscalls", system_calls + 0 }' \
    "$scratch/executed"
}

calls="pthread_mutex_lock pthread_mutex_unlock pthread_spin_lock pthread_spin_unlock"
rwlock_calls="pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock"
if [ "${1:-}" = --listing ]; then
  executed >"$scratch/executed"
  for call in $calls $rwlock_calls; do
    echo "$call: $(counts "$call")"
    awk -v call="$call" '$1 == call { at = $2; sub(/^[^ ]* [^ ]* /, ""); printf "  %6s  %s\n", at, $0 }' \
      "$scratch/executed"
  done
  exit 0
fi

"$scratch/step" >/dev/null
[ $? = 77 ] && { echo "ok fast path - not looked at: no single steps on this machine"; exit 0; }
judge() { # LOCK CALL
  read -r _ n _ atomics _ inner _ system_calls < <(counts "$2")
  case $2 in *lock) least=1 ;; esac
  case $2 in *unlock) least=0 ;; esac
  if [ "$n" -ge 3 ] && [ "$inner" = 0 ] && [ "$system_calls" = 0 ] &&
    [ "$atomics" -ge "$least" ] && [ "$atomics" -le 1 ]; then
    echo "ok $2 with $1: no call, $atomics atomic(s), no system call"
  else
    echo "not ok $2 with $1 - $(counts "$2")"
  fi
}
for lock in $(lock_names | grep -vx glibc); do
  executed RELOCK_LOCK="$lock" >"$scratch/executed"
  for call in $calls; do judge "$lock" "$call"; done
done
executed RELOCK_RWLOCK=rwsem >"$scratch/executed"
for call in $rwlock_calls; do judge rwsem "$call"; done
