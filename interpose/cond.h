// Condition variable operations as the POSIX and C11 wrappers share them.
#pragma once

#include <pthread.h>

#include "interpose/mutex.h"

namespace relock {

// `timeout` null: no limit; its clock must be supported.
int cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex, const Timeout* timeout,
              const void* site);
int cond_signal(pthread_cond_t* cond);
int cond_broadcast(pthread_cond_t* cond);
int cond_destroy(pthread_cond_t* cond);

}  // namespace relock
