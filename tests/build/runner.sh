#!/bin/bash
# The runner of the conformance programs, on programs that misbehave when they are preloaded: a
# runner that lets one of them pass would let everything pass.
. "$(dirname "$0")/common.sh"

suite=$scratch/tests/conformance
mkdir -p "$suite" "$scratch/build/conformance"
cp tests/conformance/run.sh tests/conformance/run.py "$suite"
cp "$PRELOAD" "$scratch/build/"
program() { # NAME DIRECTIVE SCRIPT: $preloaded is set in a preloaded run
  echo "// conformance: $2" >"$suite/$1.c"
  printf '#!/bin/bash\npreloaded=$LD_PRELOAD\nunset LD_PRELOAD\n%s\n' "$3" \
    >"$scratch/build/conformance/$1"
  chmod +x "$scratch/build/conformance/$1"
}
program same args='two words' 'echo "$# $2"; echo noise >&2'
program other_line serial 'echo one; [ -z "$preloaded" ] && echo two || echo three'
program short_line serial 'echo one; [ -n "$preloaded" ] || echo two'
program other_status serial '[ -z "$preloaded" ] || exit 3'
program crashes serial '[ -z "$preloaded" ] || kill -SEGV $$'
program says_more serial 'echo usual >&2; [ -z "$preloaded" ] || echo warning >&2'
program hangs serial '[ -z "$preloaded" ] || { sleep 60.0625 & wait; }'
program fails_bare serial 'echo broken >&2; exit 7'
program left_out 'skip=tas-* no use' 'true'
run() { CONFIGS=tas-park TIMEOUT=1 BUILD=$scratch/build "$suite/run.sh" "$@" 2>&1; }

expect "conformance runner: what agrees passes, with its arguments" "$(run same)" \
  "ok conformance/same/bare ok conformance/same/tas-park"
differs() { # NAME REASON
  expect "conformance runner: $1 is seen" "$(run "$1" | tail -n 1)" \
    "not ok conformance/$1/tas-park - $2"
}
differs other_line "stdout differs at line 2: 'three', bare: 'two'"
differs short_line "stdout differs at line 2: '', bare: 'two'"
differs other_status "exit status 3, bare: 0"
differs crashes "signal 11, bare: 0"
differs says_more "stderr: 'warning'"
differs hangs "timeout after 1 s, bare: 0"
expect_none "conformance runner: nothing of a program that hung stays behind" \
  "$(pgrep -f 'sleep 60[.]0625')"
expect "conformance runner: a bare run that fails fails" "$(run fails_bare | head -n 1)" \
  "not ok conformance/fails_bare/bare - exit status 7: broken"
expect "conformance runner: a configuration that is skipped says why" \
  "$(run left_out | tail -n 1)" "# skipped conformance/left_out/tas-park - no use"
expect "conformance runner: a missing program fails" "$(run none)" \
  "not ok conformance/none - no such program"
run other_line >/dev/null
expect "conformance runner: its exit status says that something failed" $? 1
