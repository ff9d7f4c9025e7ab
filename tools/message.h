// How the command speaks: results on standard output, everything else one line on standard error.
#pragma once

#include <cstdio>
#include <string>

namespace relock {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// "relock: error: what: why"; returns `status`, for the caller to return.
inline int fail(int status, const std::string& what, const std::string& why) {
  fprintf(stderr, "relock: error: %s: %s\n", what.c_str(), why.c_str());
  return status;
}

inline void warn(const std::string& what, const std::string& why) {
  fprintf(stderr, "relock: warning: %s: %s\n", what.c_str(), why.c_str());
}

}  // namespace relock
