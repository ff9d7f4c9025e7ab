#!/bin/bash
# What `make deps-test` would install. A machine that has everything never expands the list, so a
# fault in it shows only on a new one: two programs that no machine has stand in.
. "$(dirname "$0")/common.sh"

would_install() { # PROGRAMS: the packages that make would hand to deps.sh, or make's complaints
  make -s -n deps-test PROGRAMS="$1" 2>&1 | sed 's,^tools/deps\.sh *,,'
}
expect "deps-test names the packages of programs that are not there" \
  "$(would_install 'relock-none:package-a /nonexistent/relock.so:package-b sh:dash')" \
  "package-a package-b"
expect_none "deps-test asks for nothing where everything is there" \
  "$(would_install 'sh:dash /bin/sh:dash')"
