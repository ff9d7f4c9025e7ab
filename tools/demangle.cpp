#include "tools/demangle.h"

#include <cstdlib>
#include <cstring>

#define HAVE_DECL_BASENAME 1  // else libiberty declares its own, unlike the C library's
#include <libiberty/demangle.h>

namespace relock {

namespace {

// A substitution in a mangled name may stand for all that came before it, so a name can grow
// with the power of its length. Real names stay far below this.
constexpr std::size_t kLongestSymbol = 16384;

bool is_mangled(const char* symbol) {
  return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R');
}

// How many bytes the character at `text` has; 0 when it is none.
std::size_t character_bytes(const unsigned char* text, std::size_t left) {
  const unsigned char lead = text[0];
  if (lead < 0x80) return 1;
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes > left) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies above U+10FFFF.
  if (lead == 0xe0 && text[1] < 0xa0) return 0;
  if (lead == 0xed && text[1] > 0x9f) return 0;
  if (lead == 0xf0 && text[1] < 0x90) return 0;
  if (lead == 0xf4 && text[1] > 0x8f) return 0;
  return bytes;
}

}  // namespace

std::string demangled(const char* symbol) {
  if (!is_mangled(symbol) || strnlen(symbol, kLongestSymbol) == kLongestSymbol) return symbol;
  char* text = cplus_demangle(symbol, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
  std::string result = text != nullptr && text[0] != '\0' ? text : symbol;
  std::free(text);
  return result;
}

std::string valid_utf8(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data()) + at;
    const std::size_t length = character_bytes(bytes, text.size() - at);
    if (length == 0) {
      result += "\xef\xbf\xbd";
      ++at;
    } else {
      result.append(text, at, length);
      at += length;
    }
  }
  return result;
}

}  // namespace relock
