// The counts of a profile's rows, and how they are added up and shared out.
#pragma once

#include <vector>

#include "tools/report_build.h"

namespace relock {

// Splits the exact `whole` in proportion to the parts, so that they add up to it again.
void share_out(std::uint64_t whole, std::vector<std::uint64_t>* parts);

void fill_counts(const profile::LockRow& row, ReportLock* lock);
// Pairs of stacks too.
void add_counts(const ReportLock& from, ReportLock* to);

ReportProcess process_of(const NamedProfile& named);

}  // namespace relock
