#include "interpose/profile/process_state.h"

#include "interpose/profile/system.h"

namespace relock::profile {

__thread ThreadState thread_state __attribute__((tls_model("initial-exec")));
ProcessState* process;
RelockHost host;
bool sandboxed;

int set_up_process() {
  if (process != nullptr) return 0;
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  if (madvise(memory, page, MADV_WIPEONFORK) != 0) {
    const int error = errno;
    munmap(memory, page);
    return error;
  }
  process = static_cast<ProcessState*>(memory);
  return 0;
}

}  // namespace relock::profile
