#!/bin/bash
# overcommit.sh - 64 threads on two CPUs: every lock keeps at least a tenth of the throughput that
# the C library's lock has there, mutex and spinlock. A lock that hands over to a thread which does
# not run loses a factor of a hundred, so the bound is wide enough for a busy machine: one of three
# interleaved pairs has to reach it. This catches a collapse; `make bench` measures.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
BUILD=${BUILD:-build}
preload=$(readlink -f "$BUILD")/librelock.so
locks=$(sed -n 's/^ *RELOCK_LOCK_ROW([^"]*"\([^"]*\)".*/\1/p' locks/lock_list.def)
two_cpus=()
command -v taskset >/dev/null &&
  two_cpus=(taskset -c "$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status |
    awk -F, '{ n = 0; for (i = 1; i <= NF; i++) { split($i, r, "-"); last = (r[2] == "" ? r[1] : r[2])
      for (c = r[1]; c <= last && n < 2; c++) out = out (n++ ? "," : "") c } print out }')")

operations() { # OBJECT [VARIABLE=VALUE...]: per second
  local object=$1; shift
  timeout 30 env "$@" "${two_cpus[@]}" "$BUILD/lockbench" --object "$object" --threads 64 \
    --section 200 --think 500 --ms 300 --json 2>/dev/null |
    sed -n 's/.*"per_second":\([0-9]*\).*/\1/p'
}

status=0
for object in mutex spin; do
  for lock in $locks; do
    best=0
    for _ in 1 2 3; do
      bare=$(operations "$object" RELOCK_LOCK=)
      swapped=$(operations "$object" LD_PRELOAD="$preload" RELOCK_LOCK="$lock")
      best=$(awk -v b="${bare:-0}" -v s="${swapped:-0}" -v t="$best" \
        'BEGIN { r = b > 0 ? s / b : 0; printf "%.2f", (r > t ? r : t) }')
      awk -v r="$best" 'BEGIN { exit r < 0.1 }' && break
    done
    if awk -v r="$best" 'BEGIN { exit r < 0.1 }'; then
      echo "ok $object $lock: 64 threads on 2 CPUs, $best of the C library's throughput"
    else
      echo "not ok $object $lock - 64 threads on 2 CPUs: $best of the C library's throughput"
      status=1
    fi
  done
done
exit $status
