# Databases and caches, as servers and as tools. Sourced by run_app.sh.

mysql_app() { # TEST EVENTS
  need mariadbd mariadb-install-db sysbench mariadb
  local a="--no-defaults --datadir=$W/data --socket=$W/s --pid-file=$W/pid --user=root"
  mariadb-install-db --no-defaults --datadir="$W/data" --user=root --auth-root-authentication-method=normal --skip-test-db >inst.log 2>&1 || bad "install $(tail -1 inst.log)"
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} mariadbd $a --skip-networking --innodb-buffer-pool-size=128M --innodb-flush-log-at-trx-commit=0 --skip-log-bin --innodb-log-file-size=64M
  wait_for 60 mariadb --no-defaults -S "$W/s" -uroot -e 'select 1'
  mariadb --no-defaults -S "$W/s" -uroot -e 'create database sbtest'
  local sb="--mysql-socket=$W/s --mysql-user=root --tables=2 --table-size=4000 --threads=$THREADS --time=0"
  sysbench "$1" $sb prepare >prep.log 2>&1 || bad "prepare $(tail -1 prep.log)"
  clock; sysbench "$1" $sb --events="$2" run >out.log 2>&1 || bad "load $(grep -i fatal out.log | head -1)"
  per_s "$2" transactions/s
  grep -qE "^ *transactions: *$2 " out.log || bad "transactions missing" # deadlocks are retried
  mariadb --no-defaults -S "$W/s" -uroot -N -e 'check table sbtest.sbtest1, sbtest.sbtest2' >chk.log 2>&1
  [ "$(grep -c 'OK$' chk.log)" = 2 ] || bad "check table: $(cat chk.log)"
  stop "$SRV" TERM 30
  [ "$STOP_RC" = 0 ] || bad "mariadbd exit $STOP_RC"
}
app_mariadb_rw() { mysql_app oltp_read_write "$(n 2000)"; }
app_memcached() { # 4 worker threads, item and LRU locks
  need memcached memcaslap; local o; o=$(n 150000)
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} memcached -u root -l 127.0.0.1 -p "$PORT" -U 0 -t "$THREADS" -m 128
  wait_port "$PORT"
  clock; timeout 100 memcaslap -s 127.0.0.1:"$PORT" -T 2 -c 32 -x "$o" -X 256 --verify=0.1 >out.log 2>&1 || bad "load exit $?"
  per_s "$o" ops/s
  local g; g=$(grep -E '^(get_misses|verify_misses|verify_failed|packet_drop)' out.log | tr '\n' ' ')
  grep -q '^Run time' out.log || bad "no result"
  echo "$g" | grep -qE 'verify_failed: [1-9]|packet_drop: [1-9]' && bad "$g"
  exec 3<>/dev/tcp/127.0.0.1/"$PORT"; printf 'set k 0 0 5\r\nhello\r\nget k\r\nquit\r\n' >&3
  timeout 5 cat <&3 >reply.txt; exec 3<&-; grep -q hello reply.txt || bad "no reply after the load"
  stop "$SRV" INT
}
app_redis() { # io-threads 3: mutexes hand work to I/O threads
  need redis-server redis-benchmark redis-cli; local o; o=$(n 50000)
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} redis-server --bind 127.0.0.1 --port "$PORT" --io-threads 3 --io-threads-do-reads yes --save '' --appendonly yes --appendfsync everysec --dir "$W"
  wait_port "$PORT"
  clock; redis-benchmark -p "$PORT" --threads 2 -c 32 -n "$o" -P 8 -q incr ctr >out.log 2>&1 || bad "load exit $?"
  per_s "$o" ops/s
  redis-cli -p "$PORT" bgrewriteaof >/dev/null; sleep 0.3
  local c; c=$(redis-cli -p "$PORT" get ctr); [ "$c" -ge "$o" ] 2>/dev/null || bad "counter $c, not $o"
  redis-cli -p "$PORT" flushall async >/dev/null
  stop "$SRV" TERM; [ "$STOP_RC" = 0 ] || bad "exit $STOP_RC"
}
app_postgres() { # processes: semaphores and spinlocks of its own, fork per client
  local b=/usr/lib/postgresql/15/bin; need $b/initdb $b/pgbench setpriv
  local o; o=$(n 4000)
  local u="setpriv --reuid postgres --regid postgres --clear-groups env HOME=$W PGHOST=$W PGPORT=$PORT"
  [ "$(id -u)" = 0 ] || u="env HOME=$W PGHOST=$W PGPORT=$PORT"
  [ "$(id -u)" = 0 ] && chown postgres "$W"
  $u $b/initdb -D "$W/pg" -A trust --no-sync >init.log 2>&1 || bad "initdb $(tail -1 init.log)"
  serve $u env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} $b/postgres -D "$W/pg" -c listen_addresses= -c "unix_socket_directories=$W" -c fsync=off -c dynamic_shared_memory_type=posix
  wait_for 30 $u psql -d postgres -c 'select 1'
  $u $b/pgbench -i -q -s 2 postgres >pi.log 2>&1 || bad "pgbench -i $(tail -1 pi.log)"
  clock; $u $b/pgbench -n -c 4 -j 2 -t "$((o / 4))" postgres >out.log 2>&1 || bad "pgbench $(tail -1 out.log)"
  per_s "$o" transactions/s
  grep -q "actually processed: $o/$o" out.log || bad "transactions missing"
  [ "$($u psql -d postgres -Atc 'select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)')" = t ] || bad "sums differ"
  stop "$SRV" INT 20; [ "$STOP_RC" = 0 ] || bad "exit $STOP_RC"
}
shm_db() { D=$W/db; [ -w /dev/shm ] && D=$(mktemp -d /dev/shm/relock-app.XXXXXX) && ln -s "$D" "$W/shm"; mkdir -p "$D"; } # fsync costs nothing there
lmdb_text() { # DB ENTRIES
  printf 'VERSION=3\nformat=print\ndatabase=%s\ntype=btree\nmapsize=268435456\nmaxreaders=126\nHEADER=END\n' "$1"
  seq -f "k%08.0f" 1 "$2" | awk '{print " "$1; print " v"$1}'; echo DATA=END
}
app_lmdb() { # robust process-shared mutex: 3 writers in 3 processes
  need mdb_load mdb_stat; local r i j p=(); r=$(n 1500); shm_db
  for i in 1 2 3; do lmdb_text d$i "$r" >d$i.txt; done
  lmdb_text d0 1 | mdb_load "$D" || bad "create"
  clock
  for i in 1 2 3; do # each commit and each open takes the lock
    ( j=0; while [ $j -lt 60 ]; do P mdb_load -f d$i.txt "$D" || exit 1; j=$((j + 1)); done ) >l$i.log 2>&1 & p+=($!)
  done
  for i in "${p[@]}"; do wait "$i" || bad "mdb_load failed: $(cat l?.log | head -1)"; done
  per_s "$((3 * 60 * r))" puts/s
  for i in 1 2 3; do [ "$(P mdb_stat -s d$i "$D" | awk '/Entries/{print $2}')" = "$r" ] || bad "d$i lacks entries"; done
}
app_lmdb_killed() { # a writer is killed with the robust mutex held: the next one takes it over
  need mdb_load mdb_stat; local i w k; shm_db; k=$(n 10)
  lmdb_text d1 500 >d1.txt; lmdb_text d0 20000 | mdb_load "$D" || bad "create"; mkfifo f g
  exec 4<>f 5<>g; clock # a reader stuck in a pipe keeps the lock file in use
  env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} mdb_dump -s d0 "$D" >g 2>dump.log & PIDS+=($!); sleep 0.2
  for ((i = 0; i < k; i++)); do
    env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} mdb_load -f f "$D" >w.log 2>&1 & w=$!; PIDS+=($w)
    lmdb_text d2 50 | head -n 20 >&4; sleep 0.05; kill -KILL $w; wait $w 2>/dev/null
    P timeout 10 mdb_load -f d1.txt "$D" >l.log 2>&1 || bad "round $i: load after the death: exit $? $(tail -1 l.log)"
  done
  per_s "$k" deaths/s; kill -KILL "${PIDS[0]}"; exec 4>&- 5>&-
  [ "$(P mdb_stat -s d1 "$D" | awk '/Entries/{print $2}')" = 500 ] || bad "entries"
}
app_sqlite_py() { # python3 threads on one sqlite connection each, recursive mutexes
  need python3; cat >t.py <<'X'
import sqlite3, threading, sys
n = int(sys.argv[1])
db = sqlite3.connect("t.db", check_same_thread=False, isolation_level=None, timeout=60)
db.execute("pragma journal_mode=wal"); db.execute("pragma synchronous=off")
db.execute("create table t(a integer primary key, b)")
lk = threading.Lock()
def w(k):
    for i in range(n):
        with lk: db.execute("insert into t(b) values(?)", (k * n + i,))
def r():
    for i in range(n):
        db.execute("select count(*) from t where a < 50").fetchone()
ts = [threading.Thread(target=w, args=(k,)) for k in range(3)] + [threading.Thread(target=r)]
[t.start() for t in ts]; [t.join() for t in ts]
print(*db.execute("select count(*), sum(b) from t").fetchone(), db.execute("pragma integrity_check").fetchone()[0])
X
  local k; k=$(n 30000); clock; P python3 t.py "$k" >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$((4 * k))" statements/s
  [ "$(cat out.log)" = "$((3 * k)) $((3 * k * (3 * k - 1) / 2)) ok" ] || bad "result $(cat out.log)"
}
