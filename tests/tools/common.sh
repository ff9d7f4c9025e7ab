# Sourced by the scripts of this folder. Each prints "ok NAME" or "not ok NAME - reason" per case.
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit 2
BUILD=$(readlink -f "${1:-${BUILD:-build}}")
RELOCK=$BUILD/relock
LOCKBENCH=$BUILD/lockbench
# Not a version manager's shell script that is called python3.
PYTHON=/usr/bin/python3
[ -x $PYTHON ] || PYTHON=$(python3 -c 'import sys; print(sys.executable)')
export LC_ALL=C.UTF-8
unset LD_PRELOAD
while read -r variable; do unset "$variable"; done < <(compgen -e | grep '^RELOCK_')
scratch=$(mktemp -d "${TMPDIR:-/tmp}/relock-tools.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
status=0

pass() { echo "ok $1"; }
miss() { echo "not ok $1 - $2"; status=1; }
one_line() { tr '\n' '~' <<<"$1" | sed 's/~$//' | cut -c1-300; }
expect() { # NAME ACTUAL EXPECTED
  if [ "$2" = "$3" ]; then pass "$1"; else
    miss "$1" "got '$(one_line "$2")', not '$(one_line "$3")'"
  fi
}
expect_match() { # NAME ACTUAL PATTERN (a glob)
  # shellcheck disable=SC2053
  if [[ $2 == $3 ]]; then pass "$1"; else
    miss "$1" "got '$(one_line "$2")', which does not match '$(one_line "$3")'"
  fi
}
# Runs a command with both streams caught: $out, $err, $code.
try() {
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  out=$(cat "$scratch/out") err=$(cat "$scratch/err")
}
lines_in() { if [ -n "$1" ]; then wc -l <<<"$1"; else echo 0; fi; }
lock_names() { sed -n 's/^RELOCK_LOCK_ROW([^"]*"\([^"]*\)".*/\1/p' locks/lock_list.def; }
option_names() { grep -o '"RELOCK_[A-Z_]*"' policy/options.def | tr -d '"'; }
# A C program from standard input: compile NAME [flags].
compile() {
  local name=$1
  shift
  gcc -O1 -D_GNU_SOURCE -x c -o "$scratch/$name" - "$@" -pthread
}
