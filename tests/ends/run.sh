#!/bin/bash
# Every way a process can end keeps its profile, and so does every way it can leave its surroundings;
# where no profile can be made, one line says so and the program runs on.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
BUILD=$(readlink -f "${BUILD:-build}")
python=$(PATH=/usr/bin:$PATH command -v python3)  # a version manager's script takes a second to start
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
# Runs a mode in a clean folder; sets $status, $said, $profiles and, of the first one, $decoded.
run() { # MODE [NAME=VALUE...]
  local mode=$1; shift
  out=$(mktemp -d "$scratch/out.XXXXXX"); chmod 777 "$out"
  (cd "$out" && env LD_PRELOAD="$BUILD/librelock.so" RELOCK_PROFILE=1 RELOCK_LOG_FILE=/dev/null "$@" \
    "$scratch/ends" "$mode") 2>"$out.said" >/dev/null
  status=$?
  look
}
look() {
  said=$(sed "s,$out,DIR,g; s,ends\.[0-9]*,ends.PID,g" "$out.said")
  profiles=("$out"/relock.*.prof*)
  decoded=$("$python" tests/truth/decode.py "${profiles[0]}" 2>&1)
}
waits() { awk '$1 == "lock" && $3 == "books_lock" { print $5; exit }' <<<"$1"; }
whole() { grep -c '^pair mutex books_lock .* waiter .*read_books,.* blocker .*write_books,' <<<"$1"; }
waits_of_all() { for one in "${profiles[@]}"; do waits "$("$python" tests/truth/decode.py "$one" 2>&1)"; done; }
kept() { # NAME STATUS: the ten waits and both stacks
  expect "$1: its status is its own" "$status" "$2"
  expect "$1: nothing is lost" "${#profiles[@]} $(waits "$decoded") $(whole "$decoded")" "1 10 1"
  expect "$1: nothing is said" "$said" ""
}

one_end() { # MODE STATUS
  run "$1"
  said=$(grep -v -e 'Segmentation fault' -e Aborted -e Killed <<<"$said")
  kept "$RELOCK_LOCK, $1" "$2"
}
one_of_many() { # MODE: more processes than one
  run "$1"
  case $1 in
    waiting) expect "$RELOCK_LOCK, killed while a thread waits: nothing is lost" "$(waits "$decoded")" 10 ;;
    fork)
      expect "$RELOCK_LOCK, fork: parent and child have a file each" \
        "$(waits_of_all | sort -n | tr '\n' ' ')" "4 10 " ;;
    exec)
      expect "$RELOCK_LOCK, exec: the program before and the one after have a file each" \
        "$(waits_of_all | tr '\n' ' ')$(ls "$out" | sed 's/\.[0-9]*\.prof//' | tr '\n' ' ')" \
        "10 10 relock.again relock.ends " ;;
  esac
}
# Some at a time, since no time is measured; what each says comes in one piece.
at_once() { # COMMAND...
  while [ "$(jobs -rp | wc -l)" -ge 4 ]; do wait -n; done
  { said_by_it=$("$@" 2>&1); printf '%s\n' "$said_by_it"; } &
}
for lock in ${LOCKS:-glibc tas}; do
  export RELOCK_LOCK=$lock
  while read -r mode wanted; do at_once one_end "$mode" "$wanted"; done <<<'return 0
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
filter-exit 0
filter-fork 0'
  for mode in waiting fork exec; do at_once one_of_many "$mode"; done
done
wait

run dlclose
expect "a library that was closed keeps its names" \
  "$(grep -c 'waiter .*,meet_in_library,' <<<"$decoded")" 1
if [ "$(id -u)" = 0 ]; then
  mkdir "$scratch/outside"; chmod 777 "$scratch/outside"
  run chroot RELOCK_PROFILE_DIR="$scratch/outside"
  profiles=("$scratch"/outside/relock.*.prof*)
  decoded=$("$python" tests/truth/decode.py "${profiles[0]}" 2>&1)
  kept "a daemon in a chroot and of another user" 0
else
  echo "  chroot: not tried, needs root"
fi
run tight
expect "a filter that refuses rt_sigprocmask: the program lives" "$status" 0
expect "a filter that refuses rt_sigprocmask: counts go on" "$(waits "$decoded")" 10
expect "a filter that refuses rt_sigprocmask: one line says how to switch the stacks off" \
  "$(wc -l <"$out.said") $(grep -c 'RELOCK_PROFILE_STACKS=0' "$out.said")" "1 1"
run tight RELOCK_PROFILE_STACKS=0
expect "stacks switched off: nothing is said, counts are kept" "$status $said $(waits "$decoded")" "0  10"
for mode in idle idle-_exit; do
  run "$mode"
  expect "threads that never wait leave no file: $mode" "$(ls "$out")" ""
done
run vfork
expect "a child of vfork leaves its parent's profile open" "$status ${#profiles[@]} $(waits "$decoded")" "0 1 10"

# ---- what stays on the disk ------------------------------------------------------------------------

largest() { du -k "${profiles[@]}" | sort -n | tail -n 1 | cut -f1; } # KiB of blocks
run children
expect "children that fail a trylock have a file each" "$status ${#profiles[@]}" "0 20"
expect "a closed profile keeps only the blocks that say something" \
  "$([ "$(largest)" -le 128 ] && echo small || largest)" small
expect "a closed profile can be read" \
  "$("$BUILD/relock" report --format json "${profiles[@]}" 2>&1 | awk -F'[:,]' '/"try_failures"/ { n += $2 } END { print n }')" 20
run return
expect "a profile with stacks is closed as well" \
  "$([ "$(largest)" -le 512 ] && echo small || largest) $(whole "$decoded")" "small 1"

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
    out=$(mktemp -d "$scratch/out.XXXXXX")
    unshare -m bash -c 'mount -t tmpfs -o "$0" none "$1" && cd "$1" && shift 1 && "$@"' "$1" "$out" \
      env LD_PRELOAD="$BUILD/librelock.so" RELOCK_PROFILE=1 RELOCK_LOG_FILE=/dev/null "$scratch/ends" return \
      2>"$out.said"
    status=$?
    look
  }
  mounted size=64k
  no_space='No space left on device (a twentieth, at most 1 GiB, is left free)'
  refused "a full disk" "$no_space"
  mounted size=10000k
  refused "a disk that the profile would fill" "$no_space"
  mounted ro
  refused "a read-only folder" "Read-only file system"
else
  echo "  full disk and read-only folder: not tried, mounting is not permitted here"
fi
