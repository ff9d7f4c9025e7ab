// What a seccomp filter would answer to a system call, found by running the filter.
#pragma once

#include <linux/filter.h>

namespace relock {

// Whether the filter lets the system call with this number pass, with arguments as the recorder
// gives them. A filter that this cannot read is taken to refuse.
bool filter_allows(const sock_fprog& filter, int number, const unsigned long (&arguments)[6]);

}  // namespace relock
