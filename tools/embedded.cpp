#include "tools/embedded.h"

// The assembler copies the files' bytes, one after the other; the Makefile says that this file
// depends on them. Several files are given as FILE("a") FILE("b").
#define RELOCK_FILE(name) ".incbin \"tools/embedded/" name "\"\n"
#define RELOCK_EMBED(symbol, files)                                                 \
  asm(".pushsection .rodata\n" #symbol ":\n" files #symbol "_end:\n.popsection\n"); \
  extern "C" const char symbol[];                                                   \
  extern "C" const char symbol##_end[]

namespace relock {

namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

RELOCK_EMBED(relock_embedded_manual, RELOCK_FILE("relock.1.in"));
std::string_view manual_template() {
  return between(relock_embedded_manual, relock_embedded_manual_end);
}

RELOCK_EMBED(relock_embedded_page, RELOCK_FILE("report.html"));
std::string_view html_template() { return between(relock_embedded_page, relock_embedded_page_end); }

RELOCK_EMBED(relock_embedded_style, RELOCK_FILE("report.css"));
std::string_view html_style() { return between(relock_embedded_style, relock_embedded_style_end); }

RELOCK_EMBED(relock_embedded_script,
             RELOCK_FILE("report_data.js") RELOCK_FILE("report_flame.js")
                 RELOCK_FILE("report_table.js") RELOCK_FILE("report_charts.js")
                     RELOCK_FILE("report_page.js"));
std::string_view html_script() {
  return between(relock_embedded_script, relock_embedded_script_end);
}

}  // namespace relock
