#!/bin/bash
# Programs as they were linked before glibc 2.34: they need libpthread.so.0 and ask it, not
# libc.so.6, for symbols of that time's versions. Built here against a stand-in for that library,
# run with the real one.
#
# usage: host_old_binary.sh BUILD_DIR    (run by run.sh, once for each configuration)
# conformance: any-lock

set -u
build=$1
here=$(cd "$(dirname "$0")" && pwd)
name=conformance/host_old_binary/${CONFIG:-default}
programs="cond_queue cond_timeouts cnd_c11 cancel_cond spin_basic fork_held exit_thread_local"
old=$build/conformance/old_binary
work=$(mktemp -d "${TMPDIR:-/tmp}/old_binary.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

if [ "$(uname -m)" != x86_64 ] || ! ls /lib/*/libpthread.so.0 >/dev/null 2>&1; then
  echo "ok $name # skipped: no old symbol versions on this machine"
  exit
fi

# "version: names" as glibc 2.33's libpthread had them.
versions() {
  local mutex="init destroy lock unlock trylock timedlock"
  local rwlock="init destroy rdlock wrlock tryrdlock trywrlock timedrdlock timedwrlock unlock"
  echo "GLIBC_2.2.5 $(printf 'pthread_mutex_%s ' $mutex) $(printf 'pthread_rwlock_%s ' $rwlock)" \
    "$(printf 'pthread_spin_%s ' init destroy lock trylock unlock)" \
    "pthread_create pthread_join pthread_cancel pthread_testcancel sem_wait sem_post pthread_once"
  echo "GLIBC_2.3.2 $(printf 'pthread_cond_%s ' init destroy wait timedwait signal broadcast)"
  echo "GLIBC_2.12 pthread_mutex_consistent"
  echo "GLIBC_2.28 $(printf 'mtx_%s ' init destroy lock trylock timedlock unlock)" \
    "$(printf 'cnd_%s ' init destroy wait timedwait signal broadcast) thrd_create thrd_join"
  echo "GLIBC_2.30 pthread_cond_clockwait pthread_mutex_clocklock" \
    "pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock"
}

make_stand_in() {
  local version names symbol
  while read -r version names; do
    {
      echo "$version {"
      echo "  global:"
      for symbol in $names; do echo "    $symbol;"; done
      echo "};"
    } >>"$work/map"
    for symbol in $names; do echo "void $symbol(void) {}" >>"$work/stand_in.c"; done
  done < <(versions)
  ${CC:-gcc} -w -fno-builtin -shared -fPIC -nostdlib -o "$work/libpthread.so.0" \
    -Wl,-soname,libpthread.so.0 -Wl,--version-script="$work/map" "$work/stand_in.c"
}

# build_old PROGRAM: fails unless the result asks libpthread.so.0 for the lock functions.
build_old() {
  local source=$here/$1.c compiler="${CC:-gcc} -std=gnu17"
  if [ ! -e "$source" ]; then
    source=$here/$1.cpp
    compiler="${CXX:-g++} -std=c++20"
  fi
  [ "$old/$1" -nt "$source" ] && return 0  # from an earlier configuration
  $compiler -O1 -D_GNU_SOURCE -o "$work/$1" "$source" "$work/libpthread.so.0" \
    2>"$work/errors" || return 1
  if ! readelf -V "$work/$1" | grep -q 'File: libpthread.so.0'; then
    echo "does not need libpthread.so.0" >"$work/errors"
    return 1
  fi
  mkdir -p "$old" && mv "$work/$1" "$old/$1"
}

if ! make_stand_in 2>"$work/errors"; then
  echo "not ok $name - no stand-in library: $(head -1 "$work/errors")"
  exit
fi
for program in $programs; do
  if ! build_old "$program"; then
    echo "not ok $name/$program - $(head -1 "$work/errors")"
    continue
  fi
  "$old/$program" >"$work/bare.out" 2>"$work/bare.err" </dev/null
  bare=$?
  LD_PRELOAD=$build/librelock.so timeout -k 5 60 "$old/$program" \
    >"$work/preloaded.out" 2>"$work/preloaded.err" </dev/null
  status=$?
  if [ $bare != 0 ]; then
    echo "not ok $name/$program - bare: exit status $bare: $(head -1 "$work/bare.err")"
  elif [ $status != 0 ]; then
    echo "not ok $name/$program - exit status $status: $(head -1 "$work/preloaded.err")"
  elif ! cmp -s "$work/bare.out" "$work/preloaded.out"; then
    echo "not ok $name/$program - $(diff "$work/bare.out" "$work/preloaded.out" | head -2 | tail -1)"
  elif [ -s "$work/preloaded.err" ]; then
    echo "not ok $name/$program - stderr: '$(head -1 "$work/preloaded.err")'"
  else
    echo "ok $name/$program"
  fi
done
