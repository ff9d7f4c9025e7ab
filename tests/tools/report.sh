#!/bin/bash
# relock report and relock diff, on profiles of small programs whose waits are known: every format,
# names and lines, binaries from elsewhere, bad files.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"
profiles=$scratch/profiles

# Two threads hold a lock for a time and wait for each other in named functions. A class with
# inlined methods stands around it, and one symbol carries a name as Rust writes it.
mkdir -p "$scratch/src" "$scratch/bin"
cat >"$scratch/src/bank.cpp" <<'EOC'
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include <mutex>
static std::mutex accounts_lock;
static void spend(long us) {
  timespec end, now;
  clock_gettime(CLOCK_MONOTONIC, &end);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - end.tv_sec) * 1000000 + (now.tv_nsec - end.tv_nsec) / 1000 < us);
}
namespace bank {
struct Guard {
  __attribute__((always_inline)) Guard() { accounts_lock.lock(); }
  __attribute__((always_inline)) ~Guard() { accounts_lock.unlock(); }
};
__attribute__((noinline)) void transfer(int us) {
  Guard guard;  // transfer-line
  spend(us);
}
}  // namespace bank
extern "C" __attribute__((noinline)) void rusty(int us) __asm__("_RNvNtCs1234_5store5cache3get");
void rusty(int us) {
  std::lock_guard<std::mutex> guard(accounts_lock);
  spend(us);
}
static void* teller(void*) {
  for (int i = 0; i < 60; i++) {
    bank::transfer(1500);
    usleep(700);
  }
  return nullptr;
}
static void* auditor(void*) {
  for (int i = 0; i < 60; i++) {
    rusty(1500);
    usleep(700);
  }
  return nullptr;
}
int main() {
  pthread_t threads[2];
  pthread_create(&threads[0], nullptr, teller, nullptr);
  pthread_create(&threads[1], nullptr, auditor, nullptr);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}
EOC
line_of() { grep -n "$1" "$scratch/src/bank.cpp" | cut -d: -f1; }
build_bank() { # COMPILER
  "$1" -O1 -g -gdwarf-4 -fno-omit-frame-pointer -Wl,--build-id -o "$scratch/bin/bank" \
    "$scratch/src/bank.cpp" -pthread
}
record() { # PROGRAM: prints the profile's path
  rm -rf "$profiles"
  "$RELOCK" record -o "$profiles" --log-file "$scratch/log" -- "$@" >/dev/null 2>&1
  ls "$profiles"/relock.*.prof 2>/dev/null | head -n 1
}
build_bank g++ || miss "report: a test program is built" "no compiler"
file=$(record "$scratch/bin/bank")
cp "$file" "$scratch/bank.prof" && file=$scratch/bank.prof
try "$RELOCK" report "$file"
text=$out
expect "report: exit status and nothing on standard error" "$code:$err" "0:"
expect_match "report: the lock goes by its symbol" "$text" "*1. mutex accounts_lock (bank)*"
expect_match "report: the line that takes the lock, not that of the guard inlined there" "$text" \
  "*bank::transfer(int)  bank.cpp:$(line_of transfer-line)*"
expect_match "report: a Rust name is shown as it was written" "$text" "*store::cache::get *"
expect_match "report: the first lines say where to look" "$text" \
  "*look at   *bank.cpp:*it held a lock during *LOCKS, by total wait*"
expect "report: lines of at most 100 columns" \
  "$(awk 'length($0) > 100' <<<"$text" | wc -l)" 0
try "$RELOCK" report "$file" --blockers
expect_match "report: --blockers turns the stacks around" "$code:$out" \
  "0:*blocked by*while waiting in*"
try "$RELOCK" report "$file" --by site
expect_match "report: --by site names the waiting lines" "$code:$out" \
  "0:*PLACES THAT WAIT*mutex *bank.cpp:*"
try "$RELOCK" report "$file" --by init --top 1
expect_match "report: --by init" "$code:$out" "0:*LOCKS BY WHERE THEY WERE MADE*"

# ---- formats -----------------------------------------------------------------------------
try "$RELOCK" report "$file" --format json
expect "json: python reads it, and its sums agree" "$code:$($PYTHON -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert (report["schema"], report["version"]) == ("relock-report", 1)
lock = report["locks"][0]
assert lock["name"] == "accounts_lock (bank)", lock["name"]
for side in ("waiters", "blockers", "pairs"):
    assert sum(entry["ns"] for entry in lock[side]) == lock["wait_ns"], side
    assert sum(entry["waits"] for entry in lock[side]) == lock["waits"], side
