// The command line of lockbench. Exit status: 0, 1 when the lock did not exclude, 2 for wrong
// arguments.

#include "tools/lockbench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace lockbench {

namespace {

constexpr char kUsage[] =
    "usage: lockbench [options]\n"
    "  --object mutex|spin|cond|rwlock   what to measure (mutex)\n"
    "  --threads N         threads (2)\n"
    "  --section NS        work inside the lock, nanoseconds (100)\n"
    "  --line-reads N      reads of the lock's own cache line inside the lock (0)\n"
    "  --think NS          work between two operations, on average (0)\n"
    "  --seconds S, --ms M duration (1 s)\n"
    "  --reads PERCENT     share of readers with --object rwlock (90)\n"
    "  --sample N          time one wait in N; 0 chooses (0)\n"
    "  --alone             measure in the main thread, without any other\n"
    "  --json              one line of JSON\n";

bool parse_number(const char* text, std::uint64_t low, std::uint64_t high, std::uint64_t* number) {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end != '\0' || value < low || value > high) return false;
  *number = value;
  return true;
}

bool parse_seconds(const char* text, std::uint64_t* duration_ns) {
  char* end = nullptr;
  const double seconds = strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds >= 0.001) || seconds > 3600) return false;
  *duration_ns = static_cast<std::uint64_t>(seconds * 1e9);
  return true;
}

bool parse_object(const char* text, ObjectKind* kind) {
  constexpr ObjectKind kKinds[] = {ObjectKind::kMutex, ObjectKind::kSpin, ObjectKind::kCond,
                                   ObjectKind::kRwlock};
  for (ObjectKind candidate : kKinds) {
    if (strcmp(text, object_name(candidate)) != 0) continue;
    *kind = candidate;
    return true;
  }
  return false;
}

enum Option : int {
  kObject = 256,
  kThreads,
  kSection,
  kThink,
  kSeconds,
  kMs,
  kReads,
  kLineReads,
  kSample,
  kAlone,
  kJson,
  kHelp
};

constexpr option kOptions[] = {
    {"object", required_argument, nullptr, kObject},
    {"threads", required_argument, nullptr, kThreads},
    {"section", required_argument, nullptr, kSection},
    {"think", required_argument, nullptr, kThink},
    {"seconds", required_argument, nullptr, kSeconds},
    {"ms", required_argument, nullptr, kMs},
    {"line-reads", required_argument, nullptr, kLineReads},
    {"reads", required_argument, nullptr, kReads},
    {"sample", required_argument, nullptr, kSample},
    {"alone", no_argument, nullptr, kAlone},
    {"json", no_argument, nullptr, kJson},
    {"help", no_argument, nullptr, kHelp},
    {nullptr, 0, nullptr, 0},
};

bool apply(int choice, const char* value, Settings* settings) {
  constexpr std::uint64_t kMaxWork = 1'000'000'000;
  std::uint64_t number = 0;
  switch (choice) {
    case kObject:
      return parse_object(value, &settings->object);
    case kSection:
      return parse_number(value, 0, kMaxWork, &settings->section_ns);
    case kThink:
      return parse_number(value, 0, kMaxWork, &settings->think_ns);
    case kSeconds:
      return parse_seconds(value, &settings->duration_ns);
    case kAlone:
      return settings->alone = true;
    case kJson:
      return settings->json = true;
    case kMs:
      if (!parse_number(value, 1, 3'600'000, &number)) return false;
      settings->duration_ns = number * 1'000'000;
      return true;
    case kThreads:
      if (!parse_number(value, 1, 4096, &number)) return false;
      settings->threads = static_cast<int>(number);
      return true;
    case kReads:
      if (!parse_number(value, 0, 100, &number)) return false;
      settings->read_percent = static_cast<std::uint32_t>(number);
      return true;
    case kLineReads:
      if (!parse_number(value, 0, 1'000'000, &number)) return false;
      settings->line_reads = static_cast<std::uint32_t>(number);
      return true;
    case kSample:
      if (!parse_number(value, 0, 1'000'000, &number)) return false;
      settings->sample_every = static_cast<std::uint32_t>(number);
      return true;
    default:
      return false;
  }
}

// 0 to go on, otherwise the exit status plus one.
int parse_arguments(int argc, char** argv, Settings* settings) {
  int index = 0;
  int choice = 0;
  while ((choice = getopt_long(argc, argv, "", kOptions, &index)) != -1) {
    if (choice == kHelp) {
      fputs(kUsage, stdout);
      return 1;
    }
    if (choice == '?') return 3;
    if (!apply(choice, optarg, settings)) {
      fprintf(stderr, "lockbench: error: --%s: %s: not accepted (see --help)\n",
              kOptions[index].name, optarg);
      return 3;
    }
  }
  if (optind < argc) {
    fprintf(stderr, "lockbench: error: %s: not an option (see --help)\n", argv[optind]);
    return 3;
  }
  if (settings->alone) settings->threads = 1;
  // Two readings of the clock weigh on an uncontended operation, and little on a contended one.
  if (settings->sample_every == 0) settings->sample_every = settings->threads == 1 ? 64 : 8;
  return 0;
}

}  // namespace

int run(int argc, char** argv) {
  Settings settings;
  const int answer = parse_arguments(argc, argv, &settings);
  if (answer != 0) return answer - 1;
  calibrate();
  Result result;
  const int error = measure(settings, &result);
  if (error != 0) {
    fprintf(stderr, "lockbench: error: %d threads: %s\n", settings.threads, strerror(error));
    return 1;
  }
  return report(settings, result) ? 0 : 1;
}

}  // namespace lockbench

int main(int argc, char** argv) { return lockbench::run(argc, argv); }
