// A waiter that broadcast has woken and that gets a signal while it sleeps for the mutex: the
// others come, though its handler ends only after they have.
//
// conformance: skip=*ticket* a FIFO lock is handed to the waiter in its handler
// conformance: skip=*qspinlock* a FIFO lock is handed to the waiter in its handler
// conformance: skip=cna-* a FIFO lock is handed to the waiter in its handler
// conformance: skip=auto-* may be cna
// conformance: skip=*-ruled may be any
#include "cond_handler.h"

// Long enough for the woken to have gone for the mutex. If not, the signal merely comes earlier,
// and the same is demanded.
enum { kOnTheirWayMs = 50 };

int main(void) {
  struct Crowd crowd;
  handle_stops();
  start_crowd(&crowd, 0);
  pthread_mutex_lock(&mutex);
  go = 1;
  CHECK_CALL("broadcast", pthread_cond_broadcast(&cond), 0);
  sleep_ms(kOnTheirWayMs);
  stop_first(&crowd);
  pthread_mutex_unlock(&mutex);
  end_crowd(&crowd, "mutex held meanwhile:");
  return done();
}
