#!/bin/bash
# Runs the conformance programs bare and then under librelock.so, and demands the same behaviour.
#
#   run.sh [BUILD_DIR] [--quick] [NAME...]
#
# BUILD_DIR ($BUILD or build without one): BUILD_DIR/conformance/NAME is the compiled program. A preloaded run must print the same stdout,
# leave with the same exit status and add nothing to stderr. One line per case:
#   ok conformance/NAME/CONFIG
#   not ok conformance/NAME/CONFIG - reason
#
# A CONFIG is LOCK-WAIT (tas-adaptive, cna-park), LOCK-profile or LOCK-ruled (ruled.rules picks a
# lock for each object). Environment:
#   CONFIGS  the configurations to run, in place of the default ones; "bare" alone: no preload
#   JOBS     programs that run side by side (2)
#   TIMEOUT  seconds a single run may take (60)
#   TIMES    set: how long each run took, as a comment line
#   KEEP     a directory in which the outputs of failed runs are kept
#
# A program may say, in comment lines of its own:
#   // conformance: skip=CONFIGPATTERN reason    (a shell pattern: *-profile)
#   // conformance: any-lock                     (nothing in it depends on the lock: make test runs it
#                                                with a few configurations, SLOW=1 with all)
#   // conformance: args=ARGUMENTS
#   // conformance: serial                       (never beside another program)
#
# NAME.sh next to the programs is run instead of NAME, for preloads that are out of the ordinary:
# once for each configuration, with BUILD_DIR as its argument, CONFIG and the RELOCK_ variables in
# its environment and nothing preloaded. It prints its own ok lines. Scripts take the same comment
# lines, behind a # in place of //.

set -u
ulimit -c 0
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")

locks_known() {
  local list=$here/../../locks/lock_list.def names=
  if [ -r "$list" ]; then
    names=$(sed -n 's/^ *RELOCK_LOCK_ROW([^"]*"\([^"]*\)".*/\1/p' "$list")
  fi
  # shellcheck disable=SC2086  # a list of words
  echo ${names:-glibc tas}
}

default_configs() {
  local quick=$1 locks lock configs=
  locks=" $(locks_known) "
  for lock in $locks; do
    case $quick/$lock in
      0/auto) ;;  # tas under another name, or cna
      0/* | 1/tas | 1/qspinlock | 1/glibc) configs+=" $lock-adaptive" ;;
    esac
  done
  if [ -n "${SLOW:-}" ]; then
    for lock in $locks; do configs+=" $lock-spin $lock-park $lock-profile"; done
    configs+=" tas-ruled glibc-ruled qspinlock-ruled"
  elif [ "$quick" = 0 ]; then
    configs+=" tas-spin cna-park glibc-profile tas-profile"
  else
    configs+=" tas-profile"
  fi
  echo "$configs"
}

# The environment of a configuration, as NAME=VALUE words.
config_env() {
  local config=$1 scratch=$2
  echo "RELOCK_LOCK=${config%-*}"
  case ${config##*-} in
    profile)
      echo "RELOCK_PROFILE=1 RELOCK_LOG_FILE=/dev/null RELOCK_PROFILE_DIR=$scratch/profiles"
      ;;
    ruled) echo "RELOCK_RULES=$here/ruled.rules" ;;
    *) echo "RELOCK_WAIT=${config##*-}" ;;
  esac
}

source_of() {
  local name=$1 ending
  for ending in sh c cpp; do
    if [ -r "$here/$name.$ending" ]; then
      echo "$here/$name.$ending"
      return
    fi
  done
}

# directive FILE WORD: the rest of every `conformance: WORD...` line.
directive() { sed -n "s,^ *\(//\|#\) *conformance: *$2,,p" "$1"; }

# Enough for a program that says any-lock: the two ends of the family, the C library's, a profile.
few_configs=" tas-adaptive cna-park glibc-adaptive glibc-profile tas-profile "

# configs_of SOURCE: those of CONFIGS that a program is run with.
configs_of() {
  local config
  for config in $CONFIGS; do
    if [ -n "$FEW" ] && [[ $few_configs != *" $config "* ]] && directive "$1" any-lock | grep -q ''
    then continue
    fi
    [ "$config" = bare ] || echo "$config"
  done
}

skip_reason() {
  local source=$1 config=$2 pattern reason
  while read -r pattern reason; do
    # shellcheck disable=SC2053  # the right side is meant as a pattern
    if [[ $config == $pattern ]]; then
      echo "${reason:-no reason given}"
      return
    fi
  done < <(directive "$source" skip=)
}

# status_word STATUS: what an exit status of timeout(1) means.
status_word() {
  case $1 in
    124 | 137) echo "timeout after $TIMEOUT s or killed" ;;
    1[3-9][0-9]) echo "signal $(($1 - 128))" ;;
    *) echo "exit status $1" ;;
  esac
}

# difference DIR TAG: why the run TAG differs from the bare one; nothing if it does not.
difference() {
  local dir=$1 tag=$2 status bare_status line added
  status=$(<"$dir/$tag.status")
  bare_status=$(<"$dir/bare.status")
  if [ "$status" != "$bare_status" ]; then
    echo -n "$(status_word "$status"), bare: $bare_status; "
  fi
  if ! cmp -s "$dir/bare.out" "$dir/$tag.out"; then
    line=$(cmp "$dir/bare.out" "$dir/$tag.out" 2>&1 | sed -n 's/.*line \([0-9]*\).*/\1/p')
    line=${line:-1}
    if ! sed -n "${line}p" "$dir/$tag.out" | grep -q .; then
      line=$(($(wc -l <"$dir/$tag.out") + 1))
    fi
    echo -n "stdout differs at line $line: '$(sed -n "${line}p" "$dir/$tag.out")'," \
      "bare: '$(sed -n "${line}p" "$dir/bare.out")'; "
  fi
  added=$(diff "$dir/bare.err" "$dir/$tag.err" | sed -n 's/^> //p' | head -1)
  if [ -n "$added" ]; then
    echo -n "stderr: '$added'; "
  fi
}

