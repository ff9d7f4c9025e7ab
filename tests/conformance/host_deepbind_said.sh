#!/bin/bash
# Dropping RTLD_DEEPBIND changes what the program asked for, so it is said, once, on stderr.
#
# usage: host_deepbind_said.sh BUILD_DIR    (run by run.sh, once for each configuration)
# conformance: any-lock

set -u
name=conformance/host_deepbind_said/${CONFIG:-default}
said=$(LD_PRELOAD=$1/librelock.so timeout -k 5 60 "$1/conformance/host_deepbind" loud 2>&1 >/dev/null)
if [ "$(grep -c '^relock: warning: .*RTLD_DEEPBIND' <<<"$said")" != 1 ]; then
  echo "not ok $name - not said exactly once: '$said'"
elif [ "$(wc -l <<<"$said")" != 1 ]; then
  echo "not ok $name - other words too: '$said'"
else
  echo "ok $name"
fi
