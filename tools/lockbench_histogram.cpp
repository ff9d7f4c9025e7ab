// Waiting times by size.

#include "tools/lockbench.h"

namespace lockbench {

int Histogram::bucket_of(std::uint64_t value_ns) {
  constexpr std::uint64_t kSteps = 1u << kStepBits;
  if (value_ns < kSteps) return static_cast<int>(value_ns);
  const int shift = 63 - __builtin_clzll(value_ns) - kStepBits;
  return ((shift + 1) << kStepBits) + static_cast<int>((value_ns >> shift) & (kSteps - 1));
}

std::uint64_t Histogram::upper_bound_of(int bucket) {
  constexpr int kSteps = 1 << kStepBits;
  if (bucket < kSteps) return static_cast<std::uint64_t>(bucket);
  const int shift = (bucket >> kStepBits) - 1;
  const std::uint64_t top =
      static_cast<unsigned>(kSteps) + (static_cast<unsigned>(bucket) & (kSteps - 1));
  return (top << shift) + ((std::uint64_t{1} << shift) - 1);
}

void Histogram::add(std::uint64_t value_ns) {
  ++buckets_[bucket_of(value_ns)];
  ++count_;
  if (value_ns > longest_) longest_ = value_ns;
}

void Histogram::add(const Histogram& other) {
  for (int i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  if (other.longest_ > longest_) longest_ = other.longest_;
}

std::uint64_t Histogram::percentile(double fraction) const {
  const double wanted = fraction * static_cast<double>(count_);
  std::uint64_t passed = 0;
  for (int i = 0; i < kBuckets; ++i) {
    passed += buckets_[i];
    if (passed != 0 && static_cast<double>(passed) >= wanted) {
      return upper_bound_of(i) < longest_ ? upper_bound_of(i) : longest_;
    }
  }
  return longest_;
}

}  // namespace lockbench
