#!/bin/bash
# relock report --format html: one file that holds everything, names that would like to be markup,
# and (html_page.py) the page in a browser.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"
here=$(dirname "$(readlink -f "$0")")

# Two locks and a condition variable. Of hot_lock 70 % of the waiting is in wait_long, whose waits
# last by construction as long as hold_long holds the lock.
compile_object() { gcc -O1 -D_GNU_SOURCE -x c -c -o "$scratch/page.o" -; }
compile_object <<'EOC'
#include <pthread.h>
#include <time.h>
pthread_mutex_t hot_lock = PTHREAD_MUTEX_INITIALIZER, hostile_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static void hold(long us) { nanosleep(&(struct timespec){0, us * 1000}, 0); }
#define USES(name, lock, us)                \
  __attribute__((noinline)) void name(void) { \
    pthread_mutex_lock(&lock);              \
    hold(us);                               \
    pthread_mutex_unlock(&lock);            \
    hold(100);                              \
  }
USES(use_long, hot_lock, 3000)
USES(use_short, hot_lock, 500)
USES(hostile_function, hostile_lock, 400)
USES(turned_around, hostile_lock, 300)
USES(no_text, hostile_lock, 200)
static void* work(void* which) {
  for (int i = 0; i < 40; i++) {
    if (which) { use_long(); use_short(); }
    else { hostile_function(); turned_around(); no_text(); }
  }
  return 0;
}
static void* wait_turn(void* unused) {
  pthread_mutex_lock(&turn_lock);
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  pthread_cond_timedwait(&turned, &turn_lock, &end);
  pthread_mutex_unlock(&turn_lock);
  return unused;
}
int main(void) {
  pthread_t threads[7];
  pthread_create(&threads[6], 0, wait_turn, 0);
  for (long i = 0; i < 6; i++) pthread_create(&threads[i], 0, work, (void*)(i % 2));
  for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
  pthread_mutex_lock(&turn_lock);
  pthread_cond_signal(&turned);
  pthread_mutex_unlock(&turn_lock);
  return pthread_join(threads[6], 0);
}
EOC
# Names that a compiler would not make, but a linker does.
objcopy \
  --redefine-sym hostile_function='</script><script>document.title="taken"</script><img src=x>' \
  --redefine-sym turned_around="turned$(printf '\u202e')around\"'&amp;<b>" \
  --redefine-sym no_text="$(printf 'not\xff\xfetext\x01\x1b[31m')" \
  --redefine-sym hostile_lock='<!--<script>"&#39;</title>lock' "$scratch/page.o" &&
  gcc -o "$scratch/page" "$scratch/page.o" -pthread
"$RELOCK" record -o "$scratch/run" --log-file "$scratch/log" -- "$scratch/page" \
  '</script><script>document.title="taken"</script>' "$(printf 'a\xffb\u202ec')" 2>/dev/null
file=$(ls "$scratch"/run/relock.*.prof)

try "$RELOCK" report --format html -o "$scratch/page.html" "$file"
expect "html: written to a file" "$code:$out:$err:$([ -s "$scratch/page.html" ] && echo there)" \
  "0:::there"
try "$RELOCK" report --format html "$file"
expect "html: the same on standard output" "$code:$(cmp "$scratch/out" "$scratch/page.html")" 0:
page=$(tr '\0' ' ' <"$scratch/page.html")
expect "html: two script elements and no more, whatever the names are" \
  "$(grep -o '<script\b' <<<"$page" | wc -l):$(grep -o '</script' <<<"$page" | wc -l)" "2:2"
expect "html: no address of anything outside" \
  "$(grep -cE '(src|href)="?(https?:|//)|@import|url\(' <<<"$page")" 0
expect "html: well-formed UTF-8" "$(iconv -f UTF-8 -t UTF-8 "$scratch/page.html" >/dev/null 2>&1; echo $?)" 0
"$RELOCK" report --format json "$file" >"$scratch/report.json"
expect "html: holds the JSON report" "$($PYTHON - "$scratch" <<'EOP'
import json, re, sys
page = open(sys.argv[1] + "/page.html", encoding="utf-8").read()
data = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.S)[1]
print(json.loads(data) == json.load(open(sys.argv[1] + "/report.json", encoding="utf-8")))
EOP
)" True
"$RELOCK" report --format html --by site -o "$scratch/site.html" "$file"
"$RELOCK" report --format html --top 0 -o "$scratch/none.html" "$file"
"$RELOCK" report --format html -o "$scratch/merged.html" "$file" \
  <(:) >/dev/null 2>&1 # a second file that is none: refused
expect "html: nothing is written for a file that is no profile" \
  "$?:$([ -e "$scratch/merged.html" ] && echo there)" "2:"

if command -v chromium >/dev/null; then
  timeout 120 $PYTHON "$here/html_page.py" "$(command -v chromium)" "$scratch" || status=1
else
  echo "  chromium could not be installed: the page was not opened in a browser"
fi
exit $status
