// The functions behind the recorder's interface (interpose/profiler_api.h).
#pragma once

#include "interpose/profiler_api.h"

namespace relock::profile {

// Prepares recording. `caller`: an address in the library that calls the recorder. Returns 0 or an
// errno value, said in one line on standard error.
int start_recorder(const RelockHost& given, const void* caller, RelockProfiler* profiler);

}  // namespace relock::profile
