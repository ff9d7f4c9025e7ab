# Sourced by the scripts of this folder: where the outputs are, and one line per case.
# Each script prints "ok NAME" or "not ok NAME - reason".
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit 2
export LC_ALL=C.UTF-8
BUILD=${BUILD:-build}
PRELOAD=$(readlink -f "$BUILD")/librelock.so
PROFILE=$(readlink -f "$BUILD")/librelock-profile.so
LIBC=$(gcc -print-file-name=libc.so.6)
unset LD_PRELOAD
shopt -s nullglob
scratch=$(mktemp -d "${TMPDIR:-/tmp}/relock-build.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT

one_line() { tr '\n' ' ' <<<"$1" | sed 's/ *$//'; }
expect() { # NAME ACTUAL EXPECTED: equal, apart from line breaks
  local actual expected
  actual=$(one_line "$2") expected=$(one_line "$3")
  if [ "$actual" = "$expected" ]; then
    echo "ok $1"
  else
    echo "not ok $1 - got '$actual', not '$expected'"
  fi
}
expect_none() { expect "$1" "$2" ""; }
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
exports() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u; }
# Names in the first column of a list such as interpose/symbols.def or the second of lock_list.def.
symbol_rows() { sed -n 's/^ *RELOCK_[A-Z_]*SYMBOL[A-Z_]*(\([A-Za-z_0-9]*\).*/\1/p' interpose/symbols.def | sort -u; }
lock_names() { sed -n 's/^ *RELOCK_LOCK_ROW([^"]*"\([^"]*\)".*/\1/p' locks/lock_list.def; }
