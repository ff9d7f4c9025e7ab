// A report as one HTML page that needs no other file and no network.
#pragma once

#include <string>

#include "tools/report_model.h"

namespace relock {

std::string report_html(const Report& report);

}  // namespace relock
