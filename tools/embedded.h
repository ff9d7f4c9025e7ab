// Files of tools/embedded/ that the command carries within itself.
#pragma once

#include <string_view>

namespace relock {

std::string_view manual_template();  // relock.1.in

}  // namespace relock
