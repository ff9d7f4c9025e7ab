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
    "  --object KIND       what to measure (mutex):\n"
    "                      mutex, spin, rwlock, c11-mutex,\n"
    "                      cond (a bounded queue), cond-pingpong (pairs take turns),\n"
    "                      cond-broadcast (one more thread wakes all, all take the mutex again),\n"
    "                      none (no lock: what an operation costs besides)\n"
    "  --threads N         threads (2; cond-broadcast 64; none 1)\n"
    "  --section NS        work inside the lock, nanoseconds (100)\n"
    "  --line-reads N      reads of the lock's own cache line inside the lock (0)\n"
    "  --think NS          work between two operations, on average (0)\n"
    "  --think-x X         the same as a multiple of the section\n"
    "  --seconds S, --ms M duration (1 s)\n"
    "  --reads PERCENT     share of reads with --object rwlock (90)\n"
    "  --roles mixed|fixed each thread reads and writes, or PERCENT of them only read (mixed)\n"
    "  --sample N          time one wait in N; 0 chooses (0)\n"
    "  --turns X           turns of the working loop in a nanosecond, as --limits says\n"
    "  --alone             measure in the main thread, without any other\n"
    "  --limits            what atomics, cache lines, futexes and switches take here, no lock\n"
    "  --json              one line of JSON\n";

constexpr const char* kObjectNames[kObjectKinds] = {
    "mutex", "spin", "rwlock", "c11-mutex", "cond", "cond-pingpong", "cond-broadcast", "none"};

bool parse_number(const char* text, std::uint64_t low, std::uint64_t high, std::uint64_t* number) {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end != '\0' || value < low || value > high) return false;
  *number = value;
  return true;
}

bool parse_int(const char* text, int low, int high, int* number) {
  std::uint64_t value = 0;
  if (!parse_number(text, static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high),
                    &value))
    return false;
  *number = static_cast<int>(value);
  return true;
}

bool parse_count(const char* text, std::uint32_t high, std::uint32_t* number) {
  std::uint64_t value = 0;
  if (!parse_number(text, 0, high, &value)) return false;
  *number = static_cast<std::uint32_t>(value);
  return true;
}

bool parse_real(const char* text, double low, double high, double* number) {
  char* end = nullptr;
  const double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= low) || value > high) return false;
  *number = value;
  return true;
}

bool parse_object(const char* text, ObjectKind* kind) {
  for (int i = 0; i < kObjectKinds; ++i) {
    if (strcmp(text, kObjectNames[i]) != 0) continue;
    *kind = static_cast<ObjectKind>(i);
    return true;
  }
  return false;
}

bool parse_roles(const char* text, bool* fixed) {
  *fixed = strcmp(text, "fixed") == 0;
  return *fixed || strcmp(text, "mixed") == 0;
}

enum Option : int {
  kObject = 256,
  kThreads,
  kSection,
  kThink,
  kThinkX,
  kSeconds,
  kMs,
  kReads,
  kRoles,
  kLineReads,
  kSample,
  kTurns,
  kAlone,
  kLimits,
  kJson,
  kHelp
};

constexpr option kOptions[] = {
    {"object", required_argument, nullptr, kObject},
    {"threads", required_argument, nullptr, kThreads},
    {"section", required_argument, nullptr, kSection},
    {"think", required_argument, nullptr, kThink},
    {"think-x", required_argument, nullptr, kThinkX},
    {"seconds", required_argument, nullptr, kSeconds},
    {"ms", required_argument, nullptr, kMs},
    {"line-reads", required_argument, nullptr, kLineReads},
    {"reads", required_argument, nullptr, kReads},
    {"roles", required_argument, nullptr, kRoles},
    {"sample", required_argument, nullptr, kSample},
    {"turns", required_argument, nullptr, kTurns},
    {"alone", no_argument, nullptr, kAlone},
    {"limits", no_argument, nullptr, kLimits},
    {"json", no_argument, nullptr, kJson},
    {"help", no_argument, nullptr, kHelp},
    {nullptr, 0, nullptr, 0},
};

bool apply(int choice, const char* value, Settings* settings) {
  constexpr std::uint64_t kMaxWork = 1'000'000'000;
  double real = 0;
  switch (choice) {
    case kObject:
      return parse_object(value, &settings->object);
    case kSection:
      return parse_number(value, 0, kMaxWork, &settings->section_ns);
    case kThink:
      return parse_number(value, 0, kMaxWork, &settings->think_ns);
    case kThinkX:
      return parse_real(value, 0, 1000, &settings->think_multiple);
    case kSeconds:
    case kMs:
      if (!parse_real(value, choice == kMs ? 1 : 0.001, choice == kMs ? 3'600'000 : 3600, &real))
        return false;
      settings->duration_ns = static_cast<std::uint64_t>(real * (choice == kMs ? 1e6 : 1e9));
      return true;
    case kThreads:
      return parse_int(value, 1, 4096, &settings->threads);
    case kReads:
      return parse_count(value, 100, &settings->read_percent);
    case kRoles:
      return parse_roles(value, &settings->fixed_roles);
    case kLineReads:
      return parse_count(value, 1'000'000, &settings->line_reads);
    case kSample:
      return parse_count(value, 1'000'000, &settings->sample_every);
    case kTurns:
      return parse_real(value, 1e-6, 1000, &settings->turns_per_ns);
    case kAlone:
      return settings->alone = true;
    case kLimits:
      return settings->limits = true;
    case kJson:
      return settings->json = true;
    default:
      return false;
  }
}

void choose_rest(Settings* settings) {
  if (settings->alone) settings->threads = 1;
  if (settings->threads == 0) {
    settings->threads = settings->object == ObjectKind::kCondBroadcast ? 64
                        : settings->object == ObjectKind::kNone        ? 1
                                                                       : 2;
  }
  if (settings->think_multiple >= 0) {
    settings->think_ns = static_cast<std::uint64_t>(settings->think_multiple *
                                                    static_cast<double>(settings->section_ns));
  }
  // Two readings of the clock weigh on a short operation, and nothing beside a long one, of which
  // there are fewer.
  if (settings->sample_every == 0) {
    settings->sample_every = settings->threads == 1           ? 64
                             : settings->section_ns >= 10'000 ? 1
                             : settings->section_ns >= 1'000  ? 3
                                                              : 8;
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
  if (settings->alone && settings->object == ObjectKind::kCondBroadcast) {
    fputs("lockbench: error: --alone: cond-broadcast: needs a second thread\n", stderr);
    return 3;
  }
  choose_rest(settings);
  return 0;
}

}  // namespace

const char* object_name(ObjectKind kind) { return kObjectNames[static_cast<int>(kind)]; }

int run(int argc, char** argv) {
  Settings settings;
  const int answer = parse_arguments(argc, argv, &settings);
  if (answer != 0) return answer - 1;
  if (settings.limits) {
    report_limits(measure_limits(), settings.json);
    return 0;
  }
  set_turns_per_ns(settings.turns_per_ns > 0 ? settings.turns_per_ns : calibrate());
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
