// build: -l_ctor
//
// A library that the program is linked with locks and runs threads in its constructor, before main,
// and in its destructor, after it. The count goes on where the constructor left it.
// conformance: any-lock
#include "check.h"

long lib_ctor_work(void);

int main(void) {
  CHECK_EQ("after the constructor", lib_ctor_work(), 1200);
  CHECK_EQ("once more", lib_ctor_work(), 1800);
  return done();
}
