#!/bin/bash
# mutex_admitted.sh - the hammering program with other limits of the gate than the machine's own:
# with more than one thread let in, the release has to keep count of those that are on their way.
# conformance: skip=glibc-* the C library's own locks have no gate
# conformance: skip=*-spin no gate is at work
set -u
BUILD=$1
program=$BUILD/conformance/mutex_progress
for admitted in 1 2 3 4 24; do
  name="conformance/mutex_admitted/$CONFIG/$admitted"
  if output=$(RELOCK_ADMITTED=$admitted LD_PRELOAD=$BUILD/librelock.so timeout 40 "$program" 2>&1)
  then echo "ok $name"
  else echo "not ok $name - exit status $?: ${output##*$'\n'}"
  fi
done
