// The one translation unit that holds Catch2's implementation and main. Every test binary links
// it, and it adds the reporter that speaks the suites' protocol: one line per test case.

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <string>

namespace {

// `-r lines`: "ok NAME" or "not ok NAME - reason" as soon as a case ends, so that a crash loses
// only the case it happened in. The expressions that failed precede the line, indented.
class LinesReporter : public Catch::StreamingReporterBase<LinesReporter> {
 public:
  explicit LinesReporter(const Catch::ReporterConfig& config)
      : Catch::StreamingReporterBase<LinesReporter>(config) {}

  static std::string getDescription() { return "one line per test case, for tests/run_suites.sh"; }

  void assertionStarting(const Catch::AssertionInfo&) override {}

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (!result.isOk()) note_failure(stats, result);
    return true;
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const std::string& name = stats.testInfo.name;
    if (stats.totals.assertions.allOk()) {
      stream << "ok " << name << std::endl;
    } else {
      stream << "not ok " << name << " - " << reason_ << std::endl;
    }
    reason_.clear();
    StreamingReporterBase::testCaseEnded(stats);
  }

 private:
  void note_failure(const Catch::AssertionStats& stats, const Catch::AssertionResult& result) {
    std::string what = result.hasExpression() ? result.getExpandedExpression() : "";
    if (result.hasMessage()) what += (what.empty() ? "" : ": ") + result.getMessage();
    stream << "  " << result.getSourceInfo() << ": " << result.getExpression() << ": " << what
           << '\n';
    for (const Catch::MessageInfo& info : stats.infoMessages) {
      stream << "    " << info.message << '\n';
    }
    stream.flush();
    if (!reason_.empty()) return;
    for (char& c : what) {
      if (c == '\n') c = ' ';
    }
    reason_ = what;
  }

  std::string reason_;  // of the first failure in the case
};

CATCH_REGISTER_REPORTER("lines", LinesReporter)

}  // namespace
