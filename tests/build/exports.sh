#!/bin/bash
# interpose/symbols.def against what librelock.so exports and against the C library's own table:
# a call that is missing from the list slips past and works on a lock of another encoding.
. "$(dirname "$0")/common.sh"

libc_has=$(exports "$LIBC")
in_libc() { comm -12 - <(echo "$libc_has"); }
expect "librelock.so exports the rows of symbols.def that the C library has" \
  "$(exports "$PRELOAD")" "$(symbol_rows | in_libc)"
expect_none "symbols.def names nothing that the C library lacks" \
  "$(symbol_rows | comm -23 - <(echo "$libc_has"))"
locks=$(echo "$libc_has" | grep -E '^(__)?pthread_(mutex|spin|cond|rwlock)_|^(mtx|cnd)_')
expect "the C library exports lock calls at all" "$([ "$(wc -l <<<"$locks")" -ge 50 ] && echo yes)" yes
expect_none "symbols.def has every lock call of the C library" \
  "$(comm -23 <(echo "$locks") <(symbol_rows))"
# Unversioned names satisfy a reference to any version, so programs built before and after
# glibc 2.34, and both versions of the condition variables, arrive here.
expect_none "librelock.so's symbols carry no version" \
  "$(nm -D --defined-only "$PRELOAD" | grep '@' | head -n 3)"
if [ -e "$PROFILE" ]; then
  expect "librelock-profile.so exports its entry point alone" "$(exports "$PROFILE")" \
    relock_profiler_entry
fi
