#!/bin/bash
# tests/programs/run.sh [NAME[:SCALE]...] - real programs, each bare and then with every lock of
# the list, with profiling, and beside another allocator. Their own results are checked by
# run_app.sh; here a case fails when a program that succeeds bare does not under the preload.
# Without names: a quick set, or every workload with SLOW=1. LOCKS="a b" picks locks.
set -u
here=$(dirname "$(readlink -f "$0")")
cd "$here/../.." || exit 2
BUILD=${BUILD:-build}
preload=$(readlink -f "$BUILD")/librelock.so
[ -e "$preload" ] || { echo "not ok programs - $preload is not built"; exit 1; }
locks=${LOCKS:-$(sed -n 's/^ *RELOCK_LOCK_ROW([^"]*"\([^"]*\)".*/\1/p' locks/lock_list.def)}

# Scales that make each take about half a second bare on two CPUs.
quick="sysbench_threads:0.15 sysbench_mutex:0.15 stress_pthread:0.1
  tokyo_hash:0.3 kyoto_hash:0.2 kyoto_mutex:0.1 rocksdb_cache:0.3 jemalloc:0.2 ruby:0.3 python:0.2
  zstd:0.3 pigz:0.2 redis:0.3 git:0.3 deepbind:0.5"
if [ $# -gt 0 ]; then
  programs=$*
elif [ -n "${SLOW:-}" ]; then
  programs=$("$here/run_app.sh" --list)
else
  programs=$quick
fi
multiarch=/usr/lib/$(gcc -print-multiarch)
failed=0

# One run; sets status and out.
app() { # NAME SCALE PRELOAD [VARIABLE=VALUE...]
  local name=$1 scale=$2 load=$3; shift 3
  out=$(env SCALE="$scale" "$@" timeout -k 5 "$limit" "$here/run_app.sh" "$name" "$load" 2>/dev/null)
  status=$?
  [ -n "$out" ] || out="$name BAD no answer, exit status $status"
}
try() { # HOW NAME SCALE PRELOAD [VARIABLE=VALUE...]
  local how=$1; shift
  app "$@"
  if [ $status = 0 ]; then
    echo "ok $1 $how: ${out##*thru=}, bare $bare"
  else
    echo "not ok $1 $how - ${out#*BAD }"
    failed=1
  fi
}

profiles=$(mktemp -d "${TMPDIR:-/tmp}/relock-programs.XXXXXX") || exit 2
chmod 1777 "$profiles"
trap 'rm -rf "$profiles"' EXIT
for entry in $programs; do
  name=${entry%%:*} scale=1
  [ "$entry" != "$name" ] && scale=${entry#*:}
  # What counts as a hang depends on how fast this machine is just now.
  limit=120
  app "$name" "$scale" ""
  limit=${APP_TIMEOUT:-$(awk -v s="${out##*secs=}" 'BEGIN { s = 15 + 10 * s; print int(s < 120 ? s : 120) }')}
  case $status in
    0) bare=${out##*thru=} ;;
    77) echo "  $name: left out, not installed"; continue ;;
    *) echo "  $name: left out, does not succeed bare here: ${out#*BAD }"; continue ;;
  esac
  for lock in $locks; do try "with $lock" "$name" "$scale" "$preload" RELOCK_LOCK="$lock"; done
  try "profiled" "$name" "$scale" "$preload" RELOCK_PROFILE=1 RELOCK_LOG_FILE="$profiles/log" \
    RELOCK_PROFILE_DIR="$profiles"
  rm -rf "${profiles:?}"/*
  case $name in
    ruby | rocksdb_cache)
      for allocator in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
        [ -e "$multiarch/$allocator" ] || continue
        try "before $allocator" "$name" "$scale" "$preload:$multiarch/$allocator"
        try "after $allocator" "$name" "$scale" "$multiarch/$allocator:$preload"
      done ;;
  esac
done
[ $# -gt 0 ] || BUILD=$BUILD bash "$here/overcommit.sh" || failed=1
exit $failed
