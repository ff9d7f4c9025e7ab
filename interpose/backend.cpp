// The sole place where the lock templates are instantiated for production.
#include "interpose/backend.h"

#include "interpose/runtime.h"

#include "locks/auto_ticket.h"
#include "locks/gate.h"
#include "locks/qspin_cna.h"
#include "locks/qspin_native.h"
#include "locks/qspin_pv.h"
#include "locks/spin.h"
#include "locks/tas.h"
#include "locks/ticket.h"
#include "locks/ticket_backoff.h"

namespace relock {
namespace {

// See backend.h.
template <class P, class Layout>
using Glibc = Tas<P, Layout>;
template <class P, class Layout>
using Auto = Tas<P, Layout>;

template <template <class, class> class Algorithm>
constexpr MutexBackend mutex_table() {
  using Lock = GatedMutex<LinuxPlatform, Algorithm, MutexView>;
  return {&Lock::try_lock, &Lock::lock_slow, &Lock::prepare_unlock, &Lock::unlock_slow};
}

template <template <class, class> class Algorithm>
constexpr SpinBackend spin_table() {
  using Lock = SpinLock<LinuxPlatform, Algorithm>;
  return {&Lock::try_lock, &Lock::lock_slow, &Lock::unlock,
          Algorithm<LinuxPlatform, SpinLayout>::kPlainRelease};
}

constexpr MutexBackend kMutexBackends[] = {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) mutex_table<ident>(),
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
};

constexpr SpinBackend kSpinBackends[] = {
#define RELOCK_LOCK_ROW(ident, name, fair, idea) spin_table<ident>(),
#include "locks/lock_list.def"
#undef RELOCK_LOCK_ROW
};

}  // namespace

const MutexBackend& mutex_backend(LockKind kind) { return kMutexBackends[static_cast<int>(kind)]; }
const SpinBackend& spin_backend(LockKind kind) { return kSpinBackends[static_cast<int>(kind)]; }

}  // namespace relock
