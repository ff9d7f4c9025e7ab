#!/bin/bash
# make install on a staging directory: what lies where, that it works there and after being moved,
# the manual page, and that make uninstall leaves nothing.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"
stage="$scratch/stage"
preload='import os; print(os.environ["LD_PRELOAD"])'

# Everything is built: nothing is compiled here, so the caller's compiler and flags do not matter.
in_make() { # TARGET VARIABLES...
  try env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory "$1" -o all "BUILD=$BUILD" "${@:2}"
}
tree() { (cd "$1" && find . -type f -printf '%m %P\n' | sort -k 2); }
wanted() { # PREFIX LIBDIR
  printf '%s\n' "755 $1/bin/relock" "755 $2/relock/librelock-profile.so" \
    "755 $2/relock/librelock.so" "644 $1/share/man/man1/relock.1" | sort -k 2
}
works_at() { # NAME ROOT LIBRARY
  try "$2/bin/relock" run -- $PYTHON -c "$preload"
  expect "$1: run finds the library" "$code:$out:$err" "0:$3/librelock.so:"
}

in_make install PREFIX=/usr DESTDIR="$stage"
expect "install: into a staging directory" "$code:$(tree "$stage")" "0:$(wanted usr usr/lib)"
works_at "install: staged" "$stage/usr" "$stage/usr/lib/relock"
mkdir "$scratch/elsewhere" && mv "$stage/usr" "$scratch/elsewhere/moved"
works_at "install: moved" "$scratch/elsewhere/moved" "$scratch/elsewhere/moved/lib/relock"

# From a link in PATH, and the plugin too: a recorded program leaves a profile, which is read.
mkdir "$scratch/path" && ln -s ../elsewhere/moved/bin/relock "$scratch/path/relock"
PATH=$scratch/path:$PATH try relock record -o "$scratch/profiles" --log-file "$scratch/log" -- \
  "$LOCKBENCH" --threads 4 --ms 200
expect "install: record works through a link in PATH" "$code" 0
PATH=$scratch/path:$PATH try relock report "$scratch"/profiles/relock.*.prof
expect_match "install: and report reads the profile" "$code:$out" "0:relock profile of lockbench*"

in_make install PREFIX=/usr LIBDIR=/usr/lib/x86_64-linux-gnu DESTDIR="$stage"
expect "install: LIBDIR of a distribution" "$code:$(tree "$stage")" \
  "0:$(wanted usr usr/lib/x86_64-linux-gnu)"
works_at "install: Debian's LIBDIR" "$stage/usr" "$stage/usr/lib/x86_64-linux-gnu/relock"
in_make uninstall PREFIX=/usr LIBDIR=/usr/lib/x86_64-linux-gnu DESTDIR="$stage"
expect "uninstall: nothing is left" \
  "$code:$(find "$stage" ! -type d):$(find "$stage" -name relock)" "0::"
in_make uninstall PREFIX=/usr DESTDIR="$scratch/never"
expect "uninstall: of nothing is no error" "$code" 0

in_make install PREFIX= DESTDIR="$scratch/a b"
expect "install: an empty PREFIX, a directory with a space" "$code:$(tree "$scratch/a b")" \
  "0:$(wanted '' /lib | sed 's, /, ,')"
in_make uninstall PREFIX= DESTDIR="$scratch/a b"
expect "uninstall: the same" "$code:$(find "$scratch/a b" -type f)" "0:"
in_make install PREFIX="$scratch/own"
expect "install: without DESTDIR" "$code:$(tree "$scratch/own" | wc -l)" "0:4"
works_at "install: without DESTDIR" "$scratch/own" "$scratch/own/lib/relock"
in_make install PREFIX=/proc/nowhere
expect "install: a place that cannot be written fails" "$((code != 0)):$(grep -c install: <<<"$err")" \
  "1:1"

# The manual page: clean for both formatters, and complete.
page=$scratch/own/share/man/man1/relock.1
expect "man: mandoc has nothing to remark" "$(mandoc -T lint -W all "$page" 2>&1)" ""
try env MANROFFSEQ= man --warnings -E UTF-8 -l "$page"
expect "man: groff has nothing to remark" "$code:$err" "0:"
text=$(MANWIDTH=200 man -E UTF-8 -l "$page" 2>/dev/null | col -b)
missing=""
for name in $(lock_names) $(option_names); do
  grep -q "^       $name\( \|$\)" <<<"$text" || missing+=" $name"
done
for name in $("$RELOCK" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p'); do
  grep -q "^   relock $name" <<<"$text" || missing+=" $name"
  for option in $("$RELOCK" "$name" --help | grep -o '^ *-[^ ]*' | tr -d ' ' | tr , '\n'); do
    case $option in -h | --help) continue ;; esac
    sed -n "/^   relock $name/,/^   relock /p" <<<"$text" | grep -q -- "$option\b" ||
      missing+=" $name:$option"
  done
done
expect "man: every command, option, lock and variable has its entry" "$missing" ""
SOURCE_DATE_EPOCH=86400 try "$RELOCK" --man
expect_match "man: SOURCE_DATE_EPOCH fixes the date" "$code:$(grep '^\.TH' <<<"$out")" \
  "0:.TH RELOCK 1 1970-01-02*"
exit $status
