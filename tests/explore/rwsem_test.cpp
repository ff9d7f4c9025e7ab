// The readers-writer lock: every script must pass.
#include "case.h"
#include "policy/options.h"
#include "rwsem_scripts.h"

namespace relock::explore {

namespace {

Bounds bounds_of(int preemptions, int timeouts = 0) {
  Bounds bounds;
  bounds.preemptions = preemptions + (deep() ? 1 : 0);
  bounds.timeouts = timeouts;
  bounds.delayed_stores = deep() ? 1 : 0;
  return bounds;
}

}  // namespace

void add_rwsem_cases(std::vector<Case>& cases) {
  using R = RwPrograms;
  for (const WaitMode mode : {WaitMode::kSpin, WaitMode::kPark, WaitMode::kAdaptive}) {
    Setting setting;
    setting.mode = mode;
    const std::string suffix = wait_mode_name(mode);
    const auto add = [&](const std::string& name, Program program, Bounds bounds) {
      if (mode == WaitMode::kAdaptive) bounds.free_pauses = 1;
      cases.push_back({name + "/rwsem/" + suffix, std::move(program), bounds, Expect::kPass, ""});
    };
    for (const bool prefers_writers : {false, true}) {
      const std::string kind = prefers_writers ? ", writers preferred" : "";
      for (const char* who : {"rw", "ww", "rww", "rrw", "www"}) {
        const int preemptions = std::string(who).size() == 2 ? 3 : 2;
        add(std::string("crowd ") + who + kind, R::crowd(setting, who, prefers_writers),
            bounds_of(preemptions));
      }
      add("crowd rrww" + kind, R::crowd(setting, "rrww", prefers_writers), bounds_of(1));
      add("one tries to read" + kind, R::crowd(setting, "twr", prefers_writers), bounds_of(2));
      add("one tries to write" + kind, R::crowd(setting, "Twr", prefers_writers), bounds_of(2));
      add("a reader gives up" + kind, R::crowd(setting, "xwr", prefers_writers), bounds_of(2, 1));
      add("a writer gives up" + kind, R::crowd(setting, "Xwr", prefers_writers), bounds_of(2, 1));
      add("a writer gives up among readers" + kind, R::crowd(setting, "Xrr", prefers_writers),
          bounds_of(2, 1));
      add("both give up" + kind, R::crowd(setting, "xXw", prefers_writers), bounds_of(2, 2));
      add("forked while held" + kind, R::forking(setting, true, prefers_writers), bounds_of(1));
      add("forked after release" + kind, R::forking(setting, false, prefers_writers), bounds_of(2));
    }
    add("read again while a writer waits", R::crowd(setting, "Rw", false), bounds_of(3));
    add("read again among others", R::crowd(setting, "Rwr", false), bounds_of(2));
    add("destroyed by the last", R::destroying(setting), bounds_of(2));
    if (mode == WaitMode::kPark) {
      Setting promoting = setting;
      promoting.promote_ns = 10'000'000'000;
      for (const char* who : {"rww", "xww", "rwX"}) {
        add(std::string("bounded sleep, ") + who, R::crowd(promoting, who, false), bounds_of(2, 2));
      }
      Bounds spurious = bounds_of(3);  // a bit that is set twice takes so many
      spurious.spurious = 1;
      for (const char* who : {"rw", "ww"}) {
        add(std::string("a spurious wakeup, ") + who, R::crowd(setting, who, false), spurious);
      }
      spurious.preemptions = 2;
      add("a spurious wakeup, rww", R::crowd(setting, "rww", false), spurious);
    }
  }
}

}  // namespace relock::explore
