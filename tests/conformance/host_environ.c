// The program's arguments, name and environment are what they are without a preload: nothing that
// happens at start-up may initialise the C library before it has been given them.
// conformance: any-lock
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  CHECK_EQ("arguments", argc, 1);
  CHECK_TRUE("environment", environ != NULL);
  CHECK_TRUE("behind the arguments", environ == argv + argc + 1);
  CHECK_TRUE("getenv", getenv("PATH") != NULL);
  CHECK_TRUE("invocation name", strcmp(program_invocation_name, argv[0]) == 0);
  CHECK_TRUE("short name", strcmp(program_invocation_short_name, "host_environ") == 0);
  return done();
}
