#!/bin/bash
# Under profiling, a C program that opens a C++ library which throws, and that cancels a thread:
# the loader's own trace must show no _Unwind_* symbol bound to libunwind, which exports the same
# names as libgcc_s and would take over the program's exceptions.
. "$(dirname "$0")/common.sh"

cat >"$scratch/thrower.cpp" <<'X'
extern "C" int catch_own() { try { throw 7; } catch (int x) { return x; } }
X
cat >"$scratch/opener.c" <<'X'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int cleaned;
static void clean(void *arg) { cleaned = *(int *)arg; }
static void *wait_forever(void *arg) {
  pthread_cleanup_push(clean, arg);
  for (;;) pause();
  pthread_cleanup_pop(0);
}
int main(int argc, char **argv) {
  int five = 5;
  pthread_t thread;
  pthread_create(&thread, NULL, wait_forever, &five);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*catch_own)(void) = library ? (int (*)(void))dlsym(library, "catch_own") : NULL;
  printf("%d %d\n", cleaned, catch_own ? catch_own() : -1);
}
X
g++ -O1 -fPIC -shared "$scratch/thrower.cpp" -o "$scratch/thrower.so" &&
  gcc -O1 "$scratch/opener.c" -o "$scratch/opener" -pthread || { echo "not ok unwinding - compile"; exit 1; }
cd "$scratch" || exit 2
out=$(env LD_PRELOAD="$PRELOAD" RELOCK_PROFILE=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$scratch/trace" \
  ./opener ./thrower.so 2>/dev/null)
expect "cancellation and exceptions work under profiling" "$out" "5 7"
expect "the recorder was loaded" "$(cat trace.* | grep -qF librelock-profile.so && echo yes)" yes
# What libunwind binds within itself is its own affair.
expect_none "nothing but libunwind binds an _Unwind_ symbol to libunwind" \
  "$(cat trace.* | grep -E "to [^ ]*libunwind[^ ]* \[0\]: .*_Unwind_" |
    grep -vE "binding file [^ ]*libunwind" | head -n 2)"
