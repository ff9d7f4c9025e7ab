// What an interposer tells the recorder, for the programs that load the recorder without one.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>

#include "interpose/profiler_api.h"

inline struct stat standard_error_at_start;

inline bool standard_error_is_the_same() {
  struct stat now {};
  return fstat(2, &now) == 0 && now.st_dev == standard_error_at_start.st_dev &&
         now.st_ino == standard_error_at_start.st_ino;
}

inline std::uint64_t clock_ns(int clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline RelockHost test_host() {
  fstat(2, &standard_error_at_start);
  RelockHost host{};
  host.version = RELOCK_PROFILER_VERSION;
  host.profile_dir = "";
  host.log_file = "/dev/null";
  host.samples_per_s = 1000;
  host.stacks = 1;
  host.nodes = 1;
  host.mutex_lock_name = host.spin_lock_name = host.rwlock_name = host.wait_name = "";
  host.standard_error_is_the_same = standard_error_is_the_same;
  host.clock_ns = clock_ns;
  return host;
}
