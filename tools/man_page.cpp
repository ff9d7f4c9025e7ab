#include "tools/man_page.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sstream>

#include "policy/options.h"
#include "tools/embedded.h"
#include "tools/message.h"

namespace relock {

namespace {

constexpr std::size_t kLineWidth = 78;

// Text as the page's language wants it: a hyphen stays the character that a reader can copy into a
// shell, and a line may end between alternatives.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    if (c == '|') result += "\\:";
  }
  return result;
}

// The same in lines, none of which is taken for a request.
std::string paragraph(const std::string& text) {
  std::string result;
  std::string line;
  const auto end_line = [&] {
    if (line.empty()) return;
    result += (line[0] == '.' || line[0] == '\'' ? "\\&" : "") + line + "\n";
    line.clear();
  };
  std::istringstream words(roff(text));
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kLineWidth) end_line();
    line += (line.empty() ? "" : " ") + word;
  }
  end_line();
  return result;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }

void entry(const std::string& tag, const std::string& text, std::ostream& page) {
  page << ".TP\n" << tag << "\n" << paragraph(text);
}

std::string value_name(const CLI::Option& option) {
  if (!option.get_option_text().empty()) return option.get_option_text();
  return option.get_type_size() == 0 ? "" : option.get_type_name();
}

// "-o, --dir DIRECTORY", the value in italics.
std::string option_tag(const CLI::Option& option) {
  std::string tag;
  std::istringstream names(option.get_name(false, true));
  for (std::string name; std::getline(names, name, ',');) {
    tag += (tag.empty() ? "" : ", ") + bold(name);
  }
  const std::string value = value_name(option);
  return value.empty() ? tag : tag + " \\fI" + roff(value) + "\\fR";
}

// One command: how it is called, what it does, its options.
void print_command(const CLI::App& command, std::ostream& page) {
  page << ".SS ";
  page << "relock " << command.get_name();
  const auto options = command.get_options([](const CLI::Option* option) {
    return !option->get_group().empty() && option->nonpositional();
  });
  if (!options.empty()) page << " [OPTIONS]";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string text = option->get_option_text();
    page << " " << roff(text.empty() ? option->get_name(true) : text);
  }
  page << "\n" << paragraph(command.get_description() + ".");
  for (const CLI::Option* option : options) {
    if (option == command.get_help_ptr()) continue;
    entry(option_tag(*option), option->get_description() + ".", page);
  }
}

void print_commands(const CLI::App& app, std::ostream& page) {
  // With a filter, the commands that exist; without one, those that were given.
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    print_command(*command, page);
  }
}

void print_locks(std::ostream& page) {
  for (int i = 0; i < kLockCount; ++i) {
    const auto kind = static_cast<LockKind>(i);
    const LockRow& row = lock_row(kind);
    std::string text = row.idea;
    if (kind == kDefaultLock) text += "; the default";
    text += std::string(". Order: ") + row.fair + ".";
    entry(bold(row.name), text, page);
  }
}

void print_variables(std::ostream& page) {
  for (int i = 0; i < option_count(); ++i) {
    const OptionRow& row = option_row(i);
    LineBuffer initial;
    LineBuffer accepted;
    describe_default(row, &initial);
    describe_accepted(row, &accepted);
    entry(bold(row.name), std::string(row.help) + ".", page);
    page << ".br\n"
         << paragraph(std::string("Default: ") + initial.data + ". Accepted: " + accepted.data +
                      ".");
  }
}

std::string page_date() {
  const std::string fixed = foreign_variable("SOURCE_DATE_EPOCH");
  const std::time_t time = fixed.empty() ? std::time(nullptr) : std::atoll(fixed.c_str());
  std::tm broken{};
  char text[32] = "";
  if (gmtime_r(&time, &broken) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d", &broken);
  return text;
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& date) {
  std::ostringstream page;
  std::istringstream lines{std::string(manual_template())};
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(".\\\"", 0) == 0) continue;  // a remark about the template
    if (line == "@commands@")
      print_commands(app, page);
    else if (line == "@locks@")
      print_locks(page);
    else if (line == "@variables@")
      print_variables(page);
    else if (line.rfind(".TH ", 0) == 0)
      page << ".TH RELOCK 1 " << date << " relock\n";
    else
      page << line << "\n";
  }
  return page.str();
}

int man_command(const CLI::App& app) {
  std::fputs(man_page(app, page_date()).c_str(), stdout);
  return std::fflush(stdout) == 0 ? kOk : fail(kFailed, "standard output", "cannot be written");
}

}  // namespace relock
