#include "interpose/message.h"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace relock {

namespace {

struct stat g_standard_error;
bool g_standard_error_known;

}  // namespace

void remember_standard_error() {
  const int saved = errno;
  g_standard_error_known = fstat(STDERR_FILENO, &g_standard_error) == 0;
  errno = saved;
}

bool standard_error_is_the_same() {
  const int saved = errno;
  struct stat now;
  const bool same = g_standard_error_known && fstat(STDERR_FILENO, &now) == 0 &&
                    now.st_dev == g_standard_error.st_dev && now.st_ino == g_standard_error.st_ino;
  errno = saved;
  return same;
}

void say(const char* line) {
  if (!standard_error_is_the_same()) return;
  const int saved = errno;
  iovec parts[2] = {{const_cast<char*>(line), std::strlen(line)}, {const_cast<char*>("\n"), 1}};
  (void)!writev(STDERR_FILENO, parts, 2);
  errno = saved;
}

}  // namespace relock
