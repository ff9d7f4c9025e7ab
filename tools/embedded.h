// Files of tools/embedded/ that the command carries within itself.
#pragma once

#include <string_view>

namespace relock {

std::string_view manual_template();  // relock.1.in
std::string_view html_template();    // report.html
std::string_view html_style();       // report.css
std::string_view html_script();      // the report_*.js, one after the other

}  // namespace relock
