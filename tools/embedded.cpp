#include "tools/embedded.h"

// The assembler copies the file's bytes; the Makefile says that this file depends on them.
#define RELOCK_EMBED(symbol, file)                                                       \
  asm(".pushsection .rodata\n" #symbol ": .incbin \"tools/embedded/" file "\"\n" #symbol \
      "_end:\n"                                                                          \
      ".popsection\n");                                                                  \
  extern "C" const char symbol[];                                                        \
  extern "C" const char symbol##_end[]

namespace relock {

namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

RELOCK_EMBED(relock_embedded_manual, "relock.1.in");
std::string_view manual_template() {
  return between(relock_embedded_manual, relock_embedded_manual_end);
}

}  // namespace relock