names = {report["frames"][f]["name"] for s in report["stacks"] for f in s}
assert "store::cache::get" in names and "bank::transfer(int)" in names, names
print("good")' "$scratch/out" 2>&1)" "0:good"
try "$RELOCK" report "$file" --format folded
expect "folded: frames and a number in each line" \
  "$code:$(grep -cvE '^[^ ;][^;]*(;[^;]+)* [0-9]+$' <<<"$out"):$(grep -c 'bank::transfer(int)' <<<"$out")" \
  "0:0:1"
waited=$(awk '{ sum += $NF } END { printf "%.0f", sum }' <<<"$out")
try "$RELOCK" report "$file" --format folded --blockers
held=$(awk '{ sum += $NF } END { printf "%.0f", sum }' <<<"$out")
expect "folded: both sides add up to the same" "$held" "$waited"

if command -v go >/dev/null; then
  "$RELOCK" report "$file" --format pprof >"$scratch/waits.pb.gz"
  pprof() { (cd "$scratch" && HOME=$scratch PPROF_TMPDIR=$scratch go tool pprof "$@" 2>&1); }
  top=$(pprof -top waits.pb.gz)
  expect_match "pprof: go tool pprof -top reads it as delays" "$top" \
    "*Type: delay*bank::transfer*"
  expect_match "pprof: and adds them up" "$top" "*Total samples = *"
  expect_match "pprof: contentions too" "$(pprof -top -sample_index=contentions waits.pb.gz)" \
    "*Type: contentions*bank::transfer*"
  expect_match "pprof: -traces shows inlined calls and the lock" "$(pprof -traces waits.pb.gz)" \
    "*lock:  accounts_lock (bank)*bank::Guard::Guard() (inline)*bank::transfer(int)*"
  expect_match "pprof: -raw has lines, mappings and the build id" "$(pprof -raw waits.pb.gz)" \
    "*PeriodType: contentions count*Period: 1*contentions/count delay/nanoseconds*bank.cpp:$(line_of transfer-line)*Mappings*/bank $(readelf -n "$scratch/bin/bank" | sed -n 's/.*Build ID: //p') *"
  "$RELOCK" report "$file" --format pprof --blockers -o "$scratch/holds.pb.gz"
  expect_match "pprof: --blockers, written to a file" "$(pprof -top holds.pb.gz)" "*Type: delay*bank::*"
else
  echo "  go is not installed: pprof's own reader was not asked"
fi
terminal() { # CMD...: with a terminal as standard output
  $PYTHON -c 'import os, pty, sys
status = pty.spawn(sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(status))' "$@" </dev/null
}
expect_match "pprof: not to a terminal" "$(terminal "$RELOCK" report "$file" --format pprof; echo "$?")" \
  "relock: error: --format pprof: a terminal cannot show it*2"

# ---- binaries from elsewhere -----------------------------------------------------------------
moved=$scratch/elsewhere/deep
mkdir -p "$moved"
mv "$scratch/bin/bank" "$moved/renamed"
try "$RELOCK" report "$file"
expect_match "binaries: a file that is gone is named, with its build id" "$code:$out" \
  "0:*no names from $scratch/bin/bank: not found, build id *--binaries*"
try "$RELOCK" report "$file" --binaries "$scratch/elsewhere"
expect_match "binaries: found by build id under another name" "$code:$out" \
  "0:*accounts_lock (bank)*bank::transfer(int)*bank.cpp:$(line_of transfer-line)*"
id=$(readelf -n "$moved/renamed" | sed -n 's/.*Build ID: //p')
debug=$scratch/symbols/.build-id/${id:0:2}
mkdir -p "$debug"
objcopy --only-keep-debug "$moved/renamed" "$debug/${id:2}.debug"
try "$RELOCK" report "$file" --binaries "$scratch/symbols"
expect_match "binaries: debug information alone is enough" "$code:$out" \
  "0:*accounts_lock (bank)*bank.cpp:$(line_of transfer-line)*"
strip -o "$scratch/bin/bank" "$moved/renamed"
try "$RELOCK" report "$file"
expect_match "binaries: a stripped program gives addresses, and that is said" "$code:$out" \
  "0:*bank+0x*no lines for *bank*"
try "$RELOCK" report "$file" --binaries "$scratch/symbols"
expect_match "binaries: a stripped program with its debug file" "$code:$out" \
  "0:*accounts_lock (bank)*bank.cpp:$(line_of transfer-line)*"
