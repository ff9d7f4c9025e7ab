# What the workloads of run_app.sh share. Sourced by it.

# The program under test: the only thing that gets the preload.
P() { env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} "$@"; }

# AMOUNT scaled by SCALE, at least 1.
n() { awk -v a="$1" -v s="$SCALE" 'BEGIN { v = int(a * s); print v < 1 ? 1 : v }'; }

bad() { RESULT="BAD $*"; finish; }

need() { # COMMAND...
  local command
  for command; do
    command -v "$command" >/dev/null && continue
    trap - EXIT
    echo "$NAME SKIP no $command"
    rm -rf "$W"
    exit 77
  done
}

# Reads the state once: the shell may reap a process between two looks.
alive() { # PID
  local key value=
  { while read -r key value _; do [ "$key" = State: ] && break; done <"/proc/$1/status"; } \
    2>/dev/null || return 1
  [ -n "$value" ] && [ "$value" != Z ] && [ "$value" != X ]
}

tree() { # PID: it and its descendants, leaves first
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do tree "$child"; done
  echo "$1"
}

serve() { "$@" >server.log 2>&1 </dev/null & PIDS+=($!); SRV=$!; }

log_tail() { tail -c 300 server.log | tr '\n' ' '; }

wait_port() { # PORT [SECONDS]
  local i
  for ((i = 0; i < ${2:-30} * 20; i++)); do
    (exec 3<>/dev/tcp/127.0.0.1/"$1") 2>/dev/null && return 0
    alive "$SRV" || bad "server died at start: $(log_tail)"
    sleep 0.05
  done
  bad "server does not listen on $1"
}

wait_for() { # SECONDS COMMAND...
  local seconds=$1 i; shift
  for ((i = 0; i < seconds * 20; i++)); do
    "$@" >/dev/null 2>&1 && return 0
    alive "$SRV" || break
    sleep 0.05
  done
  bad "server not ready: $(log_tail)"
}

# A server must end by itself after the signal; STOP_RC is its exit status.
stop() { # PID [SIGNAL] [SECONDS]
  local i
  alive "$1" || bad "server was gone before its stop: $(log_tail)"
  kill -"${2:-TERM}" "$1"
  for ((i = 0; i < ${3:-15} * 20; i++)); do alive "$1" || break; sleep 0.05; done
  alive "$1" && bad "server did not stop on ${2:-TERM}"
  wait "$1"; STOP_RC=$?
  case $STOP_RC in 134 | 139) bad "server crashed at its stop ($STOP_RC)" ;; esac
  return 0
}

end_servers() {
  local pid i all=()
  for pid in ${PIDS[@]+"${PIDS[@]}"}; do alive "$pid" && all+=($(tree "$pid")); done
  [ ${#all[@]} -gt 0 ] && kill -TERM "${all[@]}" 2>/dev/null
  for pid in ${all[@]+"${all[@]}"}; do
    for ((i = 0; i < 40; i++)); do alive "$pid" || break; sleep 0.05; done
    alive "$pid" && kill -KILL "$pid" 2>/dev/null
  done
}

finish() { # ends the script
  trap - TERM INT EXIT
  end_servers
  RESULT=${RESULT:-OK}
  if [ "$RESULT" = OK ]; then
    echo "$NAME OK secs=$(awk -v a="$T0" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')" \
      "thru=${THRU:--}"
  else
    echo "$NAME $RESULT" | tr '\n' ' '; echo
    [ -n "${VERBOSE:-}" ] && tail -n 20 "$W"/*.log >&2
  fi
  cd /
  [ -L "$W/shm" ] && rm -rf "$(readlink "$W/shm")"
  if [ -n "${KEEP:-}" ]; then echo "kept $W" >&2; else rm -rf "$W"; fi
  [ "$RESULT" = OK ]
  exit $?
}

data() { # FILE MB: text, the same each time
  seq 1 99999999 2>/dev/null | head -c "$(($2 * 1048576))" >"$1"
}

same() { cmp -s "$1" "$2" || bad "$1 differs from $2"; }

clock() { C0=$EPOCHREALTIME; }

per_s() { # COUNT UNIT: throughput since clock
  THRU=$(awk -v a="$C0" -v b="$EPOCHREALTIME" -v c="$1" -v u="$2" \
    'BEGIN { printf "%.0f %s", c / (b - a), u }')
}
