#!/bin/bash
# tools/bench.py: its arithmetic, its file of runs, its verdicts. What is measured here is too
# short to mean anything, or made up by a stand-in for lockbench.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"

$PYTHON -B tests/tools/bench_test.py || status=1

runs=$scratch/runs.jsonl
try env BUILD="$BUILD" tools/bench.sh --rounds 1 --ms 10 --threads 1,2 --sections 0 --runs "$runs"
expect "bench: every lock is measured" "$code" 0
for name in $(lock_names); do
  expect "bench: $name has its rows" "$(grep -c "^  $name  *[0-9]" <<<"$out")" 3
done
expect_match "bench: the limits stand beside" "$out" \
  "*limits: one atomic * line bounce * futex wake *"
measured=$((2 * ($(lock_names | wc -l) + 1)))
expect "bench: single runs are kept" "$(grep -c '"result"' "$runs")" $measured
try env BUILD="$BUILD" tools/bench.sh --rounds 1 --ms 10 --threads 1 --sections 0 --locks tas \
  --runs "$runs"
expect "bench: a file of runs is never overwritten" "$code:$(grep -c '"result"' "$runs")" \
  "0:$((measured + 2))"
try env BUILD="$BUILD" tools/bench.sh --locks nonsense
expect_match "bench: an unknown lock is refused" "$code:$out:$err" \
  "2::bench: error: --locks: nonsense: no such lock *"
try env BUILD="$BUILD" tools/bench.sh --from "$scratch/missing"
expect_match "bench: a missing file is refused" "$code:$out:$err" \
  "2::bench: error: --from: *missing*"
try env BUILD="$BUILD" tools/bench.sh --overcommit --estimate
expect_match "bench: says beforehand how long it takes" "$code:$out:$err" \
  "0::bench: overcommit: * runs of 200 ms in 5 rounds, about * min"

# A stand-in with known answers: every lock is as fast as glibc's, but for one that has 0.7 of it,
# one whose threads starve, and one that hangs up.
mkdir "$scratch/build" && cp "$BUILD/librelock.so" "$scratch/build/"
cat >"$scratch/build/lockbench" <<'EOS'
#!/bin/bash
case "$*" in *--limits*)
  echo '{"cpus":2,"turns_per_ns":1,"atomic_ns":5,"bounce_ns":50,"clock_ns":25,'
  echo '"futex_wake_ns":3000,"context_switch_ns":2000}'
  exit ;;
esac
rate=1000000 least=0.9
case $RELOCK_LOCK in
  ticket) rate=700000 ;;
  cna) least=0.1 ;;
  qspinlock) echo "lockbench: error: broken" >&2; exit 1 ;;
esac
share='"per_second":'$rate',"jain":1,"least_to_mean":'$least
share+=',"wait_ns":{"p99_9":500,"longest":900}'
echo "{$share,"'"cpu_seconds_per_million":1,"longest_stall_ns":5,'
echo '"readers":{'"$share"'},"writers":{'"$share"'}}'
EOS
chmod +x "$scratch/build/lockbench"
for preset in overcommit fairness; do
  try env BUILD="$scratch/build" tools/bench.sh --$preset --rounds 1 \
    --runs "$scratch/$preset.jsonl" --locks auto,ticket,cna,qspinlock \
    --markdown "$scratch/$preset.md" --only ', (64|8) threads'
  expect "bench: $preset: a run that fails is the exit status" "$code" 1
  expect "bench: $preset: a lock that breaks is named at each point" \
    "$(grep -c '^  qspinlock  *FAILED: exit status 1: lockbench: error: broken' <<<"$out")" \
    $([ $preset = overcommit ] && echo 16 || echo 18)
  expect "bench: $preset: auto meets its goals" "$(grep -c '^  auto .*ok$' <<<"$out")" \
    $([ $preset = overcommit ] && echo 16 || echo 18)
  cp "$scratch/out" "$scratch/$preset.out"
