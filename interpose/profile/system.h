// System calls without the C library's wrappers: those are cancellation points, and a thread that
// waits for a mutex must not be cancelled there. Results are the kernel's: negative errno values.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace relock::profile {

template <typename... Args>
inline long system_call(long number, Args... args) {
  const long result = ::syscall(number, args...);
  return result == -1 ? -static_cast<long>(errno) : result;
}

inline int sys_open(const char* path, int flags, int mode = 0) {
  return static_cast<int>(system_call(SYS_openat, AT_FDCWD, path, flags, mode));
}
inline void sys_close(int descriptor) { system_call(SYS_close, descriptor); }

inline long sys_read(int descriptor, void* buffer, std::size_t bytes) {
  long result;
  do {
    result = system_call(SYS_read, descriptor, buffer, bytes);
  } while (result == -EINTR);
  return result;
}

// Writes all of it. 0 or an errno value.
inline int sys_write_all(int descriptor, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const long written = system_call(SYS_write, descriptor, data, bytes);
    if (written == -EINTR) continue;
    if (written <= 0) return written == 0 ? ENOSPC : static_cast<int>(-written);
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

// errno as the program left it, whatever the recorder calls.
class ErrnoKeeper {
 public:
  ErrnoKeeper() : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

}  // namespace relock::profile
