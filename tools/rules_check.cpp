#include "tools/rules_check.h"

#include <cstdlib>
#include <memory>
#include <vector>

#include "policy/options.h"
#include "policy/rules.h"
#include "tools/message.h"

namespace relock {

namespace {

struct FirstError {
  std::string place;
  std::string what;
};

void note(void* context, std::uint32_t line, const char* what) {
  auto& error = *static_cast<FirstError*>(context);
  if (!error.what.empty()) return;
  if (line != 0) error.place = ":" + std::to_string(line);
  error.what = what;
}

}  // namespace

int check_rules() {
  const std::string path = foreign_variable("RELOCK_RULES");
  if (path.empty()) return kOk;
  std::vector<char> text(kMostRulesText + 1);
  const auto rules = std::make_unique<RuleSet>();
  FirstError error;
  const char* unreadable = load_rules(path.c_str(), text.data(), rules.get(), note, &error);
  if (unreadable != nullptr) error.what = unreadable;
  if (!error.what.empty()) {
    return fail(kUsage, "RELOCK_RULES=" + path + error.place, error.what + ": nothing was started");
  }
  if (char* absolute = realpath(path.c_str(), nullptr)) {
    setenv("RELOCK_RULES", absolute, 1);
    free(absolute);
  }
  return kOk;
}

}  // namespace relock
