// The relock command. Each subcommand lives in a file of its own; this one reads the arguments.
//
// Exit status: 0 done, 1 failed, 2 wrong arguments (nothing was started then), and for run and
// record otherwise the program's own.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include "tools/advise.h"
#include "tools/check.h"
#include "tools/compare.h"
#include "tools/diff_cmd.h"
#include "tools/list.h"
#include "tools/man_page.h"
#include "tools/message.h"
#include "tools/report_cmd.h"
#include "tools/run.h"
#include "tools/top_cmd.h"

namespace {

using relock::RunRequest;

// Options that stand for a variable: its value is checked by the table, not here.
struct VariableFlag {
  const char* flag;
  const char* variable;
  const char* value_name;
  const char* help;
};

constexpr VariableFlag kRunFlags[] = {
    {"--lock", "RELOCK_LOCK", "NAME", "lock behind mutexes and spinlocks (see relock list)"},
    {"--mutex", "RELOCK_MUTEX", "NAME", "lock behind mutexes alone"},
    {"--spin", "RELOCK_SPIN", "NAME", "lock behind spinlocks alone"},
    {"--wait", "RELOCK_WAIT", "MODE", "spin, park or adaptive"},
    {"--rules", "RELOCK_RULES", "FILE", "rules that pick the lock of single objects"},
};
constexpr VariableFlag kRecordFlags[] = {
    {"--interval", "RELOCK_LOG_INTERVAL", "SECONDS", "log the hottest locks this often"},
    {"--log-file", "RELOCK_LOG_FILE", "FILE", "write the log there instead of standard error"},
};

void add_variable(CLI::App* command, RunRequest* request, const VariableFlag& flag) {
  command
      ->add_option_function<std::string>(
          flag.flag,
          [request, variable = flag.variable](const std::string& value) {
            request->variables.emplace_back(variable, value);
          },
          flag.help)
      ->option_text(flag.value_name);
}

// Options end where the program begins: at "--" or at the first word that is not an option.
void add_run_options(CLI::App* command, RunRequest* request) {
  for (const VariableFlag& flag : kRunFlags) add_variable(command, request, flag);
  command->add_flag_callback(
      "--verbose", [request] { request->variables.emplace_back("RELOCK_VERBOSE", "1"); },
      "one line at start: locks, waiting, CPUs, nodes");
  command->add_option("program", request->command, "the program and its arguments, after --")
      ->option_text("-- PROGRAM [ARGUMENTS]");
}

template <std::size_t N>
std::vector<std::string> words(const char* const (&list)[N]) {
  return std::vector<std::string>(std::begin(list), std::end(list));
}

// One of the words, or an error that names them.
template <std::size_t N>
CLI::Validator one_of(const char* const (&list)[N]) {
  return CLI::Validator(
      [known = words(list)](const std::string& value) -> std::string {
        if (std::find(known.begin(), known.end(), value) != known.end()) return "";
        return value + ": accepted: " + CLI::detail::join(known, "|");
      },
      "", "words");
}

void add_file_options(CLI::App* command, std::vector<std::string>* binaries, std::string* output) {
  command
      ->add_option("--binaries", *binaries,
                   "where programs, libraries and debug files are, found by build id")
      ->allow_extra_args(false)
      ->option_text("DIRECTORY");
  command->add_option("-o,--output", *output, "write there")->option_text("FILE");
}

void add_report_options(CLI::App* command, relock::ReportOptions* report) {
  command->add_option("files", report->files, "profiles; several are added up")
      ->required()
      ->option_text("FILE...");
  command
      ->add_option("--format", report->format, "text, json, folded (flame graphs), pprof or html")
      ->check(one_of(relock::kReportFormats))
      ->option_text("FORMAT");
  command
      ->add_option("--by", report->by,
                   "what one entry is: a lock, where locks are made (init), "
                   "or where threads wait (site)")
      ->check(one_of(relock::kGroupings))
      ->option_text("lock|init|site");
  command->add_option("--top", report->top, "how many locks are shown")->option_text("N");
  command->add_flag("--blockers", report->blockers,
                    "the stacks that held the locks, instead of those that waited");
  command->add_flag("--conditions", report->conditions,
                    "folded and pprof: condition variables instead of locks");
  add_file_options(command, &report->binaries, &report->output);
}

void add_diff_options(CLI::App* command, relock::DiffOptions* diff) {
  command->add_option("before", diff->before, "the profile to compare with")
      ->required()
      ->option_text("BEFORE");
  command->add_option("after", diff->after, "the profile of the other run")
      ->required()
      ->option_text("AFTER");
  command->add_option("--format", diff->format, "text or json")
      ->check(one_of(relock::kDiffFormats))
      ->option_text("FORMAT");
  command->add_option("--by", diff->by, "as in relock report")
      ->check(one_of(relock::kGroupings))
      ->option_text("lock|init|site");
  command->add_option("--top", diff->top, "how many locks are shown")->option_text("N");
  add_file_options(command, &diff->binaries, &diff->output);
}

void add_top_options(CLI::App* command, relock::TopOptions* top) {
  command->add_option("target", top->target, "a process that is recorded, or a profile")
      ->required()
      ->option_text("PID|FILE");
  command->add_option("--interval", top->interval, "how long rates are taken over (1)")
      ->option_text("SECONDS");
  command->add_flag("--once", top->once, "print one frame, for scripts");
  command->add_option("--top", top->top, "with --once: rows of the table (20)")->option_text("N");
}

// CLI11 would read the program's own options as ours, so the arguments are cut in two first.
// Returns the index of the program in argv, or argc.
int program_index(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command != "run" && command != "record" && command != "compare") return argc;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return i + 1;
    if (word.empty() || word[0] != '-') return i;
    const bool alone = word == "--verbose" || word == "--help" || word == "-h" ||
                       word == "--same-output" || word == "--lower-is-better" ||
                       word.find('=') != std::string::npos || (word.size() > 2 && word[1] != '-');
    if (!alone) ++i;  // the next word is this option's value
  }
  return argc;
}

