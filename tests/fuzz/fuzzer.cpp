// The entry for libFuzzer: make BUILD/profile_fuzzer.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/profile_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  relock::fuzz::check_profile(relock::fuzz::profile_of(data, size));
  return 0;
}
