// What lockbench says about a measurement.

#include <stdio.h>

#include "tools/lockbench.h"

namespace lockbench {

namespace {

// How operations were shared out among the threads that were to do them.
struct Share {
  int threads = 0;
  std::uint64_t operations = 0;
  std::uint64_t least = UINT64_MAX;
  double squares = 0;
  Histogram waits;

  void add(std::uint64_t count) {
    ++threads;
    operations += count;
    if (count < least) least = count;
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  double mean() const { return threads == 0 ? 0 : static_cast<double>(operations) / threads; }
  // 1 when all threads had the same share, 1/threads when one had everything.
  double jain() const {
    const double total = static_cast<double>(operations);
    return squares > 0 ? total * total / (threads * squares) : 0;
  }
  double least_to_mean() const { return operations == 0 ? 0 : static_cast<double>(least) / mean(); }
};

struct Summary {
  Share all;
  Share reading;
  Share writing;
  std::uint64_t updates = 0;
  std::uint64_t torn_reads = 0;
  double seconds = 0;
  double per_second = 0;
  double cpu_s_per_million = 0;
};

// Not on the stack: it holds histograms.
Summary summary;

void summarize(const Settings& settings, const Result& result) {
  const bool fixed = settings.fixed_roles;
  for (int i = 0; i < settings.threads; ++i) {
    const Worker& worker = result.workers[i];
    summary.all.add(worker.operations);
    if (!fixed || worker.reading) summary.reading.add(worker.reads);
    if (!fixed || !worker.reading) summary.writing.add(worker.operations - worker.reads);
    summary.reading.waits.add(worker.read_waits);
    summary.writing.waits.add(worker.waits);
    summary.updates += worker.updates;
    summary.torn_reads += worker.torn_reads;
  }
  summary.all.waits.add(summary.reading.waits);
  summary.all.waits.add(summary.writing.waits);
  const double total = static_cast<double>(summary.all.operations);
  summary.seconds = static_cast<double>(result.elapsed_ns) / 1e9;
  summary.per_second = total / summary.seconds;
  if (total > 0)
    summary.cpu_s_per_million = static_cast<double>(result.cpu_ns) / 1e9 / (total / 1e6);
}

unsigned long long number(std::uint64_t value) { return value; }

void print_share(const Share& share) {
  const Histogram& waits = share.waits;
  printf("\"operations\":%llu,\"per_second\":%.1f,\"jain\":%.6f,\"least_to_mean\":%.6f,",
         number(share.operations), static_cast<double>(share.operations) / summary.seconds,
         share.jain(), share.least_to_mean());
  printf(
      "\"wait_ns\":{\"sampled\":%llu,\"p50\":%llu,\"p90\":%llu,\"p99\":%llu,\"p99_9\":%llu,"
      "\"longest\":%llu}",
      number(waits.count()), number(waits.percentile(0.5)), number(waits.percentile(0.9)),
      number(waits.percentile(0.99)), number(waits.percentile(0.999)), number(waits.longest()));
}

void print_json(const Settings& settings, const Result& result, bool sound) {
  const bool rwlock = settings.object == ObjectKind::kRwlock;
  printf(
      "{\"object\":\"%s\",\"threads\":%d,\"section_ns\":%llu,\"think_ns\":%llu,"
      "\"line_reads\":%u,\"sample_every\":%u,",
      object_name(settings.object), settings.threads, number(settings.section_ns),
      number(settings.think_ns), settings.line_reads, settings.sample_every);
  if (rwlock) {
    printf("\"reads_percent\":%u,\"roles\":\"%s\",", settings.read_percent,
           settings.fixed_roles ? "fixed" : "mixed");
  }
  printf("\"seconds\":%.6f,", summary.seconds);
  print_share(summary.all);
  printf(",\"cpu_seconds_per_million\":%.6f,\"cpu_seconds\":%.6f,", summary.cpu_s_per_million,
         static_cast<double>(result.cpu_ns) / 1e9);
  printf("\"longest_stall_ns\":%llu,\"latest_start_ns\":%llu,\"drain_ns\":%llu,",
         number(result.longest_stall_ns), number(result.latest_start_ns), number(result.drain_ns));
  if (settings.object == ObjectKind::kCondBroadcast)
    printf("\"rounds_per_second\":%.2f,", summary.per_second / settings.threads);
  if (rwlock) {
    printf("\"readers\":{\"threads\":%d,", summary.reading.threads);
    print_share(summary.reading);
    printf("},\"writers\":{\"threads\":%d,", summary.writing.threads);
    print_share(summary.writing);
    printf("},");
  }
  printf("\"exclusive\":%s,\"per_thread\":[", sound ? "true" : "false");
  for (int i = 0; i < settings.threads; ++i)
    printf("%s%llu", i == 0 ? "" : ",", number(result.workers[i].operations));
  printf("]}\n");
}

void print_share_text(const char* name, const Share& share) {
  const Histogram& waits = share.waits;
  printf("%s%llu operations, Jain %.4f, least/mean %.4f\n", name, number(share.operations),
         share.jain(), share.least_to_mean());
  printf("  waits        p50 %llu ns, p99 %llu ns, p99.9 %llu ns, longest %llu ns (%llu sampled)\n",
         number(waits.percentile(0.5)), number(waits.percentile(0.99)),
         number(waits.percentile(0.999)), number(waits.longest()), number(waits.count()));
}

void print_text(const Settings& settings, const Result& result) {
  printf("%s, %d thread%s, section %llu ns, think %llu ns, %.2f s\n", object_name(settings.object),
         settings.threads, settings.threads == 1 ? "" : "s", number(settings.section_ns),
         number(settings.think_ns), summary.seconds);
  printf("  throughput   %.0f per second, %.1f ns each\n", summary.per_second,
         summary.per_second > 0 ? 1e9 / summary.per_second : 0.0);
  if (settings.object == ObjectKind::kCondBroadcast)
    printf("  rounds       %.1f per second\n", summary.per_second / settings.threads);
  print_share_text("  all          ", summary.all);
  if (settings.object == ObjectKind::kRwlock) {
    print_share_text("  readers      ", summary.reading);
    print_share_text("  writers      ", summary.writing);
  }
  printf("  stalls       longest %.1f ms; the last thread began after %.1f ms\n",
         static_cast<double>(result.longest_stall_ns) / 1e6,
         static_cast<double>(result.latest_start_ns) / 1e6);
  printf("  CPU          %.3f s per million operations\n", summary.cpu_s_per_million);
  printf("  per thread  ");
  for (int i = 0; i < settings.threads; ++i) printf(" %llu", number(result.workers[i].operations));
  printf("\n");
}

}  // namespace

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
            number(result.counter), number(summary.updates), number(summary.torn_reads));
  }
  return sound;
}

}  // namespace lockbench
