// A program that uses a logger and an unwinder of its own, the same libraries as the recorder's in
// what may be another version. What it prints must not depend on whether the recorder is there:
//   guest [PLUGIN]
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "test_host.h"

namespace {

RelockProfiler recorder;
int lock;

// The names of the innermost frames, as libunwind gives them to the program.
std::string own_stack() {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  std::string names;
  for (int i = 0; i < 3 && unw_step(&cursor) > 0; ++i) {
    char name[100] = "";
    unw_word_t offset = 0;
    unw_get_proc_name(&cursor, name, sizeof name, &offset);
    names += std::string(name) + " ";
  }
  return names;
}

void record() {
  if (recorder.version == 0) return;
  RelockWaitBegin begin{&lock, nullptr, RELOCK_KIND_MUTEX, false, 0, 0};
  const RelockWait wait = recorder.wait_begin(&begin);
  recorder.released(wait.ticket);
  RelockWaitEnd end{};
  end.object = &lock;
  end.wait = wait;
  end.wait_ns = 1000;
  recorder.wait_end(&end);
}

void load(const char* plugin) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  auto* entry =
      reinterpret_cast<decltype(&relock_profiler_entry)>(dlsym(library, "relock_profiler_entry"));
  static RelockHost host = test_host();
  if (entry(&host, &recorder) != 0) recorder.version = 0;
}

}  // namespace

extern "C" [[gnu::noinline]] void inner_frame() {
  std::printf("stack %s\n", own_stack().c_str());
  record();
  std::printf("stack %s\n", own_stack().c_str());
}
extern "C" [[gnu::noinline]] void outer_frame() {
  inner_frame();
  __asm__ volatile("");
}

int main(int argc, char** argv) {
  std::ostringstream text;
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text);
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("relock", sink));
  spdlog::set_pattern("guest: %v");
  spdlog::info("before {}", 1);
  outer_frame();
  if (argc > 1) load(argv[1]);
  record();
  spdlog::info("between {:>5}", 2.5);
  outer_frame();
  try {
    throw std::runtime_error("thrown");
  } catch (const std::exception& error) {
    spdlog::warn("{}", error.what());
  }
  if (recorder.version != 0) recorder.finish(false);
  spdlog::info("after {}", spdlog::get("relock") == spdlog::default_logger());
  spdlog::shutdown();
  std::fputs(text.str().c_str(), stdout);
}