# run_one DIR TAG PROGRAM ARGS -- ENV...: one run; its stdout, stderr and status land in DIR.
run_one() {
  local dir=$1 tag=$2 program=$3 args=$4 start=${EPOCHREALTIME/./}
  shift 4
  # The group's own stderr takes the shell's remark about a program that a signal ended.
  {
    # shellcheck disable=SC2086  # ARGS is a list of words
    timeout -k 5 "$TIMEOUT" env "$@" "$program" $args \
      <"/dev/null" >"$dir/$tag.out" 2>"$dir/$tag.err"
    echo $? >"$dir/$tag.status"
  } 2>/dev/null
  if [ -n "${TIMES:-}" ]; then
    echo "# $(((${EPOCHREALTIME/./} - start) / 1000)) ms ${program##*/}/$tag"
  fi
}

report() {
  local name=$1 config=$2 reason=$3 dir=$4
  if [ -z "$reason" ]; then
    echo "ok conformance/$name/$config"
    return
  fi
  echo "not ok conformance/$name/$config - ${reason%; }"
  if [ -n "${KEEP:-}" ]; then
    mkdir -p "$KEEP"
    for part in out err status; do
      cp "$dir/bare.$part" "$KEEP/$name.bare.$part" 2>/dev/null
      cp "$dir/$config.$part" "$KEEP/$name.$config.$part" 2>/dev/null
    done
  fi
}

run_script() {
  local name=$1 source=$2 dir=$3 config reason
  for config in $(configs_of "$source"); do
    reason=$(skip_reason "$source" "$config")
    if [ -n "$reason" ]; then
      echo "# skipped conformance/$name/$config - $reason"
      continue
    fi
    mkdir -p "$dir/profiles"
    # shellcheck disable=SC2046  # a list of NAME=VALUE words
    timeout -k 5 $((TIMEOUT * 2)) env CONFIG="$config" $(config_env "$config" "$dir") \
      bash "$source" "$BUILD_DIR" <"/dev/null" >"$dir/script.out"
    local status=$?
    cat "$dir/script.out"
    if [ "$status" = 124 ] || ! grep -q '^\(not \)\?ok ' "$dir/script.out"; then
      echo "not ok conformance/$name/$config - the script printed no case: exit status $status"
    fi
    rm -rf "$dir/profiles"
  done
}

