# Workloads that lean on locks: benchmarks of locks and of databases whose cost is their locks.
# Sourced by run_app.sh; helpers are described there.

app_sysbench_mutex() { # one hot pthread_mutex
  need sysbench; local l; l=$(n 4000000)
  clock; P sysbench mutex --threads="$THREADS" --mutex-num=1 --mutex-locks="$l" --mutex-loops=0 run >out.log 2>&1 || bad "exit $?"
  per_s $((THREADS * l)) locks/s
  grep -q "total number of events: *$THREADS$" out.log || bad "wrong number of events"
}
app_sysbench_threads() { # mutexes + sched_yield
  need sysbench; local e; e=$(n 3000)
  clock; P sysbench threads --threads=$((2 * THREADS)) --thread-yields=100 --thread-locks=2 --events="$e" --time=0 run >out.log 2>&1 || bad "exit $?"
  per_s "$e" events/s
  grep -q "total number of events: *$e$" out.log || bad "wrong number of events"
}
app_stress_mutex() { # PI-priority mutexes, condition-less
  need stress-ng; local o; o=$(n 400000)
  clock; P stress-ng --mutex 2 --mutex-ops "$o" --verify --metrics --temp-path "$W" >out.log 2>&1 || bad "exit $?: $(grep -iE 'fail|error' out.log | head -1)"
  per_s "$((2 * o))" ops/s
  grep -q 'successful run completed' out.log || bad "not completed"
}
app_stress_pthread() { # thread creation, mutex, cond, pthread_spin
  need stress-ng; local o; o=$(n 8000)
  clock; P stress-ng --pthread 2 --pthread-max 64 --pthread-ops "$o" --verify --metrics --temp-path "$W" >out.log 2>&1 || bad "exit $?: $(grep -iE 'fail|error' out.log | head -1)"
  per_s "$((2 * o))" threads/s
  grep -q 'successful run completed' out.log || bad "not completed"
}
app_pi_stress() { # priority inheritance mutexes, SCHED_FIFO threads, two groups
  need pi_stress; [ "$(id -u)" = 0 ] || need root
  local i; i=$(n 10000); clock; P timeout 60 pi_stress -g 1 -i "$i" -q >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$i" inversions/s; grep -qE 'Total inversion performed: [1-9]' out.log || bad "no inversions"
}
app_kyoto_mutex() { # its mutex, slotted, spin and rw locks, 4 threads
  need kcutiltest; local l; l=$(n 200000)
  clock; P kcutiltest mutex -th "$THREADS" "$l" >out.log 2>&1 || bad "exit $?"
  per_s "$((THREADS * l))" rounds/s; grep -q '^ok' out.log || bad "no ok"
}
app_kyoto_hash() { # file hash database: rwlocks, 4 threads
  need kchashtest; local l; l=$(n 60000)
  clock; P kchashtest wicked -th "$THREADS" -it 2 t.kch "$l" >out.log 2>&1 || bad "exit $?"
  per_s "$((2 * THREADS * l))" ops/s; grep -q '^ok' out.log || bad "no ok"
}
app_tokyo_hash() { # file hash database, rwlocks per record group
  need tchmttest; local l; l=$(n 60000)
  clock; P tchmttest typical t.tch "$THREADS" "$l" >out.log 2>&1 || bad "exit $?"
  per_s "$((THREADS * l))" ops/s; grep -q '^ok' out.log || bad "no ok"
}
app_rocksdb_cache() { # LRU block cache, mutex per shard
  need cache_bench; local o; o=$(n 300000)
  clock; P cache_bench -threads="$THREADS" -ops_per_thread="$o" -num_shard_bits=1 -cache_size=33554432 >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$((THREADS * o))" ops/s
  grep -qi 'Complete in' out.log || bad "no result"
}
app_jemalloc() { # jemalloc below: its arenas lock pthread mutexes inside malloc
  need db_bench ldb; local l=$LIBDIR/libjemalloc.so.2 k; [ -e $l ] || need libjemalloc.so.2
  k=$(n 40000); clock
  PRELOAD="${PRELOAD:+$PRELOAD:}$l" MALLOC_CONF=narenas:1,tcache:false P db_bench --db="$W/db" --benchmarks=fillrandom,readrandom --threads="$THREADS" --num="$k" --compression_type=none >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$((2 * THREADS * k))" ops/s
  ldb --db="$W/db" checkconsistency 2>&1 | grep -q '^OK' || bad "database not consistent"
}