done
expect "bench: overcommit: by how much a goal is missed" \
  "$(grep '^  ticket .*MISSED' "$scratch/overcommit.out" | sed 's/.*  //' | sort | uniq -c |
    sed 's/^ *//' | paste -sd,)" "8 MISSED by 0.10,8 MISSED by 0.30"
expect "bench: fairness: by how much a goal is missed" \
  "$(grep '^  cna .*MISSED' "$scratch/fairness.out" | sed 's/.*  //' | sort | uniq -c |
    sed 's/^ *//')" "18 MISSED by 0.15"
expect "bench: fairness: a slow lock is not an unfair one" \
  "$(grep -c '^  ticket .*ok$' "$scratch/fairness.out")" 18
expect "bench: overcommit: Markdown has a row for each number of threads" \
  "$(grep -cE '^\| (4|8|16|32|64|[0-9]+) \|.*\| 0\.70 \*\*missed\*\* \|.*\| FAILED \|$' \
    "$scratch/overcommit.md")" 16
try env BUILD=/nowhere tools/bench.sh --from "$scratch/overcommit.jsonl" \
  --locks auto,ticket,cna,qspinlock --only ', (64|8) threads'
expect "bench: saved runs give the same report" "$code:$out" "1:$(cat "$scratch/overcommit.out")"

try env BUILD="$scratch/build" tools/bench.sh --grid --rounds 1 --runs "$scratch/grid.jsonl" \
  --only '^(mutex|cond-broadcast)' --locks auto
expect "bench: grid: a goal that is missed" \
  "$code:$(grep -c '^  cond-broadcast, 64 .*goal at least 1.5: MISSED by 0.50$' <<<"$out")" "0:7"
try env BUILD="$scratch/build" tools/bench.sh --from "$scratch/grid.jsonl" --strict
expect "bench: --strict: a missed goal is the exit status" "$code" 1
expect "bench: grid: and one that concerns a mean" \
  "$(grep -c '^- auto, all mutex points: throughput 1.00, goal at least 1.2: MISSED by 0.20' \
    "$scratch/grid.md")" 2
expect "bench: grid: seven rows of ten columns for mutexes" \
  "$(sed -n '/^mutex, auto;/,/^cond/p' "$scratch/grid.md" |
    grep -cE '^\| (1|2|4|8|16|32|64) \|( 1\.00 \|){10}$')" 7
expect "bench: grid: a row for each run lock and point" \
  "$(grep -cE '^\| [0-9]+ \| section .*\| (auto|\(none\)) \|' "$scratch/grid.md")" 196
expect "bench: grid: a plot with a cell for each point" "$($PYTHON -c 'import sys
from xml.etree import ElementTree
cells = [group for group in ElementTree.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}g")]
print(len(cells), {group.find("{http://www.w3.org/2000/svg}text").text for group in cells})' \
  "$scratch/grid.svg")" "98 {'1.00'}"
try env BUILD="$scratch/build" BENCH=full tools/bench.sh --grid --estimate
expect_match "bench: grid: the whole of it says how long" "$code:$err" "0:bench: grid: * about * h"
try env BUILD="$scratch/build" tools/bench.sh --vm --only nothing
expect_match "bench: no point matches" "$code:$out:$err" "2::bench: error: --only: nothing: *"

# A measurement that is broken off shows what it has.
sed -i '2i sleep 0.05' "$scratch/build/lockbench"
env --default-signal=INT BUILD="$scratch/build" tools/bench.sh --vm --runs "$scratch/cut.jsonl" \
  >"$scratch/out" 2>"$scratch/err" &
for _ in $(seq 200); do
  [ "$(grep -c '"result"' "$scratch/cut.jsonl" 2>/dev/null)" -gt 8 ] 2>/dev/null && break
  sleep 0.1
done
kill -INT $!
wait $!
kept=$(grep -c '"result"' "$scratch/cut.jsonl")
shown=$(grep -cE '^  ticket(-backoff)? +[0-9]' "$scratch/out")
expect "bench: Ctrl-C shows what was measured" \
  "$(grep -c 'interrupted' "$scratch/err"):$((shown > 5)):$((kept > 5))" "1:1:1"
exit $status
