#include "report.h"

#include <cstdio>
#include <cstring>

namespace relock::explore {

namespace {

constexpr int kFewestPlanted = 24;

// Every name that a planted bug must show up under: the locks with an algorithm of their own, and
// the objects built upon them.
const char* const kSubjects[] = {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) name,
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
    "rwsem",
    "condvar",
};

bool stands_for_another(const char* subject) {
  return std::strcmp(subject, "auto") == 0 || std::strcmp(subject, "glibc") == 0;
}

// "planted: WHAT/LOCK mutex/..." is about LOCK.
bool is_about(const Case& test, const std::string& subject) {
  const std::size_t slash = test.name.find('/' + subject);
  if (slash == std::string::npos) return false;
  const std::size_t end = slash + 1 + subject.size();
  return end == test.name.size() || test.name[end] == ' ' || test.name[end] == '/';
}

}  // namespace

PlantedCount count_planted(const std::vector<Case>& cases) {
  PlantedCount count;
  for (const char* subject : kSubjects) {
    if (stands_for_another(subject)) continue;
    int here = 0;
    for (const Case& test : cases) {
      if (test.name.rfind("planted", 0) == 0 && !test.slow && is_about(test, subject)) ++here;
    }
    count.all += here;
    if (!count.by_lock.empty()) count.by_lock += ", ";
    count.by_lock += std::string(subject) + " " + std::to_string(here);
    if (here == 0) count.missing = std::string("none in ") + subject;
  }
  if (count.all < kFewestPlanted) count.missing = "only " + std::to_string(count.all);
  return count;
}

std::string describe(const Totals& totals, double seconds, int workers) {
  char text[200];
  std::snprintf(text, sizeof text,
                "explored: %u cases, %llu executions, %llu states, %.0f s in %d processes%s",
                totals.ran.load(), static_cast<unsigned long long>(totals.executions.load()),
                static_cast<unsigned long long>(totals.states.load()), seconds, workers,
                totals.unfinished.load() == 0 ? "" : "; ");
  std::string line = text;
  if (totals.unfinished.load() != 0) {
    line += std::to_string(totals.unfinished.load()) + " cases not exhausted";
  }
  return line;
}

}  // namespace relock::explore
