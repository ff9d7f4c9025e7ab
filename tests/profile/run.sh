#!/bin/bash
# The recorder by itself: a driver calls it as the interposer does, with known waits, and the
# report must show exactly those. Then what it must not do to the process it lives in.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
root=$PWD
BUILD=$(readlink -f "${BUILD:-build}")
plugin=$BUILD/librelock-profile.so relock=$BUILD/relock
scratch=$(mktemp -d "${TMPDIR:-/tmp}/relock-profile.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
export DIR=$scratch/out
mkdir "$DIR"

expect() { # NAME GOT WANTED
  if [ "$2" = "$3" ]; then
    echo "ok $1"
  else
    printf '  wanted: %s\n  got:    %s\n' "${3//$'\n'/$'\n'          }" "${2//$'\n'/$'\n'          }"
    echo "not ok $1 - got '$(head -n 1 <<<"$2" | cut -c1-80)'"
  fi
}
expect_in() { # NAME TEXT LINE...: each LINE, a fixed string, is somewhere in TEXT
  local name=$1 text=$2 wanted; shift 2
  for wanted in "$@"; do
    if ! grep -qF -- "$wanted" <<<"$text"; then
      sed 's/^/  /' <<<"$text" | head -n 60
      echo "not ok $name - no '$wanted'"
      return
    fi
  done
  echo "ok $name"
}
squeezed() { tr -s ' ' <<<"$1"; }

# Runs a scenario in a clean place; sets $out, $status, and $profiles.
drive() { # SCENARIO [COMMAND...]: the command runs the driver
  local scenario=$1; shift
  rm -rf "$DIR"; mkdir "$DIR"
  out=$("$@" "$scratch/driver" "$plugin" "$scenario" 2>"$scratch/stderr")
  status=$?
  profiles=("$DIR"/relock.driver.*.prof)
}
report() { report_out=$("$relock" report "$@" 2>"$scratch/report-stderr"); report_status=$?; }

build() {
  local common="-g -D_GNU_SOURCE -I$root" folder
  for folder in "$root"/.deps/usr/include "$root"/.deps/usr/include/*-linux-gnu; do  # make deps
    [ -d "$folder" ] && common+=" -isystem $folder -L${folder/include/lib}"
  done
  g++ -std=c++20 -O2 -fomit-frame-pointer $common tests/profile/driver.cpp -o "$scratch/driver" -pthread &&
    g++ -std=c++20 -O1 $common tests/profile/marks.cpp -o "$scratch/marks" -pthread &&
    g++ -std=c++20 -O1 $common -DSPDLOG_FMT_EXTERNAL -DFMT_HEADER_ONLY tests/profile/guest.cpp \
      -rdynamic -o "$scratch/guest" -lunwind -pthread || return 1
  local one
  for one in one two; do
    printf 'void in_library_%s(void (*f)(int)) { f(64); __asm__ volatile(""); }\n%s' $one \
      "void call_back(void (*f)(int)) { in_library_$one(f); __asm__ volatile(\"\"); }" >"$scratch/$one.c"
    gcc -O1 -g -fPIC -shared "$scratch/$one.c" -o "$scratch/lib$one.so" || return 1
  done
}
build || { echo "not ok the driver compiles - it does not"; exit 1; }

# ---- what is recorded -------------------------------------------------------------------------

drive known
expect "known waits: errno is kept and no descriptor is left" "$out" $'descriptors left open 0\nerrno 12345'
report "${profiles[0]}"
text=$(squeezed "$report_out")
expect "known waits: the report succeeds" "$report_status" 0
expect_in "known waits: counts and times of each lock" "$text" \
  " 1 70.0 ms 95.2% 1.75 ms 2.00 ms 40 >=400 mutex accounts_lock (driver)" \
  " 2 3.50 ms 4.8% 583 us 3.00 ms 6 >=9 mutex journal_lock (driver)" \
  "1 timed out, 1 failed trylock" "42 of 42 waits have stacks" "dropped nothing" \
  "until the program ended"
expect_in "known waits: condition variables apart" "$(sed -n '/^CONDITION/,$p' <<<"$text")" \
  " 1 7.00 ms 100.0% 7.00 ms 7.00 ms 1 cond work_ready (driver)" "woken by" audit_books
first=$(sed -n '/^1\. mutex accounts/,/^2\. mutex/p' <<<"$text")
expect_in "known waits: shares by waiting stack" "$first" \
  " 85.7% 60.0 ms, 30 samples: waits in" " 14.3% 10.0 ms, 10 samples: waits in"
shape=$(grep -oE 'waits in|because of|wait_for_account|transfer_money|print_statement|let_go|close_books|audit_books|known_waits|main' \
  <<<"$first" | tr '\n' ' ')
expect "known waits: both stacks from the call into relock outwards" "$shape" \
  "waits in wait_for_account transfer_money known_waits main because of let_go close_books known_waits main because of let_go close_books known_waits main waits in wait_for_account print_statement known_waits main because of let_go audit_books known_waits main "
expect_in "known waits: source lines" "$first" "transfer_money driver.cpp:"
expect "a report is at most 100 columns wide" "$(awk 'length > 100' <<<"$report_out")" ""
report --top 1 "${profiles[0]}"
expect_in "--top 1 shows one lock and sums up the rest" "$report_out" "in 1 more (--top 2 shows them)"

drive heap
report "${profiles[0]}"
expect_in "locks on the heap are called by where they were made" "$report_out" \
  "mutex made in open_store driver.cpp:" "heap_lock() driver.cpp:"

RATE=1000000 drive threads
report "${profiles[0]}"
text=$(squeezed "$report_out")
expect_in "eight threads: counts and sums are exact" "$text" " 1 2.40 s 100.0% 15.0 us 30.0 us 160k"
share=$(sed -n 's/^ *\([0-9]*\)\.[0-9]% .*samples: waits in/\1/p' <<<"$text" | head -n 1)
expect "eight threads: shares of stacks are near the truth (half each)" \
  "$([ "${share:-0}" -ge 50 ] && [ "$share" -le 60 ] && echo near || echo "$share")" near

# 4 s of the one and 9 s of the other, 5 s of them in one wait of 1000.
RATE=1000 drive uneven
report --format folded "${profiles[0]}"
share=$(awk '{ all += $NF } /wait_unevenly/ { uneven += $NF } END { printf "%.1f", 100 * uneven / all }' \
  <<<"$report_out")
expect "a few waits far longer than the others count for what they are (69 %)" \
  "$(awk -v s="$share" 'BEGIN { print (s > 64 && s < 74 ? "near" : s) }')" near

# Most waits are over before a stack is taken: the releaser must find the ticket by then.
rm -rf "$DIR"; mkdir "$DIR"
marks_out=$("$scratch/marks" "$plugin" 2>&1)
expect_in "a ticket is in the mark before the waiter's stack is taken" "$marks_out" \
  "marked all" "taken before the stack: yes"
expect_in "a mark that is taken is left alone, and had later" "$marks_out" \
  "second waiter: mark left alone 1, had before the sleep 1"
report "$DIR"/relock.marks.*.prof
expect "every wait has its blocker" "$(grep -c unknown <<<"$report_out")" 0

drive signal
report "${profiles[0]}"
expect_in "a wait in a signal handler on its own stack leads back into the program" "$report_out" \
  transfer_money "handler(int)" raise in_signal main
drive odd
report "${profiles[0]}"
expect_in "realigned and sized frames are passed" "$report_out" sized_frame realigned_frame odd_frames main
expect "two sizes of a frame are one stack" \
  "$(squeezed "$report_out" | grep -c '100.0% 2.00 us, 2 samples: waits in')" 1
drive jumped
report "${profiles[0]}"
expect "a function that jumped to the release is put back" \
  "$(grep -oE 'because of|jumps_away|calls_jumper|jumped\(\)' <<<"$report_out" | tr '\n' ' ')" \
  "jumps_away jumped() because of jumps_away calls_jumper jumped() "
drive deep
report "${profiles[0]}"
expect_in "a deep recursion keeps the innermost frames" "$report_out" go_down "... 54 more"
expect "a deep recursion is survived" "$status" 0
drive coroutines
report "${profiles[0]}"
expect "waits on coroutine stacks are survived" "$status" 0
expect_in "waits on coroutine stacks have their frames" "$report_out" sized_frame coroutine_body
LIBRARY_ONE=$scratch/libone.so LIBRARY_TWO=$scratch/libtwo.so drive reload
report "${profiles[0]}"
expect_in "addresses in a library that was closed keep their names" "$report_out" \
  "in_library_one  one.c:" "in_library_two  two.c:"
cp "$scratch/libtwo.so" "$scratch/libkeep.so"; gcc -shared -fPIC -O2 "$scratch/one.c" -o "$scratch/libtwo.so"
report "${profiles[0]}"
expect_in "a file that changed since gives no names, and that is said" "$report_out" \
  "no names from $scratch/libtwo.so: not the file that ran"

# ---- ends of processes --------------------------------------------------------------------------

drive kill
expect "kill -9: the process is gone" "$status" 137
report "${profiles[0]}"
text=$(squeezed "$report_out")
expect_in "kill -9: nothing recorded is lost" "$text" \
  " 1 70.0 ms 95.2% 1.75 ms 2.00 ms 40 >=400 mutex accounts_lock (driver)" \
  " 85.7% 60.0 ms, 30 samples: waits in" "1 still waiting" "then killed or still running"
drive fork
child=$(sed -n 's/^child \([0-9]*\) status 0$/\1/p' <<<"$out")
expect "fork: parent and child have a file each, a quiet grandchild none" "${#profiles[@]}" 2
report "$DIR/relock.driver.$child.prof"
expect_in "fork: the child's file has the child's waits" "$(squeezed "$report_out")" \
  " 1 4.00 ms 100.0% 4.00 ms 4.00 ms 1 >=1 mutex journal_lock (driver)" "1 of 1 waits"
for one in "${profiles[@]}"; do [[ $one == *".$child."* ]] || parent=$one; done
report "$parent"
expect_in "fork: the parent's file has the parent's" "$(squeezed "$report_out")" \
  " 2 3.50 ms 4.8% 583 us 3.00 ms 6 >=9 mutex journal_lock (driver)"
drive walking timeout 300
expect "fork: no child is stuck in the unwinder of its parent" "$(tail -n 1 <<<"$out")" "fine 200"
drive nothing
expect "no contention, no file" "$(ls -A "$DIR")" ""

# ---- the file -----------------------------------------------------------------------------------

expect_refused() { # NAME ERROR
  expect "$1: one line" "$(sed "s,$DIR,DIR,; s,driver\.[0-9]*,driver.PID," "$scratch/stderr")" \
    "relock: no profile: cannot create DIR/relock.driver.PID.prof: $2"
}
drive known
expect "a profile is for its owner alone" "$(stat -c %a "${profiles[0]}")" 600
drive known bash -c 'touch "$DIR/relock.driver.$$.prof" "$DIR/relock.driver.$$.prof.1"; exec "$@"' -
expect "a name that is taken gets a number" "$(ls "$DIR" | sed 's/driver\.[0-9]*/driver.PID/' | tail -n 1)" \
  relock.driver.PID.prof.2
drive known bash -c 'ln -s "$DIR/elsewhere" "$DIR/relock.driver.$$.prof"; exec "$@"' -
expect_refused "a link in the way" "Too many levels of symbolic links"
expect "a link in the way is not followed" "$([ -e "$DIR/elsewhere" ] && echo followed)" ""
drive known bash -c 'ulimit -f 100; exec "$@"' -
expect_refused "a limit on file sizes" "File too large"
expect "a limit on file sizes: the program goes on" "$status" 0
expect "a limit on file sizes: nothing is left behind" "$(ls "$DIR")" ""
DIR=/nowhere/at/all; rm -f "$scratch/stderr"
out=$("$scratch/driver" "$plugin" known 2>"$scratch/stderr"); status=$?
expect_refused "a missing directory" "No such file or directory"
expect "a missing directory is told at the start" "$out" "refused 2"
export DIR=$scratch/out

mounted() { # OPTIONS COMMAND...: runs it with a small file system over $DIR, in a namespace
  local options=$1; shift
  unshare -m bash -c 'mount -t tmpfs -o "$0" none "$DIR" && "$@"' "$options" "$@"
}
mkdir -p "$DIR"
if mounted size=64k true 2>/dev/null; then
  drive known mounted size=64k
  expect_refused "a full disk" "No space left on device (a twentieth, at most 1 GiB, is left free)"
  expect "a full disk: the program goes on" "$(tail -n 1 <<<"$out")" "errno 12345"
  drive known mounted ro
  expect_refused "a read-only file system" "Read-only file system"
else
  echo "  full disk and read-only file system: not tried, mounting is not permitted here"
fi

# ---- its manners ----------------------------------------------------------------------------------

drive closed
expect "descriptors closed and used again: all data whole" "$(tail -n 1 <<<"$out")" "whole 20 lowest 3"
LOG_FILE='' drive closed
expect "standard error used again: the log stays out of it" "$(tail -n 1 <<<"$out")" "whole 20 lowest 2"
cd "$scratch" || exit 2
expect "a program with its own spdlog and libunwind sees no difference" \
  "$(./guest "$plugin" 2>&1)" "$(./guest 2>&1)"
expect_in "that program's own stacks were right to begin with" "$(./guest)" "stack inner_frame outer_frame main"
expect "and it was recorded" "$(ls relock.guest.*.prof | wc -l)" 1
trace=$(LD_DEBUG=bindings ./driver "$plugin" known 2>&1 >/dev/null)
expect_in "the loader's trace shows the recorder's unwinder and runtime" "$trace" libunwind-x86_64.so.8 _Unwind_
expect "nothing of the recorder's binds _Unwind_ to libunwind" \
  "$(grep -E 'to [^ ]*libunwind[^ ]* \[0\]: .*`_Unwind_' <<<"$trace" | head -n 3)" ""
cd "$root" || exit 2
expect "one symbol is exported" "$(nm -D --defined-only "$plugin" | awk '{ print $3 }')" relock_profiler_entry
expect "no symbol is shared across the process" "$(nm "$plugin" | awk '$2 == "u"' | head -n 3)" ""
tls=$((16#$(readelf -lW "$plugin" | awk '$1 == "TLS" { sub(/0x/, "", $6); print $6 }')))
expect "thread-local data stays under 64 bytes" "$([ $tls -le 64 ] && echo yes || echo $tls)" yes
expect "the loader is never asked for it" "$(nm -D "$plugin" | grep -c __tls_get_addr)" 0

# ---- the log ----------------------------------------------------------------------------------------

LOG_FILE=$scratch/log drive known
expect_in "the log at the end has names and both stacks" "$(squeezed "$(cat "$scratch/log")")" \
  "relock: 1. mutex accounts_lock (driver)" "waited 70 ms in 40 waits" "waits in wait_for_account+" \
  "because of let_go+" "relock: 2. condition variable work_ready (driver)" \
  "(anonymous namespace)::known_waits()+"
LOG_FILE='' drive known
expect_in "without a file the log goes to standard error" "$(cat "$scratch/stderr")" "relock: hottest locks of driver["
rm -f "$scratch/log"
LOG_FILE=$scratch/log LOG_INTERVAL=1 drive ticking
expect "with an interval one thread logs each time" "$(grep -c 'hottest locks' "$scratch/log")" 2

# ---- hostile files --------------------------------------------------------------------------------

drive known
profile=${profiles[0]}
refused() { # NAME FILE
  timeout 20 "$relock" report "$2" >"$scratch/stdout" 2>"$scratch/stderr"
  expect "report of $1: status 2, one line, no output" \
    "$? $(wc -l <"$scratch/stderr") $(wc -c <"$scratch/stdout")" "2 1 0"
}
for length in 0 7 8 100 4095 4096 100000 $(($(stat -c %s "$profile") - 1)); do
  head -c "$length" "$profile" >"$scratch/cut"
  refused "a profile cut to $length bytes" "$scratch/cut"
done
mkfifo "$scratch/pipe"
refused "a pipe" "$scratch/pipe"
refused "a directory" "$scratch"
refused "a missing file" "$scratch/missing"
refused "a program" "$relock"
for at in 8 16 64 80 4096; do
  cp "$profile" "$scratch/wrong"
  printf '\377\377\377\377\377\377\377\377' | dd of="$scratch/wrong" bs=1 seek=$at conv=notrunc status=none
  timeout 20 "$relock" report "$scratch/wrong" >/dev/null 2>"$scratch/stderr"
  status=$?
  expect "report of a profile with rubbish at $at: refused or printed" \
    "$([ $status = 0 ] || [ $status = 2 ] && echo fine || echo $status)" fine
done