sed -i 's/1500/1400/' "$scratch/src/bank.cpp"
build_bank g++
try "$RELOCK" report "$file"
expect_match "binaries: a file that was built anew gives no names" "$code:$out" \
  "0:*no names from $scratch/bin/bank: not the file that ran*"
try "$RELOCK" report "$file" --binaries "$scratch/nothing"
expect_match "binaries: no such directory" "$code:$(lines_in "$err"):$err" \
  "2:1:relock: error: --binaries $scratch/nothing: *"

if command -v clang++ >/dev/null && build_bank clang++ 2>/dev/null; then
  other=$(record "$scratch/bin/bank")
  try "$RELOCK" report "$other"
  expect_match "lines: a program without a table of addresses, by clang" "$code:$out" \
    "0:*bank::transfer(int)  bank.cpp:*"
else
  echo "  clang++ is not installed: its debug information was not looked at"
fi

# ---- several files, two runs -----------------------------------------------------------------
"$RELOCK" record -o "$scratch/second" --lock tas --log-file "$scratch/log" -- "$scratch/bin/bank" \
  >/dev/null 2>&1
second=$(ls "$scratch/second"/relock.*.prof)
"$RELOCK" record -o "$scratch/third" --lock qspinlock --log-file "$scratch/log" -- \
  "$scratch/bin/bank" >/dev/null 2>&1
third=$(ls "$scratch/third"/relock.*.prof)
try "$RELOCK" report "$second" "$third"
expect_match "merged: one lock, and the settings that differ" "$code:$out" \
  "0:relock profile of 2 files*the files differ in mutex lock: *1. mutex accounts_lock (bank), 2 objects*"
try "$RELOCK" report --format folded "$second" "$third"
expect_match "merged: formats without remarks warn" "$code:$err" \
  "0:relock: warning: the files differ in their settings: mutex lock: *"
try "$RELOCK" diff "$second" "$third"
expect_match "diff: the lock in both runs" "$code:$out" \
  "0:relock diff: $second -> *LOCKS, by how much*mutex accounts_lock (bank)*"
expect "diff: lines of at most 100 columns" "$(awk 'length($0) > 100' <<<"$out" | wc -l)" 0
try "$RELOCK" diff "$second" "$third" --format json
expect "diff: json" "$code:$($PYTHON -c '
import json, sys
diff = json.load(open(sys.argv[1]))
assert (diff["schema"], diff["version"]) == ("relock-diff", 1)
(lock,) = [l for l in diff["locks"] if l["name"] == "accounts_lock (bank)"]
assert lock["before"]["wait_ns"] > 0 and lock["after"]["wait_ns"] > 0
print("good")' "$scratch/out" 2>&1)" "0:good"

# ---- refused -----------------------------------------------------------------------------
refused() { # NAME PATTERN ARGUMENTS...
  local name=$1 pattern=$2
  shift 2
  try "$RELOCK" "$@"
  expect_match "refused: $name" "$code:$(lines_in "$err"):$out:$err" "2:1::relock: error: $pattern"
}
head -c 100000 "$file" >"$scratch/cut.prof"
refused "a profile that was cut" "$scratch/cut.prof: truncated profile" report "$scratch/cut.prof"
refused "a profile that was cut, beside a good one" "$scratch/cut.prof: *" \
  report "$file" "$scratch/cut.prof" --format json
refused "a cut profile in a diff" "$scratch/cut.prof: *" diff "$file" "$scratch/cut.prof"
echo text >"$scratch/text"
refused "what is no profile" "$scratch/text: not a relock profile" report "$scratch/text"
refused "no such file" "$scratch/none: No such file*" report "$scratch/none"
refused "a directory" "$scratch: *" report "$scratch"
refused "one file twice" "*given twice*" report "$file" "$scratch/../${scratch##*/}/bank.prof"
refused "an unknown format" "*xml: accepted: text|json|folded|pprof*" report "$file" --format xml
refused "an unknown grouping" "*thread: accepted: lock|init|site*" report "$file" --by thread
refused "a number that is none" "*--top*" report "$file" --top many
refused "a negative number" "*--top*" report "$file" --top -1
refused "no file" "*" report
refused "one file to compare" "*" diff "$file"
refused "the profile as output" "$file: is one of the profiles*" report "$file" -o "$file"
try "$RELOCK" report "$file" -o "$scratch/none/x"
expect_match "refused: an output that cannot be written" "$code:$err" "1:relock: error: $scratch/none/x: *"
try "$RELOCK" report "$file" -o /dev/full
expect_match "refused: a full device" "$code:$err" "1:relock: error: /dev/full: *"
exit $status