run_program() {
  local name=$1 source=$2 dir=$3 program=$BUILD_DIR/conformance/$1 config reason args
  if [ ! -x "$program" ]; then
    echo "not ok conformance/$name/bare - $program is not built"
    return
  fi
  args=$(directive "$source" args=)
  run_one "$dir" bare "$program" "$args" LC_ALL=C
  reason=
  if [ "$(<"$dir/bare.status")" != 0 ]; then
    reason="$(status_word "$(<"$dir/bare.status")"): $(head -1 "$dir/bare.err")"
  fi
  report "$name" bare "$reason" "$dir"
  for config in $(configs_of "$source"); do
    reason=$(skip_reason "$source" "$config")
    if [ -n "$reason" ]; then
      echo "# skipped conformance/$name/$config - $reason"
      continue
    fi
    mkdir -p "$dir/profiles"
    # shellcheck disable=SC2046  # a list of NAME=VALUE words
    run_one "$dir" "$config" "$program" "$args" LC_ALL=C $(config_env "$config" "$dir") \
      LD_PRELOAD="$BUILD_DIR/librelock.so"
    rm -rf "$dir/profiles"
    report "$name" "$config" "$(difference "$dir" "$config")" "$dir"
  done
}

# The inner call, one per program: run.sh --one NAME, with BUILD_DIR, CONFIGS and TIMEOUT exported.
run_name() {
  local name=$1 source dir
  source=$(source_of "$name")
  if [ -z "$source" ]; then
    echo "not ok conformance/$name - no such program"
    return
  fi
  dir=$(mktemp -d "${TMPDIR:-/tmp}/conformance.XXXXXX") || exit 1
  case $source in
    *.sh) run_script "$name" "$source" "$dir" ;;
    *) run_program "$name" "$source" "$dir" ;;
  esac
  rm -rf "$dir"
}

all_names() {
  local file name
  for file in "$here"/*.c "$here"/*.cpp "$here"/*.sh; do
    [ -e "$file" ] || continue
    name=$(basename "${file%.*}")
    case $name in
      run | lib_*) ;;
      *) echo "$name" ;;
    esac
  done | sort -u
}

if [ "${1:-}" = --one ]; then
  run_name "$2"
  exit
fi

usage="usage: run.sh [BUILD_DIR] [--quick] [NAME...]"
directory=${BUILD:-$here/../../build}
if [ $# -ge 1 ] && [ -d "$1" ]; then
  directory=$1
  shift
fi
BUILD_DIR=$(cd "$directory" 2>/dev/null && pwd) || {
  echo "$usage" >&2
  exit 2
}
quick=0
names=()
for word in "$@"; do
  case $word in
    --quick) quick=1 ;;
    -*)
      echo "$usage" >&2
      exit 2
      ;;
    *) names+=("$word") ;;
  esac
done
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(all_names)
FEW=
[ -n "${CONFIGS:-}${SLOW:-}" ] || FEW=1
CONFIGS=${CONFIGS:-$(default_configs $quick)}
TIMEOUT=${TIMEOUT:-60}
export BUILD_DIR CONFIGS FEW TIMEOUT QUICK=$quick KEEP="${KEEP:-}"
unset LD_PRELOAD "${!RELOCK_@}"

if [ "$CONFIGS" != bare ] && [ ! -r "$BUILD_DIR/librelock.so" ]; then
  echo "not ok conformance/librelock - $BUILD_DIR/librelock.so is not built"
  CONFIGS=bare
fi

serial=()
parallel=()
for name in "${names[@]}"; do
  source=$(source_of "$name")
  if [ -n "$source" ] && grep -q '^ *\(//\|#\) *conformance: *serial' "$source"; then
    serial+=("$name")
  else
    parallel+=("$name")
  fi
done
if [ ${#parallel[@]} -gt 0 ]; then
  printf '%s\n' "${parallel[@]}" | xargs -P "${JOBS:-2}" -I{} "$self" --one {}
fi
for name in ${serial[@]+"${serial[@]}"}; do
  "$self" --one "$name"
done
