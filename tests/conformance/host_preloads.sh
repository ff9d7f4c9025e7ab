#!/bin/bash
# Other libraries preloaded before and after librelock.so, and allocators that the program is linked
# with: a library whose constructor locks, a malloc that is built on a mutex and started by dlsym,
# jemalloc, tcmalloc. The output must be that of the same program with the other library alone.
#
# usage: host_preloads.sh BUILD_DIR    (run by run.sh, once for each configuration)
# conformance: any-lock

set -u
build=$1
here=$(cd "$(dirname "$0")" && pwd)
programs="exit_handlers exit_thread_local fork_held cond_lifecycle host_exceptions"
linked_programs="exit_thread_local exit_thread"
name=conformance/host_preloads/${CONFIG:-default}
work=$(mktemp -d "${TMPDIR:-/tmp}/preloads.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

find_library() {
  local file
  for file in /usr/lib/*/"$1" /usr/lib64/"$1" /usr/lib/"$1"; do
    [ -e "$file" ] && echo "$file" && return
  done
}

# run TAG PROGRAM PRELOAD: stdout and stderr to files, the exit status as a last line of stdout.
run() {
  LD_PRELOAD=$3 timeout -k 5 60 "$2" >"$work/$1.out" 2>"$work/$1.err" </dev/null
  echo "exit status $?" >>"$work/$1.out"
}

# compare CASE PROGRAM PRELOAD: PRELOAD against what `run bare` left.
compare() {
  run preloaded "$2" "$3"
  local line
  if ! cmp -s "$work/bare.out" "$work/preloaded.out"; then
    line=$(diff "$work/bare.out" "$work/preloaded.out" | sed -n 's/^> //p' | head -1)
    echo "not ok $name/$1 - stdout differs: '$line' $(head -1 "$work/preloaded.err")"
  elif ! cmp -s "$work/bare.err" "$work/preloaded.err"; then
    echo "not ok $name/$1 - stderr: '$(head -1 "$work/preloaded.err")'"
  else
    echo "ok $name/$1"
  fi
}

both_orders() {
  local label=$1 library=$2 program
  if [ ! -e "${library:-none}" ]; then
    echo "# skipped $name/$label - the library is not installed"
    return
  fi
  for program in $programs; do
    run bare "$build/conformance/$program" "$library"
    compare "$label/before/$program" "$build/conformance/$program" "$library:$build/librelock.so"
    compare "$label/after/$program" "$build/conformance/$program" "$build/librelock.so:$library"
  done
}

# The same programs, linked with the allocator.
linked() {
  local label=$1 library=$2 program source compiler binary
  [ -e "${library:-none}" ] || return
  for program in $linked_programs; do
    source=$here/$program.c
    compiler="${CC:-gcc} -std=gnu17"
    if [ ! -e "$source" ]; then
      source=$here/$program.cpp
      compiler="${CXX:-g++} -std=c++20"
    fi
    # Kept for the next configurations.
    binary=$build/conformance/linked_${label}_$program
    if [ ! "$binary" -nt "$source" ]; then
      if ! $compiler -O1 -D_GNU_SOURCE -o "$work/linked" "$source" -pthread \
        -Wl,--no-as-needed "$library" 2>"$work/errors"; then
        echo "not ok $name/$label/linked/$program - $(head -1 "$work/errors")"
        continue
      fi
      mv "$work/linked" "$binary"
    fi
    run bare "$binary" ""
    compare "$label/linked/$program" "$binary" "$build/librelock.so"
  done
}

jemalloc=$(find_library libjemalloc.so.2)
tcmalloc=$(find_library libtcmalloc_minimal.so.4)
both_orders constructor "$build/conformance/lib_ctor.so"
both_orders malloc "$build/conformance/lib_malloc.so"
both_orders jemalloc "$jemalloc"
both_orders tcmalloc "$tcmalloc"
linked jemalloc "$jemalloc"
linked tcmalloc "$tcmalloc"
run bare "$build/conformance/cond_lifecycle" \
  "$build/conformance/lib_ctor.so:$build/conformance/lib_malloc.so"
compare all-of-them "$build/conformance/cond_lifecycle" \
  "$build/conformance/lib_ctor.so:$build/librelock.so:$build/conformance/lib_malloc.so"
