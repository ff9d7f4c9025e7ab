#!/bin/bash
# tests/layers.sh - the rules about the shape of the code that a script can check: who may include
# whom, sizes of files and functions, where the environment is read, words that do not belong.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
export LC_ALL=C.UTF-8

failed=0
report() { # NAME FINDINGS
  if [ -z "$2" ]; then
    echo "ok $1"
  else
    failed=1
    echo "$2" | sed 's/^/  /'
    echo "not ok $1 - $(echo "$2" | wc -l) finding(s), the first: $(echo "$2" | head -n 1)"
  fi
}

sources() { # FOLDER...: C and C++ files below them
  find "$@" -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.c' -o -name '*.def' \) 2>/dev/null |
    sort
}
texts() { # everything that a commit would hold
  git ls-files --cached --others --exclude-standard 2>/dev/null | grep . ||
    find . -type f -not -path './.git/*' -not -path './build*'
}
# Source lines as FILE:LINE:TEXT without comments and string contents, so that prose about a thing
# is not taken for its use.
code() { awk -f tests/strip_comments.awk -- "$@" /dev/null; }

# Prints FILE:LINE: includes PATH for every include of ours in FOLDER that PATTERN does not allow.
includes() { # FOLDER PATTERN [find options]
  local folder=$1 allowed=$2 file line path; shift 2
  while read -r file; do
    while IFS=: read -r line path; do
      path=$(sed 's/^[^"]*"\([^"]*\)".*/\1/' <<<"$path")
      if [ -e "$(dirname "$file")/$path" ]; then
        path=$(realpath --relative-to=. "$(dirname "$file")/$path")
      fi
      [[ $path =~ $allowed ]] || echo "$file:$line: includes $path"
    done < <(grep -nE '^ *# *include *"' "$file")
  done < <(find "$folder" -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.c' \) "$@" 2>/dev/null)
}

report "locks/ includes itself alone" "$(includes locks '^locks/')"
report "policy/ includes itself, the lock list and the budget" \
  "$(includes policy '^(policy/|locks/(lock_list\.def|budget\.h)$)')"
report "interpose/ includes locks/, policy/ and itself" \
  "$(includes interpose '^(locks|policy)/|^interpose/([^/]*|profile/profile_format\.h)$' \
    -not -path 'interpose/profile/*')"
report "interpose/profile/ includes itself and the two agreed headers" \
  "$(includes interpose/profile '^interpose/profile/|^interpose/(profiler_api|profile_format)\.h$')"
report "tools/ includes itself, locks/, policy/, lists and the profile format" \
  "$(includes tools '^(tools|locks|policy)/|\.def$|(^|/)profile_format\.h$')"

report "only the platform names atomics, futexes, clocks and randomness in locks/" \
  "$(sources locks | grep -v '/linux_platform\.h$' | xargs -r awk -f tests/strip_comments.awk -- |
    grep -E 'std::atomic|__atomic_|__sync_|\bsyscall *\(|SYS_futex|clock_gettime|std::chrono|\brand *\(')"
report "locks/ neither allocates, prints nor reads the environment" \
  "$(code $(sources locks) |
    grep -E '\b(malloc|calloc|realloc|free|printf|fprintf|getenv|secure_getenv|std::cout|std::cerr) *\(|\bnew ')"
report "the environment is read in policy/ alone" \
  "$(code $(sources locks interpose tools) | grep -E '\b(secure_)?getenv *\(|\benviron\b *\[')"
report "neither exceptions nor run-time types on the preloaded side" \
  "$(code $(sources locks policy $(find interpose -maxdepth 1 -type f 2>/dev/null)) |
    grep -E '\b(throw|dynamic_cast|typeid|std::(string|vector|map|function|mutex|thread))\b[^_]')"

report "files stay under 500 lines" \
  "$(texts | grep -vE '^LICENSE$|\.(md|json|txt|html|prof)$|/golden/' | while read -r file; do
    [ -f "$file" ] || continue
    lines=$(wc -l <"$file")
    [ "$lines" -lt 500 ] || echo "$file: $lines lines"
  done)"
report "functions stay under 50 lines, slow paths of locks under 100" \
  "$(awk -f tests/function_sizes.awk -- $(sources locks policy interpose tools tests | grep -v '\.def$') \
    /dev/null)"
report "lines stay within 100 columns" \
  "$(sources locks policy interpose tools tests | grep -v '\.def$' | xargs -r grep -nE '^.{101,}' |
    cut -c1-120)"

# Written with brackets so that the list does not find itself.
banned='/wor[k]/|/tmp/b[-]|\bTOD[O]\b|\bFIXM[E]\b|\bXX[X]\b|\bHAC[K]\b'
report "no machine paths and no notes to self" \
  "$(texts | while read -r file; do [ -f "$file" ] && echo "$file"; done |
    xargs -r -d '\n' grep -nIE "$banned" | cut -c1-160)"

if command -v clang-format >/dev/null && [ -f .clang-format ]; then
  report "sources are formatted" \
    "$(sources locks policy interpose tools tests | grep -v '\.def$' |
      xargs -r clang-format --dry-run 2>&1 | grep 'warning:' | cut -d: -f1 | sort | uniq -c |
      awk '{ print $2 ": " $1 " place(s); make format" }')"
else
  echo "  clang-format is not installed: formatting not looked at"
fi
exit $failed
