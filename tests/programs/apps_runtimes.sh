# Language runtimes, a browser, and a plugin that would bind past the preload.
# Sourced by run_app.sh.

app_java() { # monitors, queues, parallel collector; the source launcher runs javac
  need java; cat >L.java <<'X'
import java.util.concurrent.*; import java.util.concurrent.locks.*;
public class L { static long a, b, d; static final Object o = new Object();
 public static void main(String[] v) throws Exception { int n = Integer.parseInt(v[0]);
  ReentrantLock l = new ReentrantLock(true); var q = new ArrayBlockingQueue<Integer>(16); Thread[] t = new Thread[4];
  for (int i = 0; i < 4; i++) { int w = i; t[i] = new Thread(() -> { try { for (int k = 0; k < n; k++) {
    synchronized (o) { a++; if (k % 100 == 0) o.wait(0, 1000); } byte[] g = new byte[4000]; d += g.length & 0;
    if (k % 20 == 0) { l.lock(); try { b++; } finally { l.unlock(); } }
    if (k % 4 == 0) { if (w < 2) q.put(k); else q.take(); } } } catch (InterruptedException e) { throw new RuntimeException(e); } }); t[i].start(); }
  for (Thread x : t) x.join(); System.out.println(a + " " + b + " " + q.size()); } }
X
  local k; k=$(n 60000); clock; P java -XX:+UseParallelGC -Xmx256m L.java "$k" >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$((4 * k))" rounds/s
  [ "$(cat out.log)" = "$((4 * k)) $((4 * k / 20)) 0" ] || bad "result $(tail -1 out.log)"
}
app_python() { # GIL: mutex + cond, 4 threads and queues
  need python3; cat >t.py <<'X'
import threading, queue, sys
n = int(sys.argv[1]); q = queue.Queue(8); out = []; c = threading.Condition(); turn = 0
def prod(): [q.put(i) for i in range(n)]
def cons():
    s = 0
    while (v := q.get()) is not None: s += v
    out.append(s)
def ping(me):
    global turn
    for i in range(n // 4):
        with c:
            while turn % 2 != me: c.wait()
            turn += 1; c.notify_all()
a = [threading.Thread(target=prod) for _ in range(2)]; b = [threading.Thread(target=cons) for _ in range(2)]
p = [threading.Thread(target=ping, args=(i,)) for i in range(2)]
[t.start() for t in a + b + p]; [t.join() for t in a]; q.put(None); q.put(None); [t.join() for t in b + p]
print(sum(out), turn)
X
  local k; k=$(n 40000); clock; P /usr/bin/python3 t.py "$k" >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$((2 * k + k / 2))" items/s
  [ "$(cat out.log)" = "$((k * (k - 1))) $((k / 4 * 2))" ] || bad "result $(cat out.log)"
}
app_deepbind() { # a plugin loaded with RTLD_DEEPBIND shares a mutex with the program
  need gcc; cat >h.c <<'X'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static volatile long a; static long n; static void (*plug)(pthread_mutex_t *, volatile long *, long);
static void *own(void *x) { for (long i = 0; i < n; i++) { pthread_mutex_lock(&m); a = a + 1; pthread_mutex_unlock(&m); } return x; }
static void *other(void *x) { plug(&m, &a, n); return x; }
int main(int k, char **v) { n = atol(v[1]); void *h = dlopen("./p.so", RTLD_NOW | RTLD_DEEPBIND); if (!h) return puts(dlerror()), 2;
 plug = (void (*)(pthread_mutex_t *, volatile long *, long))dlsym(h, "plug"); pthread_t t[4];
 for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, i & 1 ? other : own, 0); for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
 printf("%ld\n", a); return a != 4 * n; }
X
  printf '#include <pthread.h>\nvoid plug(pthread_mutex_t *m, volatile long *a, long n) { for (long i = 0; i < n; i++) { pthread_mutex_lock(m); *a = *a + 1; pthread_mutex_unlock(m); } }\n' >p.c
  gcc -O1 -fPIC -shared p.c -o p.so && gcc -O1 h.c -o h -pthread -ldl || bad "compile"
  local k; k=$(n 300000); clock; P timeout 30 ./h "$k" >out.log 2>&1; local r=$?; [ $r = 0 ] || bad "exit $r, count $(cat out.log) of $((4 * k))"
  per_s "$((4 * k))" locks/s
}
app_ruby() { # GVL: mutex + cond
  need ruby; local k; k=$(n 60000)
  clock; P ruby -e 'n=ARGV[0].to_i; q=SizedQueue.new(8); m=Mutex.new; s=0; a=2.times.map{Thread.new{n.times{|i| q<<i}}}; b=2.times.map{Thread.new{while (v=q.pop)!=:e; m.synchronize{s+=v} end}}; a.each(&:join); 2.times{q<<:e}; b.each(&:join); puts s' "$k" >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$((2 * k))" items/s; [ "$(cat out.log)" = "$((k * (k - 1)))" ] || bad "result $(cat out.log)"
}
page() { cat >p.html <<'X'
<html><body><p id=o>waiting</p><canvas id=c width=300 height=300></canvas><script>
const b = "data:text/javascript," + encodeURIComponent("onmessage=e=>{let s=0;for(let i=0;i<e.data;i++)s+=i;postMessage(s)}"); let n = 0, sum = 0;
const x = document.getElementById('c').getContext('2d'); x.fillStyle = 'rgb(0,128,0)'; x.fillRect(0, 0, 300, 300);
for (let k = 0; k < 4; k++) { const w = new Worker(b); w.onmessage = e => { sum += e.data; if (++n == 40) document.getElementById('o').textContent = 'sum ' + sum; else w.postMessage(100000); }; w.postMessage(100000); }
let j = 0; function busy() { for (let i = 0; i < 1e6; i++) j += i; if (n < 40) setTimeout(busy, 1); } busy(); // keeps virtual time from running off
</script></body></html>
X
}
app_chromium() { # many processes; --no-sandbox since root
  need chromium; page; export HOME=$W
  clock; P timeout -k 5 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$W/u" --virtual-time-budget=20000 --dump-dom "file://$W/p.html" >out.log 2>err.log || bad "exit $?: $(tail -1 err.log)"
  per_s 1 pages/s
  grep -q 'sum 199998000000' out.log || bad "page: $(grep -o 'id="o">[^<]*' out.log)"
}
