#!/bin/bash
# Every way a process can end keeps its profile, and so does every way it can leave its surroundings;
# where no profile can be made, one line says so and the program runs on.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
BUILD=$(readlink -f "${BUILD:-build}")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/relock-ends.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/empty"
printf '%s\n' 'void meet_in_library(void (*f)(int), int n) { f(n); __asm__ volatile(""); }' >"$scratch/meet.c"
gcc -O1 -g -fPIC -shared "$scratch/meet.c" -o "$scratch/libmeet.so" &&
  gcc -O2 -g -D_GNU_SOURCE tests/ends/ends.c -o "$scratch/ends" -pthread ||
  { echo "not ok the program compiles - it does not"; exit 1; }
export ENDS_LIBRARY=$scratch/libmeet.so ENDS_EMPTY=$scratch/empty

expect() { # NAME GOT WANTED
  if [ "$2" = "$3" ]; then
    echo "ok $1"
  else
    printf '  wanted: %s\n  got:    %s\n' "$3" "$2"
    echo "not ok $1 - got '$(head -n 1 <<<"$2" | cut -c1-80)'"
  fi
}
# Runs a mode in a clean folder; sets $status, $said and $profiles.
run() { # MODE [NAME=VALUE...]
  local mode=$1; shift
  out=$scratch/out
  rm -rf "$out"; mkdir "$out"; chmod 777 "$out"
  (cd "$out" && env LD_PRELOAD="$BUILD/librelock.so" RELOCK_PROFILE=1 RELOCK_LOG_FILE=/dev/null "$@" \
    "$scratch/ends" "$mode") 2>"$scratch/said" >/dev/null
  status=$?
  said=$(sed "s,$out,DIR,g; s,ends\.[0-9]*,ends.PID,g" "$scratch/said")
  profiles=("$out"/relock.*.prof*)
}
decoded() { python3 tests/truth/decode.py "$1" 2>&1; }
waits() { decoded "$1" | awk '$1 == "lock" && $3 == "books_lock" { print $5; exit }'; }
whole() { decoded "$1" | grep -c '^pair mutex books_lock .* waiter .*read_books,.* blocker .*write_books,'; }
kept() { # NAME STATUS: the ten waits and both stacks
  expect "$1: its status is its own" "$status" "$2"
  expect "$1: nothing is lost" "${#profiles[@]} $(waits "${profiles[0]}") $(whole "${profiles[0]}")" "1 10 1"
  expect "$1: nothing is said" "$said" ""
}

for lock in ${LOCKS:-glibc tas}; do
  export RELOCK_LOCK=$lock
  while read -r mode wanted; do
    run "$mode"
    said=$(grep -v -e 'Segmentation fault' -e Aborted -e Killed <<<"$said")
    kept "$lock, $mode" "$wanted"
  done <<<'return 0
exit 0
_exit 0
quick_exit 0
abort 134
crash 139
kill 137
thread 0
close 0
dlclose 0
prctl 0
seccomp 0
filter-exit 0'
  run waiting
  expect "$lock, killed while a thread waits: nothing is lost" "$(waits "${profiles[0]}")" 10

  run fork
  expect "$lock, fork: parent and child have a file each" \
    "$(for one in "${profiles[@]}"; do waits "$one"; done | sort -n | tr '\n' ' ')" "4 10 "
  run exec
  expect "$lock, exec: the program before and the one after have a file each" \
    "$(for one in "${profiles[@]}"; do waits "$one"; done | tr '\n' ' ')$(ls "$out" | sed 's/\.[0-9]*\.prof//' | tr '\n' ' ')" \
    "10 10 relock.again relock.ends "
done

run dlclose
expect "a library that was closed keeps its names" \
  "$(decoded "${profiles[0]}" | grep -c 'waiter .*,meet_in_library,')" 1
if [ "$(id -u)" = 0 ]; then
  run chroot RELOCK_PROFILE_DIR="$scratch/out"
  kept "a daemon in a chroot and of another user" 0
else
  echo "  chroot: not tried, needs root"
fi
run tight
expect "a filter that refuses rt_sigprocmask: the program lives" "$status" 0
expect "a filter that refuses rt_sigprocmask: counts go on" "$(waits "${profiles[0]}")" 10
expect "a filter that refuses rt_sigprocmask: one line says how to switch the stacks off" \
  "$(wc -l <"$scratch/said") $(grep -c 'RELOCK_PROFILE_STACKS=0' "$scratch/said")" "1 1"
run tight RELOCK_PROFILE_STACKS=0
expect "stacks switched off: nothing is said, counts are kept" "$status $said $(waits "${profiles[0]}")" "0  10"
run idle
expect "threads that never wait leave no file" "$(ls "$out")" ""

# ---- no profile can be made ------------------------------------------------------------------------

refused() { # NAME REASON
  expect "$1: the program runs on" "$status" 0
  expect "$1: one line" "$said" "relock: no profile: cannot create DIR/relock.ends.PID.prof: $2"
}
run small
refused "a limit on file sizes" "File too large"
run return RELOCK_PROFILE_DIR=/nowhere/at/all
expect "a missing folder: one line" "$status $(wc -l <<<"$said") ${said##*: }" "0 1 No such file or directory"
if unshare -m true 2>/dev/null; then
  mounted() { # OPTIONS
    rm -rf "$scratch/out"; mkdir -p "$scratch/out"; out=$scratch/out
    unshare -m bash -c 'mount -t tmpfs -o "$0" none "$1" && cd "$1" && shift 1 && "$@"' "$1" "$out" \
      env LD_PRELOAD="$BUILD/librelock.so" RELOCK_PROFILE=1 RELOCK_LOG_FILE=/dev/null "$scratch/ends" return \
      2>"$scratch/said"
    status=$?
    said=$(sed "s,$out,DIR,g; s,ends\.[0-9]*,ends.PID,g" "$scratch/said")
  }
  mounted size=64k
  refused "a full disk" "No space left on device"
  mounted ro
  refused "a read-only folder" "Read-only file system"
else
  echo "  full disk and read-only folder: not tried, mounting is not permitted here"
fi
