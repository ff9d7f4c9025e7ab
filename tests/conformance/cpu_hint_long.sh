#!/bin/bash
# cpu_hint_long.sh - cpu_hint with a spin allowance of tens of milliseconds, which a waiter spends
# only where the owner can run meanwhile.
# conformance: skip=glibc-* the C library's own locks do not spin
# conformance: skip=*-spin spinning is what RELOCK_WAIT=spin asks for
set -u
BUILD=$1
name=conformance/cpu_hint_long/$CONFIG
if output=$(RELOCK_SPIN_PAUSES=1000000 RELOCK_LOOK_PAUSES=1000000 RELOCK_LOOK_STEP=1000 \
  LD_PRELOAD=$BUILD/librelock.so timeout 40 "$BUILD/conformance/cpu_hint" 2>&1)
then echo "ok $name"
else echo "not ok $name - exit status $?: $output"
fi
