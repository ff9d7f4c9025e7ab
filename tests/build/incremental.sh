#!/bin/bash
# An unchanged tree rebuilds nothing, and a changed header or list rebuilds what depends on it.
. "$(dirname "$0")/common.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

expect_none "nothing is rebuilt in an unchanged tree" \
  "$(make -n all tests BUILD="$BUILD" 2>&1 | grep -v 'Nothing to be done' | head -n 2)"
rebuilds() { # CHANGED TARGET
  expect "a change in $1 rebuilds $2" \
    "$(make -n -W "$1" all tests BUILD="$BUILD" 2>/dev/null | grep -qE -- "-o $BUILD/$2( |\$)" && echo yes)" yes
}
rebuilds locks/platform.h librelock.so
rebuilds locks/platform.h explore_tests
rebuilds locks/lock_list.def relock
rebuilds policy/options.def librelock.so
rebuilds policy/options.def relock
rebuilds interpose/symbols.def librelock.so
rebuilds interpose/profile/profile_format.h librelock-profile.so
rebuilds interpose/profile/profile_format.h relock
