// Bounded queues between producers and consumers: what goes in comes out, once, whatever the number
// of threads, the size of the queue, and whether signal or broadcast tells of a change.
#include "check.h"

enum { kMaxSize = 16, kItems = 1200, kMaxThreads = 8 };

struct Queue {
  pthread_mutex_t mutex;
  pthread_cond_t not_empty;
  pthread_cond_t not_full;
  int items[kMaxSize];
  int size;
  int first;
  int count;
  int producers_left;
  int broadcast;
  long long in;
  long long out;
  int taken;
  int most;
};

static void tell(const struct Queue* queue, pthread_cond_t* cond) {
  if (queue->broadcast) {
    pthread_cond_broadcast(cond);
  } else {
    pthread_cond_signal(cond);
  }
}

struct Producer {
  struct Queue* queue;
  int items;
  int first_item;
};

static void* produce(void* argument) {
  struct Producer* self = argument;
  struct Queue* queue = self->queue;
  for (int i = 0; i < self->items; ++i) {
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == queue->size) pthread_cond_wait(&queue->not_full, &queue->mutex);
    queue->items[(queue->first + queue->count++) % queue->size] = self->first_item + i;
    queue->in += self->first_item + i;
    if (queue->count > queue->most) queue->most = queue->count;
    tell(queue, &queue->not_empty);
    pthread_mutex_unlock(&queue->mutex);
  }
  pthread_mutex_lock(&queue->mutex);
  if (--queue->producers_left == 0) pthread_cond_broadcast(&queue->not_empty);
  pthread_mutex_unlock(&queue->mutex);
  return NULL;
}

static void* consume(void* argument) {
  struct Queue* queue = argument;
  pthread_mutex_lock(&queue->mutex);
  for (;;) {
    while (queue->count == 0 && queue->producers_left != 0) {
      pthread_cond_wait(&queue->not_empty, &queue->mutex);
    }
    if (queue->count == 0) break;
    queue->out += queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->size;
    --queue->count;
    ++queue->taken;
    tell(queue, &queue->not_full);
    pthread_mutex_unlock(&queue->mutex);
    pthread_mutex_lock(&queue->mutex);
  }
  pthread_mutex_unlock(&queue->mutex);
  return NULL;
}

static void run(int producers, int consumers, int size, int broadcast) {
  struct Queue queue = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                        .not_empty = PTHREAD_COND_INITIALIZER,
                        .not_full = PTHREAD_COND_INITIALIZER,
                        .size = size,
                        .producers_left = producers,
                        .broadcast = broadcast};
  pthread_t threads[kMaxThreads];
  struct Producer parts[kMaxThreads];
  for (int i = 0; i < producers; ++i) {
    parts[i] = (struct Producer){&queue, kItems / producers, i * 100000};
    pthread_create(&threads[i], NULL, produce, &parts[i]);
  }
  for (int i = 0; i < consumers; ++i) {
    pthread_create(&threads[producers + i], NULL, consume, &queue);
  }
  for (int i = 0; i < producers + consumers; ++i) pthread_join(threads[i], NULL);
  char name[80];
  snprintf(name, sizeof name, "%d to %d through %d, %s: sum", producers, consumers, size,
           broadcast ? "broadcast" : "signal");
  CHECK_EQ(name, queue.out - queue.in, 0);
  CHECK_EQ("items", queue.taken, kItems / producers * producers);
  CHECK_TRUE("bounded", queue.most <= size);
  CHECK_CALL("destroy", pthread_cond_destroy(&queue.not_empty), 0);
  CHECK_CALL("destroy", pthread_cond_destroy(&queue.not_full), 0);
  CHECK_CALL("destroy", pthread_mutex_destroy(&queue.mutex), 0);
}

int main(void) {
  for (int broadcast = 0; broadcast <= 1; ++broadcast) {
    run(1, 1, 1, broadcast);
    run(1, 1, 16, broadcast);
    run(1, 3, 4, broadcast);
    run(3, 1, 4, broadcast);
    run(4, 4, 2, broadcast);
    run(4, 4, 16, broadcast);
    run(6, 2, 1, broadcast);
  }
  return done();
}
