// What happens when the library is loaded and when the program ends.
//
// The library is linked with -z initfirst: this constructor runs before any other, so that our fork
// handlers are registered first (the child handler then runs before the program's own, the place
// where it would first use a lock). libc's environ is not set yet at that time; the constructor's
// third argument is. Nothing here may open a library (loader.cpp says why).
#include <cstring>

#include <pthread.h>
#include <unistd.h>

#include "interpose/memory.h"
#include "interpose/message.h"
#include "interpose/real.h"
#include "interpose/recording.h"
#include "interpose/rules.h"
#include "interpose/runtime.h"
#include "policy/auto_lock.h"
#include "policy/waiting.h"

namespace relock {

Budget budget_with(WaitMode mode) {
  return budget_for(g_runtime.options, g_runtime.topology, mode);
}

LockKind resolve_lock(LockKind kind) {
  return kind == LockKind::kAuto ? choose_auto_lock(g_runtime.topology).kind : kind;
}

namespace {

void choose_locks() {
  Runtime& runtime = g_runtime;
  const Options& options = runtime.options;
  runtime.mutex_kind = resolve_lock(options.mutex);
  runtime.spin_kind = resolve_lock(options.spin);
  runtime.mutex = &mutex_backend(runtime.mutex_kind);
  runtime.spin = &spin_backend(runtime.spin_kind);
  runtime.spin_plain_release = runtime.spin->plain_release;
  runtime.mutex_is_glibcs = options.mutex == LockKind::kGlibc;
  runtime.spin_is_glibcs = options.spin == LockKind::kGlibc;
  runtime.rwlock_is_glibcs = options.rwlock == RwlockKind::kGlibc;
  runtime.mutex_needs_care = runtime.mutex_is_glibcs;
  runtime.budget = budget_with(options.wait);
}

void add_lock_name(LineBuffer& line, LockKind kind) {
  line.add(lock_name(kind));
  if (kind != LockKind::kAuto) return;
  const AutoChoice choice = choose_auto_lock(g_runtime.topology);
  line.add(" (");
  line.add(lock_name(choice.kind));
  line.add(": ");
  line.add(choice.reason);
  line.add(")");
}

void say_what_is_used() {
  const Runtime& runtime = g_runtime;
  LineBuffer line;
  line.add("relock: mutex ");
  add_lock_name(line, runtime.options.mutex);
  line.add(", spin ");
  add_lock_name(line, runtime.options.spin);
  line.add(", rwlock ");
  line.add(rwlock_name(runtime.options.rwlock));
  line.add(", condition variable ");
  line.add(runtime.mutex_is_glibcs ? "glibc" : "relock");
  line.add(", wait ");
  line.add(wait_mode_name(runtime.budget.mode));
  line.add(", cpus ");
  line.add_number(static_cast<std::uint64_t>(runtime.topology.usable_cpus));
  line.add(", nodes ");
  line.add_number(static_cast<std::uint64_t>(runtime.topology.nodes));
  line.add(", virtual machine ");
  line.add(runtime.topology.virtual_machine ? "yes" : "no");
  line.add(", profile ");
  line.add(runtime.options.profile ? "on" : "off");
  say(line.data);
}

__attribute__((constructor)) void start(int, char**, char** environment) {
  Runtime& runtime = g_runtime;
  remember_standard_error();
  load_options_from_environment(&runtime.options, environment, say);
  find_topology(&runtime.topology, runtime.options);
  const auto needs_nodes = [](LockKind kind) {
    return kind == LockKind::kCna ||
           (kind == LockKind::kAuto && !g_runtime.topology.virtual_machine);
  };
  if (runtime.options.verbose || needs_nodes(runtime.options.mutex) ||
      needs_nodes(runtime.options.spin)) {
    find_nodes(&runtime.topology);
  }
  map_fork_wiped_memory();
  resolve_real_functions();
  find_thread_id();
  find_rseq();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  choose_locks();
  load_rules_at_start();
  if (runtime.options.verbose) say_what_is_used();
}

__attribute__((destructor)) void finish() {
  if (g_runtime.recording) g_runtime.profiler.finish(/*abrupt=*/false);
}

}  // namespace
}  // namespace relock
