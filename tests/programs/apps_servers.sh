# Network servers and what they need to be configured and loaded. Sourced by run_app.sh.

http_load() { # URL COUNT [CONNECTIONS]: ab keeps count exactly
  clock; timeout 100 ab -q -k -n "$2" -c "${3:-16}" "$1" >ab.log 2>&1 || bad "ab: $(tail -1 ab.log)"
  per_s "$2" requests/s
  grep -q "^Complete requests: *$2$" ab.log || bad "requests missing"
  grep -q "^Failed requests: *0$" ab.log || bad "$(grep '^Failed' ab.log)"
  grep -q "^Non-2xx" ab.log && bad "$(grep '^Non-2xx' ab.log)"
  return 0
}
nginx_conf() { # PORT ROOT
  cat >nginx.conf <<X
daemon off; worker_processes 2; user root; pid $W/nginx.pid; error_log $W/error.log;
thread_pool p threads=4 max_queue=65536;
events { worker_connections 512; }
http { access_log off; client_body_temp_path $W/b; proxy_temp_path $W/p; fastcgi_temp_path $W/f; uwsgi_temp_path $W/u; scgi_temp_path $W/s;
 keepalive_requests 1000000;
 server { listen 127.0.0.1:$1; root $2; location / { aio threads=p; sendfile off; output_buffers 2 16k; } } }
X
}
app_nginx() { # aio threads: a pool per worker, mutex + cond per request
  need nginx ab curl; mkdir www; data www/f 1; head -c 65536 www/f >www/g
  nginx_conf "$PORT" "$W/www"
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} nginx -p "$W" -c "$W/nginx.conf"
  wait_port "$PORT"
  http_load "http://127.0.0.1:$PORT/g" "$(n 20000)"
  curl -s "http://127.0.0.1:$PORT/f" | cmp -s - www/f || bad "wrong content"
  stop "$SRV" QUIT; [ "$STOP_RC" = 0 ] || bad "exit $STOP_RC"
}
app_haproxy() { # 4 threads; locks mostly its own
  need haproxy ab
  cat >h.cfg <<X
global
  nbthread 4
  maxconn 1000
defaults
  mode http
  timeout client 10s
  timeout server 10s
  timeout connect 5s
frontend f
  bind 127.0.0.1:$PORT
  stick-table type ip size 1k expire 30s store http_req_rate(10s)
  http-request track-sc0 src
  http-request return status 200 content-type text/plain string "hello from haproxy"
X
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} haproxy -db -f h.cfg
  wait_port "$PORT"
  http_load "http://127.0.0.1:$PORT/" "$(n 100000)"
  curl -s "http://127.0.0.1:$PORT/" | grep -q 'hello from haproxy' || bad "wrong content"
  stop "$SRV" TERM
}
dns_zone() {
  { echo '$ORIGIN example.test.'; echo '$TTL 3600'; echo '@ SOA ns hostmaster 1 3600 600 86400 60'; echo '@ NS ns'; echo 'ns A 127.0.0.1'
    awk 'BEGIN{for(i=0;i<5000;i++)printf "h%d A 192.0.2.%d\n",i,i%250+1}'; } >example.test.zone
  awk 'BEGIN{for(i=0;i<5000;i++)printf "h%d.example.test A\n",(i*7919)%5000}' >q.txt
}
dns_load() { # PORT QUERIES
  clock; timeout 100 dnsperf -s 127.0.0.1 -p "$1" -d q.txt -c 8 -T 2 -n $(($2 / 5000)) -q 200 >out.log 2>&1 || bad "dnsperf: $(tail -1 out.log)"
  per_s "$2" queries/s
  local ok lost; ok=$(sed -n 's/.*NOERROR \([0-9]*\) .*/\1/p' out.log); lost=$(awk '/Queries lost/{print $3}' out.log)
  [ "${ok:-0}" -ge $(($2 * 98 / 100)) ] || bad "NOERROR ${ok:-none} of $2, lost $lost"
}
knot_conf() {
  cat >knot.conf <<X
server:
    rundir: "$W"
    listen: 127.0.0.1@$1
    udp-workers: 2
    tcp-workers: 2
    background-workers: 2
database:
    storage: "$W/kdb"
log:
  - target: stdout
    any: warning
zone:
  - domain: example.test
    storage: "$W"
    file: example.test.zone
    zonefile-sync: -1
X
}
app_knot() {
  need knotd dnsperf; dns_zone; knot_conf "$PORT"
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} knotd -c knot.conf; wait_port "$PORT"; sleep 0.3
  dns_load "$PORT" "$(n 200000)"
  stop "$SRV" TERM; [ "$STOP_RC" = 0 ] || bad "exit $STOP_RC"
}
app_unbound() { # pthread_spin (quick locks), rwlocks, 4 threads; forwards to a native knotd
  need unbound knotd dnsperf; dns_zone; knot_conf $((PORT + 1))
  serve knotd -c knot.conf; local k=$SRV; wait_port $((PORT + 1))
  cat >u.conf <<X
server:
  interface: 127.0.0.1@$PORT
  num-threads: $THREADS
  so-reuseport: yes
  username: ""
  chroot: ""
  directory: "$W"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  do-not-query-localhost: no
  module-config: "iterator"
  access-control: 127.0.0.0/8 allow
  local-zone: "test." nodefault
  msg-cache-slabs: 1
  rrset-cache-slabs: 1
  infra-cache-slabs: 1
  key-cache-slabs: 1
remote-control:
  control-enable: no
stub-zone:
  name: "example.test"
  stub-addr: 127.0.0.1@$((PORT + 1))
X
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} unbound -d -c u.conf; wait_port "$PORT"
  dns_load "$PORT" "$(n 200000)"
  stop "$SRV" TERM; [ "$STOP_RC" = 0 ] || bad "exit $STOP_RC"; stop "$k" TERM
}
app_rsyslog() { # queues with worker threads: mutex + cond per message
  need rsyslogd python3; local k; k=$(n 200000)
  cat >r.conf <<X
module(load="imtcp" MaxSessions="50")
global(workDirectory="$W")
main_queue(queue.type="LinkedList" queue.size="100000" queue.workerThreads="4" queue.workerThreadMinimumMessages="100" queue.dequeueBatchSize="16")
input(type="imtcp" port="$PORT" address="127.0.0.1")
template(name="t" type="string" string="%msg%\n")
action(type="omfile" file="$W/out.txt" template="t" queue.type="FixedArray" queue.size="100000" queue.workerThreads="4" queue.workerThreadMinimumMessages="100" queue.dequeueBatchSize="16" queue.timeoutShutdown="20000" queue.timeoutEnqueue="60000")
X
  serve env ${PRELOAD:+LD_PRELOAD="$PRELOAD"} rsyslogd -n -i "$W/r.pid" -f "$W/r.conf"; wait_port "$PORT"
  cat >c.py <<'X'
import socket, sys, threading
port, n = int(sys.argv[1]), int(sys.argv[2])
def w(k):
    s = socket.create_connection(("127.0.0.1", port))
    for b in range(0, n, 500):
        s.sendall(b"".join(b"<13>Jan  1 00:00:00 h t: m%d_%d\n" % (k, i) for i in range(b, min(n, b + 500))))
    s.shutdown(socket.SHUT_WR); s.close()
ts = [threading.Thread(target=w, args=(k,)) for k in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
X
  clock; python3 c.py "$PORT" $((k / 4)) || bad "sender"
  local i; for ((i = 0; i < 1200; i++)); do [ "$(wc -l <out.txt 2>/dev/null || echo 0)" -ge "$k" ] && break; sleep 0.05; done
  per_s "$k" messages/s
  stop "$SRV" TERM 25
  [ "$(grep -oE 'm[0-3]_[0-9]+$' out.txt | sort -u | wc -l)" = "$k" ] || bad "$(wc -l <out.txt) lines, not $k different"
}
