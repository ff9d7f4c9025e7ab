#!/bin/bash
# What the outputs are linked with. A preloaded object shares the process with programs that have
# their own C++ runtime, unwinder and logger, so every dependency it brings is a possible conflict.
. "$(dirname "$0")/common.sh"

expect "librelock.so needs the C library alone" "$(needed "$PRELOAD")" libc.so.6
expect_none "librelock.so has no text relocations" "$(readelf -d "$PRELOAD" | grep TEXTREL)"
flags=$(readelf -d "$PRELOAD" | grep -oE '\b(NOW|INITFIRST|NODELETE)\b' | sort -u)
expect "librelock.so binds at start, starts first and stays loaded" "$flags" "INITFIRST NODELETE NOW"
# A lock path that calls __tls_get_addr may allocate; thread-local data must be static and small,
# since it comes out of the room that the C library keeps for objects loaded early.
expect_none "librelock.so never asks the loader for thread-local data" \
  "$(nm -D "$PRELOAD" | grep -o '__tls_get_addr'; readelf -rW "$PRELOAD" | grep -oE 'DTPMOD|TLSDESC')"
tls=$((16#$(readelf -lW "$PRELOAD" | awk '$1 == "TLS" { sub(/0x/, "", $6); print $6 }' | grep . || echo 0)))
expect "librelock.so's thread-local data stays under 1 KiB" "$([ $tls -lt 1024 ] && echo yes || echo $tls)" yes
expect_none "librelock.so takes nothing from a C++ or unwinding runtime" \
  "$(nm -D --undefined-only "$PRELOAD" | awk '{ print $2 }' | grep -E '^(_Z|__cxa_(throw|guard|allocate|begin|demangle)|__gxx|_Unwind)')"
libc_has=$(nm -D --defined-only "$LIBC" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u)
expect_none "librelock.so's undefined symbols are all the C library's" \
  "$(nm -D --undefined-only "$PRELOAD" | awk '$1 == "U" { sub(/@.*/, "", $2); print $2 }' | sort -u |
    comm -23 - <(echo "$libc_has"))"

if [ -e "$PROFILE" ]; then
  # The first library in this order that has them supplies _Unwind_* to all that it brings along.
  expect "librelock-profile.so finds libgcc_s first" "$(needed "$PROFILE" | head -n 1)" libgcc_s.so.1
  expect_none "librelock-profile.so carries its logger inside" \
    "$(needed "$PROFILE" | grep -E 'spdlog|fmt')"
  expect_none "librelock-profile.so shares no unique symbols with the program" \
    "$(nm "$PROFILE" | awk '$2 == "u" { print $3 }' | head -n 3)"
  expect "librelock-profile.so stays loaded" \
    "$(readelf -d "$PROFILE" | grep -oE '\bNODELETE\b' | sort -u)" NODELETE
else
  echo "not ok librelock-profile.so is built - missing"
fi
expect "lockbench needs the C library alone" "$(needed "$BUILD/lockbench")" libc.so.6
