#!/bin/bash
# run_app.sh NAME [PRELOAD] - runs one real program's workload from start to end, with PRELOAD (a
# value for LD_PRELOAD) given to the program under test only, checks the result and prints
#     NAME OK secs=S thru=N unit     or     NAME BAD reason
# run_app.sh --list: names.  run_app.sh --packages: the Debian packages they come from.
#
# SCALE (1) multiplies the work, THREADS (4) sets the threads of the lock-bound ones, APPS_TMP is
# the folder for scratch, KEEP=1 keeps it, APP_PORT (21500) is the first loopback port used. Every
# other variable reaches the program. Exit status 0 OK, 1 BAD, 2 usage, 77 not installed.
#
# A workload is a function app_NAME in one of the apps_*.sh files. It runs in an empty folder $W,
# asks need for its commands, starts the program under test through P or serve, calls bad at the
# first thing that is wrong, and sets its throughput with clock and per_s. Servers listen on
# loopback alone and are stopped by their recorded process ids.
set -u
export PATH=/usr/bin:/usr/sbin:/bin:/sbin:/usr/games LC_ALL=C.UTF-8
unset LD_PRELOAD
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/app_helpers.sh"
for group in "$HERE"/apps_*.sh; do . "$group"; done

case ${1:---help} in
  --list) compgen -A function | sed -n 's/^app_//p'; exit 0 ;;
  --packages)
    echo sysbench mariadb-server memcached libmemcached-tools redis-server redis-tools stress-ng \
      rocksdb-tools pigz zstd xz-utils openjdk-17-jdk-headless nginx-core postgresql-15 git \
      imagemagick knot unbound dnsperf haproxy rsyslog apache2-utils kyotocabinet-utils \
      tokyocabinet-bin lmdb-utils mold rt-tests ruby python3 libjemalloc2 \
      libtcmalloc-minimal4 ripgrep busybox-static gcc g++ make chromium curl
    exit 0 ;;
  -*) sed -n '2,14p' "$0"; exit 2 ;;
esac
NAME=$1 PRELOAD=${2:-}
declare -F "app_$NAME" >/dev/null || { echo "$NAME BAD no such app"; exit 2; }
SCALE=${SCALE:-1} THREADS=${THREADS:-4} PORT=${APP_PORT:-21500}
LIBDIR=/usr/lib/$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
APPS_TMP=${APPS_TMP:-${TMPDIR:-/tmp}/relock-apps}
mkdir -p "$APPS_TMP" && chmod 1777 "$APPS_TMP" 2>/dev/null
W=$(mktemp -d "$APPS_TMP/$NAME.XXXXXX") || exit 2
chmod 755 "$W"; cd "$W" || exit 2
PIDS=() THRU="" RESULT="" STOP_RC=0

trap 'RESULT="BAD timed out or interrupted"; finish' TERM INT
trap 'RESULT=${RESULT:-BAD script error}; finish' EXIT
T0=$EPOCHREALTIME
"app_$NAME"
finish
