#!/bin/bash
# Runs the conformance programs bare and under librelock.so; run.py beside it says how, and what a
# program and the environment may ask for. A version manager's python3 would take a second to start.
exec "$(PATH=/usr/bin:$PATH command -v python3)" "$(dirname "$(readlink -f "$0")")/run.py" "$@"
