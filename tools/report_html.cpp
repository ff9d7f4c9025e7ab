#include "tools/report_html.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/embedded.h"
#include "tools/report_json.h"

namespace relock {

namespace {

// JSON that no HTML parser sees an end or a comment in: in JSON a < only stands inside strings.
std::string inert(const std::string& json) {
  std::string result;
  result.reserve(json.size() + json.size() / 16);
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string report_html(const Report& report) {
  std::string page;
  std::string_view rest = html_template();
  const std::string data = inert(json_text(report_json(report), false));
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"@style@", html_style()}, {"@data@", data}, {"@script@", html_script()}};
  for (const auto& [mark, text] : parts) {
    const std::size_t at = rest.find(mark);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return page;
}

}  // namespace relock
