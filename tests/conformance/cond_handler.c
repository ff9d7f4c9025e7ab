// Broadcast while a waiter sits in a signal handler, as a collector that stops the world keeps it
// there: the others come, though that waiter goes on only after they have.
#include "cond_handler.h"

// The first waiter is in its handler before the broadcast.
static void run(const char* name, int timed, int with_mutex) {
  struct Crowd crowd;
  start_crowd(&crowd, timed);
  stop_first(&crowd);
  pthread_mutex_lock(&mutex);
  go = 1;
  if (!with_mutex) pthread_mutex_unlock(&mutex);
  CHECK_CALL(label(name, "broadcast"), pthread_cond_broadcast(&cond), 0);
  if (with_mutex) pthread_mutex_unlock(&mutex);
  end_crowd(&crowd, name);
}

int main(void) {
  handle_stops();
  run("with the mutex:", 0, 1);
  run("without the mutex:", 0, 0);
  run("with a time limit:", 1, 1);
  return done();
}
