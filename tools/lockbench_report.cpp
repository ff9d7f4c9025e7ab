// What lockbench says about a measurement.

#include <stdio.h>

#include "tools/lockbench.h"

namespace lockbench {

namespace {

struct Summary {
  std::uint64_t operations = 0;
  std::uint64_t updates = 0;
  std::uint64_t torn_reads = 0;
  std::uint64_t least = UINT64_MAX;
  double squares = 0;
  Histogram waits;

  double mean = 0;
  double per_second = 0;
  double jain = 0;  // 1 when all threads had the same share, 1/threads when one had everything
  double least_share = 0;
  double cpu_s_per_million = 0;
};

// Not on the stack: it holds a histogram.
Summary summary;

void summarize(const Settings& settings, const Result& result) {
  for (int i = 0; i < settings.threads; ++i) {
    const Worker& worker = result.workers[i];
    summary.operations += worker.operations;
    summary.updates += worker.updates;
    summary.torn_reads += worker.torn_reads;
    if (worker.operations < summary.least) summary.least = worker.operations;
    summary.squares +=
        static_cast<double>(worker.operations) * static_cast<double>(worker.operations);
    summary.waits.add(worker.waits);
  }
  const double total = static_cast<double>(summary.operations);
  summary.mean = total / settings.threads;
  if (summary.squares > 0) summary.jain = total * total / (settings.threads * summary.squares);
  if (total > 0) {
    summary.least_share = static_cast<double>(summary.least) / summary.mean;
    summary.cpu_s_per_million = static_cast<double>(result.cpu_ns) / 1e9 / (total / 1e6);
  }
  summary.per_second = total / (static_cast<double>(result.elapsed_ns) / 1e9);
}

void print_json(const Settings& settings, const Result& result, bool sound) {
  printf("{\"object\":\"%s\",\"threads\":%d,\"section_ns\":%llu,\"think_ns\":%llu,",
         object_name(settings.object), settings.threads,
         static_cast<unsigned long long>(settings.section_ns),
         static_cast<unsigned long long>(settings.think_ns));
  printf("\"seconds\":%.6f,\"operations\":%llu,\"per_second\":%.1f,",
         static_cast<double>(result.elapsed_ns) / 1e9,
         static_cast<unsigned long long>(summary.operations), summary.per_second);
  printf("\"jain\":%.6f,\"least_to_mean\":%.6f,\"cpu_seconds_per_million\":%.6f,", summary.jain,
         summary.least_share, summary.cpu_s_per_million);
  printf(
      "\"wait_ns\":{\"sampled\":%llu,\"p50\":%llu,\"p99\":%llu,\"p99_9\":%llu,\"longest\":%llu},"
      "\"longest_stall_ns\":%llu,",
      static_cast<unsigned long long>(summary.waits.count()),
      static_cast<unsigned long long>(summary.waits.percentile(0.5)),
      static_cast<unsigned long long>(summary.waits.percentile(0.99)),
      static_cast<unsigned long long>(summary.waits.percentile(0.999)),
      static_cast<unsigned long long>(summary.waits.longest()),
      static_cast<unsigned long long>(result.longest_stall_ns));
  printf("\"exclusive\":%s,\"per_thread\":[", sound ? "true" : "false");
  for (int i = 0; i < settings.threads; ++i) {
    printf("%s%llu", i == 0 ? "" : ",",
           static_cast<unsigned long long>(result.workers[i].operations));
  }
  printf("]}\n");
}

void print_text(const Settings& settings, const Result& result) {
  printf("%s, %d thread%s, section %llu ns, think %llu ns, %.2f s\n", object_name(settings.object),
         settings.threads, settings.threads == 1 ? "" : "s",
         static_cast<unsigned long long>(settings.section_ns),
         static_cast<unsigned long long>(settings.think_ns),
         static_cast<double>(result.elapsed_ns) / 1e9);
  printf("  operations   %llu, %.0f per second, %.1f ns each\n",
         static_cast<unsigned long long>(summary.operations), summary.per_second,
         summary.per_second > 0 ? 1e9 / summary.per_second : 0.0);
  printf("  fairness     Jain %.4f, least/mean %.4f\n", summary.jain, summary.least_share);
  printf("  waits        p50 %llu ns, p99 %llu ns, p99.9 %llu ns, longest %llu ns (%llu sampled)\n",
         static_cast<unsigned long long>(summary.waits.percentile(0.5)),
         static_cast<unsigned long long>(summary.waits.percentile(0.99)),
         static_cast<unsigned long long>(summary.waits.percentile(0.999)),
         static_cast<unsigned long long>(summary.waits.longest()),
         static_cast<unsigned long long>(summary.waits.count()));
  printf("  stalls       longest %.1f ms\n", static_cast<double>(result.longest_stall_ns) / 1e6);
  printf("  CPU          %.3f s per million operations\n", summary.cpu_s_per_million);
  printf("  per thread  ");
  for (int i = 0; i < settings.threads; ++i) {
    printf(" %llu", static_cast<unsigned long long>(result.workers[i].operations));
  }
  printf("\n");
}

}  // namespace

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

const char* object_name(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kMutex:
      return "mutex";
    case ObjectKind::kSpin:
      return "spin";
    case ObjectKind::kCond:
      return "cond";
    case ObjectKind::kRwlock:
      return "rwlock";
  }
  return "?";
}

bool report(const Settings& settings, const Result& result) {
  summarize(settings, result);
  const bool sound = result.counter == summary.updates && summary.torn_reads == 0;
  if (settings.json) {
    print_json(settings, result, sound);
  } else {
    print_text(settings, result);
  }
  if (!sound) {
    fprintf(stderr,
            "lockbench: error: the lock does not exclude: counter %llu after %llu updates, "
            "%llu torn reads\n",
            static_cast<unsigned long long>(result.counter),
            static_cast<unsigned long long>(summary.updates),
            static_cast<unsigned long long>(summary.torn_reads));
  }
  return sound;
}

}  // namespace lockbench
