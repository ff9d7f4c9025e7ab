// A report as a mutex profile for `go tool pprof` and continuous profilers: profile.proto, gzip.
// Sample types contentions/count and delay/nanoseconds, as in Go's own mutex profile.
#pragma once

#include <string>

#include "tools/report_folded.h"
#include "tools/report_model.h"

namespace relock {

// The message itself.
std::string report_pprof(const Report& report, const FlameOptions& options);

// The bytes in gzip's format, without a time in them. Throws std::runtime_error when zlib fails.
std::string gzipped(const std::string& bytes);

}  // namespace relock
