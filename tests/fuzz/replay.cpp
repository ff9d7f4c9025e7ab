// profile_replay SECONDS SEED FILE...: the inputs that the fuzzer kept, then changes of its own to
// a valid profile, until the time is over. One line "ok" for each of the two.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/profile_input.h"

namespace {

using relock::fuzz::check_profile;
using relock::fuzz::profile_of;

struct Counts {
  unsigned long accepted = 0;
  unsigned long refused = 0;
};

void run(const std::vector<std::uint8_t>& input, Counts* counts) {
  ++(check_profile(profile_of(input.data(), input.size())) ? counts->accepted : counts->refused);
}

std::uint64_t value(std::mt19937_64& random) {
  const std::uint64_t drawn = random();
  switch (random() % 6) {
    case 0:
      return drawn % 4;
    case 1:
      return ~std::uint64_t{0} - drawn % 4;
    case 2:
      return std::uint64_t{1} << drawn % 64;
    case 3:
      return drawn % 65536;
    default:
      return drawn;
  }
}

std::vector<std::uint8_t> input(std::mt19937_64& random) {
  std::vector<std::uint8_t> bytes(1, static_cast<std::uint8_t>(16 + random() % 226));
  const std::size_t changes = 1 + random() % 3;
  for (std::size_t i = 0; i < changes; ++i) {
    const std::uint64_t place = random();
    for (int byte = 0; byte < 4; ++byte) {
      bytes.push_back(static_cast<std::uint8_t>(place >> byte * 8));
    }
    const std::uint64_t number = value(random);
    for (int byte = 0; byte < 8; ++byte) {
      bytes.push_back(static_cast<std::uint8_t>(number >> byte * 8));
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Counts kept;
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    run({std::istreambuf_iterator<char>(file), {}}, &kept);
  }
  std::printf("  %lu inputs accepted, %lu refused\n", kept.accepted, kept.refused);
  std::printf(kept.accepted + kept.refused > 0 ? "ok fuzz: the inputs that were kept\n"
                                               : "not ok fuzz: the inputs that were kept - none\n");
  std::fflush(stdout);
  std::mt19937_64 random(std::strtoull(argv[2], nullptr, 0));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  Counts made;
  while (std::chrono::steady_clock::now() < end) run(input(random), &made);
  std::printf("  %lu changed profiles accepted, %lu refused\n", made.accepted, made.refused);
  const bool both = made.accepted > 0 && made.refused > 0;
  std::printf(both ? "ok fuzz: changes to a valid profile\n"
                   : "not ok fuzz: changes to a valid profile - all or none were accepted\n");
  return both ? 0 : 1;
}
