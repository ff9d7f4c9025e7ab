// Two threads hand a turn to each other through one condition variable, through two, and with
// deadlines that never come.
#include "check.h"

enum { kTurns = 20000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t conds[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int turn;  // under the mutex
static int turns;
static int use_two;
static int use_deadline;

static void play(int me) {
  struct timespec far = deadline_ms(CLOCK_MONOTONIC, 600000);
  pthread_cond_t* mine = &conds[use_two ? me : 0];
  pthread_cond_t* other = &conds[use_two ? 1 - me : 0];
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (turn % 2 != me && turn < turns) {
      if (use_deadline) {
        pthread_cond_clockwait(mine, &mutex, CLOCK_MONOTONIC, &far);
      } else {
        pthread_cond_wait(mine, &mutex);
      }
    }
    int over = turn >= turns;
    if (!over) ++turn;
    pthread_cond_signal(other);
    pthread_mutex_unlock(&mutex);
    if (over) return;
  }
}

static void* play_second(void* unused) {
  (void)unused;
  play(1);
  return NULL;
}

static void game(const char* name, int two, int deadline, int length) {
  turn = 0;
  turns = length;
  use_two = two;
  use_deadline = deadline;
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, play_second, NULL) == 0);
  play(0);
  pthread_join(thread, NULL);
  CHECK_EQ(name, turn, length);
}

int main(void) {
  game("turns through one", 0, 0, kTurns);
  game("turns through two", 1, 0, kTurns / 8);
  game("turns with a deadline", 1, 1, kTurns / 8);
  return done();
}
