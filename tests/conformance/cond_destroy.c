// A condition variable may be destroyed as soon as nobody waits on it any more, that is right after
// the broadcast that released everybody, though the released threads have not even run yet. Its
// memory is then unmapped, or scribbled over and watched: nobody may touch it again.
#include "check.h"
#include "cond_support.h"

#include <sys/mman.h>

enum { kWaiters = 4, kRounds = 60, kPage = 4096, kPoison = 0xa5 };
enum Ending { kUnmapped, kPoisoned, kTimingOut, kCancelled };

struct Round {
  pthread_mutex_t mutex;
  pthread_cond_t* cond;
  int waiting;
  int timed;
  int bad_results;
  struct timespec deadline;
};

static void unlock_round(void* argument) {
  struct Round* round = argument;
  pthread_mutex_unlock(&round->mutex);
}

static void* wait_in_round(void* argument) {
  struct Round* round = argument;
  pthread_mutex_lock(&round->mutex);
  ++round->waiting;
  pthread_cleanup_push(unlock_round, round);
  int result = round->timed ? pthread_cond_timedwait(round->cond, &round->mutex, &round->deadline)
                            : pthread_cond_wait(round->cond, &round->mutex);
  if (result != 0 && !(round->timed && result == ETIMEDOUT)) ++round->bad_results;
  pthread_cleanup_pop(1);
  return NULL;
}

static int all_poison(const unsigned char* page) {
  for (int i = 0; i < kPage; ++i) {
    if (page[i] != kPoison) return 0;
  }
  return 1;
}

// One round; gives back whether everything went as it should.
static int run_round(enum Ending ending) {
  struct Round round = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  unsigned char* page =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(page != MAP_FAILED);
  round.cond = (pthread_cond_t*)page;
  round.timed = ending == kTimingOut;
  clock_gettime(CLOCK_REALTIME, &round.deadline);
  round.deadline.tv_nsec += 150000;
  if (round.deadline.tv_nsec >= 1000000000L) {
    round.deadline.tv_nsec -= 1000000000L;
    round.deadline.tv_sec += 1;
  }
  pthread_cond_init(round.cond, NULL);
  pthread_t threads[kWaiters];
  for (int i = 0; i < kWaiters; ++i) pthread_create(&threads[i], NULL, wait_in_round, &round);
  pthread_mutex_lock(&round.mutex);
  while (round.waiting < kWaiters) {
    pthread_mutex_unlock(&round.mutex);
    sched_yield();
    pthread_mutex_lock(&round.mutex);
  }
  if (ending == kCancelled) pthread_cancel(threads[1]);
  pthread_cond_broadcast(round.cond);
  if (ending == kCancelled) pthread_cancel(threads[2]);
  pthread_mutex_unlock(&round.mutex);
  int good = pthread_cond_destroy(round.cond) == 0;
  if (ending == kPoisoned) {
    memset(page, kPoison, kPage);
  } else {
    munmap(page, kPage);
  }
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  if (ending == kPoisoned) {
    good &= all_poison(page);
    munmap(page, kPage);
  }
  return good && round.bad_results == 0 && pthread_mutex_destroy(&round.mutex) == 0;
}

// The usual shape of a request: its condition variable lives in the frame of the thread that waits
// for the answer, and is gone a moment after the answer.
struct Request {
  pthread_mutex_t mutex;
  pthread_cond_t answered;
  int answer;
};

static struct Request* slot;  // handed over with release and acquire

static void* answer_requests(void* unused) {
  (void)unused;
  for (int i = 0; i < kRounds * 10; ++i) {
    struct Request* request;
    while ((request = __atomic_exchange_n(&slot, NULL, __ATOMIC_ACQ_REL)) == NULL) sched_yield();
    pthread_mutex_lock(&request->mutex);
    request->answer = i + 1;
    pthread_cond_signal(&request->answered);
    pthread_mutex_unlock(&request->mutex);
  }
  return NULL;
}

static __attribute__((noinline)) int ask(void) {
  struct Request request;
  memset(&request, kPoison, sizeof request);
  pthread_mutex_init(&request.mutex, NULL);
  pthread_cond_init(&request.answered, NULL);
  request.answer = 0;
  __atomic_store_n(&slot, &request, __ATOMIC_RELEASE);
  pthread_mutex_lock(&request.mutex);
  while (request.answer == 0) pthread_cond_wait(&request.answered, &request.mutex);
  int answer = request.answer;
  pthread_mutex_unlock(&request.mutex);
  pthread_mutex_destroy(&request.mutex);
  pthread_cond_destroy(&request.answered);
  memset(&request, kPoison, sizeof request);
  __asm__ volatile("" : : "r"(&request) : "memory");
  return answer;
}

static void requests(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, answer_requests, NULL);
  int in_turn = 0;
  for (int i = 0; i < kRounds * 10; ++i) in_turn += ask() == i + 1;
  pthread_join(thread, NULL);
  CHECK_EQ("requests answered in turn", in_turn, kRounds * 10);
}

int main(void) {
  static const char* const kNames[] = {
      "unmapped after broadcast and destroy", "poisoned after broadcast and destroy",
      "destroyed while waiters time out", "destroyed while waiters are cancelled"};
  for (int ending = kUnmapped; ending <= kCancelled; ++ending) {
    int good = 0;
    for (int i = 0; i < kRounds; ++i) good += run_round((enum Ending)ending);
    CHECK_EQ(kNames[ending], good, kRounds);
  }
  requests();
  return done();
}
