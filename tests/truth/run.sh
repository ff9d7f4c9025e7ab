#!/bin/bash
# Programs whose contention is known, recorded on glibc's locks and on three others: the profile must
# name the right lock, both stacks, and times and shares within the bounds stated here.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
root=$PWD
BUILD=$(readlink -f "${BUILD:-build}")
python=$(PATH=/usr/bin:$PATH command -v python3)  # a version manager's script takes a second to start
scratch=$(mktemp -d "${TMPDIR:-/tmp}/relock-truth.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
gcc -O2 -g -D_GNU_SOURCE tests/truth/scenarios.c -o "$scratch/truth" -pthread ||
  { echo "not ok the scenarios compile - they do not"; exit 1; }

# Records a scenario; $truth is what the program knows, $seen what the profile says.
record() { # LOCK SCENARIO [NAME=VALUE...]
  lock=$1 scenario=$2; shift 2
  rm -rf "$scratch/out"; mkdir "$scratch/out"
  truth=$(env LD_PRELOAD="$BUILD/librelock.so" RELOCK_PROFILE=1 RELOCK_PROFILE_DIR="$scratch/out" \
    RELOCK_LOG_FILE=/dev/null RELOCK_LOCK="$lock" "$@" "$scratch/truth" "$scenario" 2>"$scratch/err")
  seen=$("$python" tests/truth/decode.py "$scratch"/out/relock.truth.*.prof 2>>"$scratch/err")
  if [ -s "$scratch/err" ] || [ -z "$seen" ]; then
    echo "not ok $lock, $scenario: recorded - $(head -n 1 "$scratch/err")"
    return 1
  fi
}
known() { awk -v n="$1" -v k="$2" '$1 == n && $2 == k { print $3 }' <<<"$truth"; }
field() { # LINE-PATTERN KEY: the number after KEY in the first line that fits
  grep -m 1 -E "$1" <<<"$seen" | awk -v k="$2" '{ for (i = 1; i < NF; i++) if ($i == k) { print $(i + 1); exit } }'
}
# The sum of the shares of pairs that fit.
share() { grep -E "^pair $1" <<<"$seen" | awk '{ sum += $5 } END { printf "%.4f\n", sum }'; }
near() { # NAME GOT WANTED PERCENT
  if awk -v g="${2:-x}" -v w="${3:-x}" -v p="$4" \
    'BEGIN { exit !(g != "x" && w != "x" && g >= w * (1 - p / 100) && g <= w * (1 + p / 100)) }'; then
    echo "ok $lock, $scenario: $1"
  else
    sed 's/^/  /' <<<"$seen" | cut -c1-180 | head -n 20; sed 's/^/  truth: /' <<<"$truth"
    echo "not ok $lock, $scenario: $1 - got ${2:-nothing}, wanted ${3:-?} within $4 %"
  fi
}
same() { # NAME GOT WANTED
  if [ "$2" = "$3" ]; then
    echo "ok $lock, $scenario: $1"
  else
    sed 's/^/  /' <<<"$seen" | cut -c1-180 | head -n 20
    echo "not ok $lock, $scenario: $1 - got '$2', wanted '$3'"
  fi
}
first_lock() { awk '$1 == "lock" { print $2, $3; exit }' <<<"$seen"; }

hot() {
  record "$1" hot || return
  same "the hot lock comes first" "$(first_lock)" "mutex hot_lock"
  near "its wait time" "$(field '^lock mutex hot_lock' wait_ns)" "$(known hot wait_ns)" 5
  near "its longest wait" "$(field '^lock mutex hot_lock' longest_ns)" "$(known hot longest_ns)" 5
  same "its acquisitions" "$(field '^lock mutex hot_lock' acquisitions)" "$(known hot acquisitions)"
  near "its mean hold" "$(field '^lock mutex hot_lock' hold_mean_ns)" "$(known hot hold_ns)" 5
  near "all of it in use_hot because of use_hot" \
    "$(share 'mutex hot_lock .* waiter [^ ]*use_hot,.* blocker [^ ]*use_hot,')" 1 5
}
split() {
  record "$1" split || return
  local all holder; all=$(($(known wait_in_a wait_ns) + $(known wait_in_b wait_ns)))
  near "wait time" "$(field '^lock mutex hot_lock' wait_ns)" "$all" 5
  near "70 % in one stack" "$(share 'mutex hot_lock .* waiter [^ ]*wait_in_a,')" \
    "$(awk "BEGIN { print $(known wait_in_a wait_ns) / $all }")" 5
  near "30 % in the other" "$(share 'mutex hot_lock .* waiter [^ ]*wait_in_b,')" \
    "$(awk "BEGIN { print $(known wait_in_b wait_ns) / $all }")" 5
  for holder in hold_in_c hold_in_d; do
    near "blocked by $holder" "$(share "mutex hot_lock .* blocker [^ ]*$holder,")" \
      "$(awk "BEGIN { print $(known $holder wait_ns) / $all }")" 5
  done
}
blocker() {
  record "$1" blocker || return
  near "who waits" "$(share 'mutex hot_lock .* waiter [^ ]*serve_request,')" 1 1
  near "because of somebody who never waits" \
    "$(share 'mutex hot_lock .* blocker [^ ]*audit_everything,')" 1 5
  near "wait time" "$(field '^lock mutex hot_lock' wait_ns)" "$(known serve_request wait_ns)" 5
}
convoy() {
  record "$1" convoy || return
  near "wait time" "$(field '^lock mutex hot_lock' wait_ns)" "$(known join_convoy wait_ns)" 5
  same "acquisitions" "$(field '^lock mutex hot_lock' acquisitions)" "$(known hot acquisitions)"
  near "thread time" "$(field '^header' thread_ns)" "$(known all thread_ns)" 15
  near "hand-offs within one node" "$(field '^lock mutex hot_lock' within)" \
    "$(field '^lock mutex hot_lock' waits)" 0
  near "blockers known" "$(share 'mutex hot_lock .* blocker [^ ]*join_convoy,')" 1 5
}
storm() {
  record "$1" storm || return
  same "the writer's side comes first" "$(first_lock)" "write table_lock"
  near "the writer's wait time" "$(field '^lock write table_lock' wait_ns)" \
    "$(known change_table wait_ns)" 5
  near "because of readers" "$(share 'write table_lock .* waiter [^ ]*change_table,.* blocker [^ ]*read_table,')" 1 5
  same "writes" "$(field '^lock write table_lock' acquisitions)" "$(known writes acquisitions)"
}
pingpong() {
  record "$1" pingpong || return
  same "condition variables are apart" "$(first_lock)" "cond turn_changed"
  near "wait time" "$(field '^lock cond turn_changed' wait_ns)" "$(known wait_for_turn wait_ns)" 5
  near "waits" "$(field '^lock cond turn_changed' waits)" "$(known wait_for_turn waits)" 0
  near "in one function" "$(share 'cond turn_changed .* waiter [^ ]*wait_for_turn,')" 1 1
  near "woken by the function that signals" \
    "$(share 'cond turn_changed .* waiter [^ ]*wait_for_turn,.* blocker [^ ]*give_turn,')" 1 2
}
crowd() {
  record "$1" crowd || return
  near "wait time" "$(field '^lock cond turn_changed' wait_ns)" "$(known wait_at_gate wait_ns)" 5
  near "woken by the function that broadcasts" \
    "$(share 'cond turn_changed .* waiter [^ ]*wait_at_gate,.* blocker [^ ]*open_gate,')" 1 2
}
# Far more waits than stacks may be taken at the default rate: what is scaled back is right.
many() {
  local all waited attempt enough
  # A machine that is busy with something else lets threads meet too seldom.
  for attempt in 1 2 3 4; do
    record "$1" many || return
    enough=$([ "$(field '^header' samples)" -gt 2500 ] && [ "$(field '^header' undrawn)" -gt 1000 ] && echo yes)
    [ -z "$enough" ] || break
  done
  all=$(($(known wait_often wait_ns) + $(known wait_seldom wait_ns)))
  same "some waits were drawn, not all" "$enough" yes
  for waited in wait_often wait_seldom; do
    near "share of $waited" "$(share "mutex hot_lock .* waiter [^ ]*$waited,")" \
      "$(awk "BEGIN { print $(known "$waited" wait_ns) / $all }")" 5
  done
}

for lock in ${LOCKS:-glibc tas ticket cna}; do
  for scenario in ${SCENARIOS:-hot split blocker convoy storm pingpong crowd}; do $scenario "$lock"; done
done
# With glibc's lock two CPUs do not wait often enough for this.
if [ -z "${SCENARIOS:-}" ]; then
  for lock in tas ticket ${SLOW:+cna}; do many "$lock"; done
fi

# A program of Debian's, built without frame pointers and stripped, with the symbols of libc6-dbg:
# every stack leads from the lock call down to where its thread began.
whole_stacks() {
  lock=tas scenario=sysbench
  command -v sysbench >/dev/null || { echo "  sysbench is not installed: stacks not looked at"; return; }
  rm -rf "$scratch/out"; mkdir "$scratch/out"
  env LD_PRELOAD="$BUILD/librelock.so" RELOCK_PROFILE=1 RELOCK_PROFILE_DIR="$scratch/out" \
    RELOCK_LOG_FILE=/dev/null RELOCK_LOCK=$lock sysbench threads --threads=6 --thread-locks=1 \
    --time=1 run >"$scratch/sysbench" 2>&1
  seen=$("$BUILD/relock" report --format folded "$scratch"/out/relock.sysbench.*.prof 2>&1)
  truth=
  local all; all=$(awk '{ sum += $NF } END { printf "%.0f", sum }' <<<"$seen")
  near "stacks are whole, from the lock call to the thread's start" \
    "$(grep -E '^(_*clone3?;)?start_thread;[^;]+|^_start;.*main' <<<"$seen" | awk '{ sum += $NF } END { printf "%.0f", sum }')" \
    "${all:-1}" 1
}
[ -n "${SCENARIOS:-}" ] || whole_stacks
