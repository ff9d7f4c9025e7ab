// A library that is opened with RTLD_DEEPBIND and shares the program's locks.
#include <pthread.h>

void lib_deepbind_add(pthread_mutex_t* mutex, long* count, int times) {
  for (int i = 0; i < times; ++i) {
    pthread_mutex_lock(mutex);
    ++*count;
    pthread_mutex_unlock(mutex);
  }
}

void lib_deepbind_spin(pthread_spinlock_t* spin, long* count, int times) {
  for (int i = 0; i < times; ++i) {
    pthread_spin_lock(spin);
    ++*count;
    pthread_spin_unlock(spin);
  }
}

void lib_deepbind_play(pthread_mutex_t* mutex, pthread_cond_t* cond, int* turn, int me, int turns) {
  for (int i = 0; i < turns; ++i) {
    pthread_mutex_lock(mutex);
    while (*turn % 2 != me) pthread_cond_wait(cond, mutex);
    ++*turn;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
  }
}

int lib_deepbind_symbol = 2;

int lib_deepbind_own(void) { return lib_deepbind_symbol; }
