// The options of `relock compare`.
#include <CLI/CLI.hpp>

#include "tools/compare.h"

namespace relock {

void declare_compare(CLI::App* command, CompareRequest* request) {
  command->add_option("--locks", request->locks, "which locks (see relock list); all by default")
      ->option_text("NAME,...|all");
  command->add_option("-n,--rounds", request->rounds, "rounds, 1 to 1000; 7 by default")
      ->option_text("N");
  command
      ->add_option("--metric", request->metric,
                   "a figure in the program's output: the first group of this regular expression")
      ->option_text("REGEX");
  command->add_flag("--lower-is-better", request->lower_is_better,
                    "the figure is better when it is lower");
  command->add_flag("--same-output", request->same_output,
                    "standard output must be what it is bare");
  command
      ->add_option("--timeout", request->timeout,
                   "kill a run after this long and count it as failed; by default 20 times the "
                   "first bare run, at least 60 s")
      ->option_text("SECONDS");
  command
      ->add_option("--rules", request->rules,
                   "a file for RELOCK_RULES that takes part beside the locks (see relock advise)")
      ->option_text("FILE");
  command->add_option("--format", request->format, "text or json")->option_text("FORMAT");
  command->add_option("program", request->command, "the program and its arguments, after --")
      ->option_text("-- PROGRAM [ARGUMENTS]");
}

}  // namespace relock
