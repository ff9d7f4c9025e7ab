// Can relock work on a program? Asked by `relock check`, and by run and record before they start
// it.
#pragma once

#include <cstdint>
#include <string>

namespace relock {

enum class Verdict : std::uint8_t {
  kWorks,
  kNoLocks,      // nothing in it to swap; what it starts may have
  kNotAProgram,  // a library, or a file that nothing runs
  kStatic,
  kPrivileged,  // setuid, setgid or capabilities: the dynamic linker ignores LD_PRELOAD
  kArchitecture,
  kLibc,
  kSanitizer,
};

struct Finding {
  Verdict verdict = Verdict::kWorks;
  bool is_script = false;
  std::string sentence;  // what check prints after the program's name
  std::string advice;    // how to get on, for run and record; may be empty

  // Whether run and record must not start it. What they could still serve, a script's children for
  // instance, is only warned about.
  bool refused() const {
    return !is_script && verdict != Verdict::kWorks && verdict != Verdict::kNoLocks &&
           verdict != Verdict::kNotAProgram;
  }
};

// Looks at the file at `path`: its header, rights and libraries; a script's interpreter likewise.
Finding examine_program(const std::string& path);

// Where execvp would find `name`. *status is 0, 126 (there, but not executable) or 127 (not there).
std::string find_program(const std::string& name, int* status);

// `relock check name`: prints one sentence; 0 when relock can work on it, 1 when not, 2 when there
// is no such program.
int check_command(const std::string& name);

}  // namespace relock