struct Arguments {
  RunRequest request;
  std::string directory;  // where profiles go; empty: as the environment says, else here
  std::string checked;
  relock::ReportOptions report;
  relock::DiffOptions diff;
  relock::TopOptions top;
  relock::CompareRequest compare;
  relock::AdviseOptions advise;
};

struct Commands {
  CLI::App app{"relock swaps the locks of a program and shows where it waits.", "relock"};
  CLI::App* run = nullptr;
  CLI::App* record = nullptr;
  CLI::App* report = nullptr;
  CLI::App* diff = nullptr;
  CLI::App* top = nullptr;
  CLI::App* list = nullptr;
  CLI::App* check = nullptr;
  CLI::App* compare = nullptr;
  CLI::App* advise = nullptr;
};

void declare(Commands* commands, Arguments* arguments) {
  CLI::App& app = commands->app;
  app.require_subcommand(1);
  app.add_flag("--man")->description("print the manual page, as man -l reads it");
  commands->run = app.add_subcommand("run", "start a program with its locks swapped");
  add_run_options(commands->run, &arguments->request);
  commands->record = app.add_subcommand("record", "the same, and record who waits for what");
  add_run_options(commands->record, &arguments->request);
  for (const VariableFlag& flag : kRecordFlags) {
    add_variable(commands->record, &arguments->request, flag);
  }
  commands->record->add_option("-o,--dir", arguments->directory, "where the profile is written")
      ->option_text("DIRECTORY");
  commands->report = app.add_subcommand("report", "print a profile: the hottest locks first");
  add_report_options(commands->report, &arguments->report);
  commands->diff = app.add_subcommand("diff", "what got better and worse between two profiles");
  add_diff_options(commands->diff, &arguments->diff);
  commands->top = app.add_subcommand("top", "watch a program while it is being recorded");
  add_top_options(commands->top, &arguments->top);
  commands->list = app.add_subcommand("list", "the locks and the environment variables");
  commands->check = app.add_subcommand("check", "say whether relock can work on a program");
  commands->check->add_option("program", arguments->checked, "a program")->required();
  commands->compare =
      app.add_subcommand("compare", "run a program under each lock and say which to use");
  relock::declare_compare(commands->compare, &arguments->compare);
  commands->advise = app.add_subcommand(
      "advise", "say which locks of a profile another backend would serve better");
  relock::declare_advise(commands->advise, &arguments->advise);
}

int dispatch(const Commands& commands, const Arguments& arguments) {
  if (commands.run->parsed()) return relock::run_command(arguments.request);
  if (commands.record->parsed()) {
    return relock::record_command(arguments.request, arguments.directory);
  }
  if (commands.compare->parsed()) return relock::compare_command(arguments.compare);
  if (commands.advise->parsed()) return relock::advise_command(arguments.advise);
  if (commands.list->parsed()) return relock::list_command();
  if (commands.check->parsed()) return relock::check_command(arguments.checked);
  if (commands.diff->parsed()) return relock::diff_command(arguments.diff);
  if (commands.top->parsed()) return relock::top_command(arguments.top);
  if (commands.report->parsed()) return relock::report_command(arguments.report);
  return relock::kUsage;
}

int run(int argc, char** argv) {
  Arguments arguments;
  Commands commands;
  declare(&commands, &arguments);
  const auto is_named = [&](const CLI::App* command) {
    return argc > 1 && command->get_name() == argv[1];
  };
  if (argc > 1 && argv[1][0] != '-' && commands.app.get_subcommands(is_named).empty()) {
    return relock::fail(relock::kUsage, argv[1], "no such subcommand: see relock --help");
  }
  if (argc == 2 && std::string(argv[1]) == "--man") return relock::man_command(commands.app);
  const int program = program_index(argc, argv);
  int ours = program;
  if (program > 2 && program <= argc && std::string(argv[program - 1]) == "--") --ours;
  try {
    commands.app.parse(ours, argv);
  } catch (const CLI::CallForHelp& help) {
    return commands.app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::string why = error.what();
    for (char& c : why) {
      if (c == '\n') c = ' ';
    }
    return relock::fail(relock::kUsage, why, "see relock --help");
  }
  arguments.request.command.assign(argv + program, argv + argc);
  arguments.compare.command = arguments.request.command;
  return dispatch(commands, arguments);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return relock::fail(relock::kFailed, argv[0], error.what());
  }
}
