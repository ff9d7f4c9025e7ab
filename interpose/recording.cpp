#include "interpose/recording.h"

#include <climits>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

#include "interpose/message.h"
#include "interpose/real.h"

namespace relock {
namespace {

constexpr std::size_t kSpinRecords = 4096;
SpinRecord g_spin_records[kSpinRecords];

void take_stack(WaitObserver* observer) { static_cast<RecordedWait*>(observer)->begin(); }

// The recorder lies beside this library.
bool plugin_path(char* path, std::size_t size) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&g_spin_records), &self) == 0) return false;
  const char* slash = std::strrchr(self.dli_fname, '/');
  const std::size_t folder =
      slash == nullptr ? 0 : static_cast<std::size_t>(slash - self.dli_fname) + 1;
  constexpr char kName[] = "librelock-profile.so";
  if (folder + sizeof kName > size) return false;
  std::memcpy(path, self.dli_fname, folder);
  std::memcpy(path + folder, kName, sizeof kName);
  return true;
}

// The counter of an object that the recorder knows to be mapped still.
std::uint64_t acquisitions_of(const void* object, int kind) {
  auto* address = const_cast<void*>(object);
  switch (kind) {
    case RELOCK_KIND_MUTEX: {
      return MutexView(static_cast<pthread_mutex_t*>(address)).recorded_acquisitions();
    }
    case RELOCK_KIND_SPIN: {
      const SpinRecord* record = spin_record(object);
      return record == nullptr ? 0 : record->acquisitions.load(MemoryOrder::kRelaxed);
    }
    case RELOCK_KIND_RWLOCK_READ:
    case RELOCK_KIND_RWLOCK_WRITE: {
      const RwlockView rwlock(static_cast<pthread_rwlock_t*>(address));
      return rwlock.is_shared() ? 0 : rwlock.acquisitions().load(MemoryOrder::kRelaxed);
    }
    default:
      return 0;
  }
}

std::uint64_t clock_ns(int clock) {
  return static_cast<std::uint64_t>(LinuxPlatform::clock_ns(clock));
}

RelockHost host_description() {
  const Options& options = g_runtime.options;
  RelockHost host{};
  host.version = RELOCK_PROFILER_VERSION;
  host.profile_dir = options.profile_dir.c_str();
  host.log_file = options.log_file.c_str();
  host.log_interval_s = options.log_interval_s;
  host.samples_per_s = options.profile_rate;
  host.stacks = options.profile_stacks ? 1 : 0;
  host.mutex_lock_name = lock_name(g_runtime.mutex_kind);
  host.spin_lock_name = lock_name(g_runtime.spin_kind);
  host.rwlock_name = rwlock_name(options.rwlock);
  host.wait_name = wait_mode_name(options.wait);
  host.acquisitions = acquisitions_of;
  host.standard_error_is_the_same = standard_error_is_the_same;
  host.clock_ns = clock_ns;
  return host;
}

void say_no_profile(const char* why) {
  LineBuffer line;
  line.add("relock: warning: RELOCK_PROFILE=1: ");
  line.add(why);
  line.add(": running without a profile");
  say(line.data);
}

}  // namespace

RecordedWait::RecordedWait(const void* object, RelockObjectKind kind, LinuxAtomic32* mark)
    : WaitObserver{take_stack},
      object_(object),
      kind_(kind),
      mark_(mark),
      since_ns_(LinuxPlatform::now_ns()) {}

void RecordedWait::begin() {
  if (begun_) return;
  begun_ = true;
  const std::uint64_t now = static_cast<std::uint64_t>(LinuxPlatform::now_ns());
  tell_recorder([=, this](const RelockProfiler& recorder) {
    ticket_ = recorder.wait_begin(object_, kind_, now);
    recorder.tick(now);
  });
  if (ticket_ == 0 || mark_ == nullptr) return;
  std::uint32_t none = 0;
  (void)mark_->compare_exchange(none, ticket_, MemoryOrder::kRelaxed);
}

void RecordedWait::end(RelockWaitOutcome outcome, std::uint64_t acquisitions) {
  const std::int64_t waited = LinuxPlatform::now_ns() - since_ns_;
  const std::uint64_t wait_ns = waited < 0 ? 0 : static_cast<std::uint64_t>(waited);
  tell_recorder([=, this](const RelockProfiler& recorder) {
    recorder.wait_end(object_, kind_, ticket_, wait_ns, outcome, acquisitions);
  });
}

SpinRecord* spin_record(const void* spinlock) {
  constexpr std::size_t kProbes = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(spinlock);
  std::size_t index = (address >> 2) * 0x9e3779b97f4a7c15u >> 52;
  for (std::size_t probe = 0; probe < kProbes; ++probe, index = (index + 1) % kSpinRecords) {
    SpinRecord& record = g_spin_records[index % kSpinRecords];
    std::uintptr_t seen = __atomic_load_n(&record.address, __ATOMIC_RELAXED);
    if (seen == address) return &record;
    // Relaxed: an entry carries nothing but counters.
    if (seen == 0 && (__atomic_compare_exchange_n(&record.address, &seen, address, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                      seen == address)) {
      return &record;
    }
  }
  return nullptr;
}

void open_profiler() {
  char path[PATH_MAX];
  if (!plugin_path(path, sizeof path)) return say_no_profile("cannot tell where relock lies");
  void* plugin = real().dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return say_no_profile(dlerror());
  auto* entry =
      reinterpret_cast<decltype(&relock_profiler_entry)>(dlsym(plugin, "relock_profiler_entry"));
  if (entry == nullptr) return say_no_profile("librelock-profile.so is of another version");
  const RelockHost host = host_description();
  if (entry(&host, &g_runtime.profiler) != 0) return;  // it has said why
  if (g_runtime.profiler.version != RELOCK_PROFILER_VERSION) {
    return say_no_profile("librelock-profile.so is of another version");
  }
  g_runtime.recording = true;
  g_runtime.mutex_needs_care = true;
}

}  // namespace relock
