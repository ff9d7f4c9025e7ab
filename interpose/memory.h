// Set-up of what runtime.cpp owns.
#pragma once

namespace relock {

void map_fork_wiped_memory();
void find_thread_id();
void find_rseq();

}  // namespace relock
