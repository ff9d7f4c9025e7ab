// Who comes next at a readers-writer lock: glibc's three kinds.
#pragma once

#include <cstdint>

namespace relock {

enum class RwPreference : std::uint8_t {
  kReaders,       // readers come in beside readers, whoever waits
  kWriters,       // the same, but a writer is followed by a writer if one waits
  kWritersAlone,  // and readers that come while a writer waits stay out
};

}  // namespace relock
