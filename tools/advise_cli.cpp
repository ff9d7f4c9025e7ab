// The options of `relock advise`.
#include <CLI/CLI.hpp>

#include "tools/advise.h"

namespace relock {

void declare_advise(CLI::App* command, AdviseOptions* options) {
  command->add_option("file", options->file, "a profile")->required()->option_text("FILE");
  command
      ->add_option("--rules", options->rules,
                   "write a file for RELOCK_RULES (what is printed is one, too)")
      ->option_text("OUT");
  command
      ->add_option("--cpus", options->cpus,
                   "CPUs of the machine that was recorded; this one's by default")
      ->option_text("N");
  command
      ->add_option("--binaries", options->binaries,
                   "where programs, libraries and debug files are, found by build id")
      ->allow_extra_args(false)
      ->option_text("DIRECTORY");
}

}  // namespace relock
