#include "interpose/rules.h"

#include <cstring>

#include "interpose/message.h"
#include "interpose/real.h"
#include "interpose/rule_places.h"
#include "interpose/runtime.h"

namespace relock {

namespace {

// What a rule stands for; the last entry is for objects without one.
struct Choice {
  LockKind lock;
  const MutexBackend* mutex;
  const SpinBackend* spin;
  Budget budget;
  bool spin_is_glibcs;
  bool rwlock_is_glibcs;
  LinuxAtomic32 applied;  // 1: said so already
};

Choice g_choices[RuleSet::kMost + 1];
char g_text[kMostRulesText + 1];
int g_complaints;

// ---- a mutex that the C library serves by rule ---------------------------------------------
//
// From the decision on every call finds bit 18 and goes to the C library, which locks by 0 -> 1 as
// we do, so an owner from before does not matter. These functions are for the calls that were on
// their way when the decision fell.

bool glibc_try(MutexView mutex) {
  std::uint32_t expected = MutexLayout::kFree;
  return mutex.word().compare_exchange(expected, MutexLayout::kLocked, MemoryOrder::kAcquire);
}

// The caller counts itself as a user, and so does the C library.
Acquire glibc_lock(MutexView mutex, WaitContext<LinuxPlatform>& context) {
  context.going_to_sleep();
  int error = 0;
  if (context.deadline == nullptr) {
    error = real().pthread_mutex_lock(mutex.object());
  } else {
    const timespec when = linux_detail::to_timespec(context.deadline->ns);
    const clockid_t clock = context.deadline->realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    error = real().pthread_mutex_clocklock(mutex.object(), clock, &when);
  }
  if (error != 0) return Acquire::kTimedOut;
  --mutex.users();
  return Acquire::kAcquired;
}

void glibc_prepare(MutexView) {}

// The owner fields are cleared already. In glibc's word 2 means that somebody sleeps.
void glibc_unlock(MutexView mutex, const Budget&) {
  const void* const address = &mutex.word();
  if (mutex.word().exchange(0, MemoryOrder::kRelease) > 1) {
    LinuxPlatform::futex_wake(address, 1, kAnyBit);
  }
}

constexpr MutexBackend kGlibcByRule = {glibc_try, glibc_lock, glibc_prepare, glibc_unlock};

// ---- a mutex that nobody has waited for yet ------------------------------------------------

bool undecided_try(MutexView mutex) { return glibc_try(mutex); }

// Never called: who waits decides first.
Acquire undecided_lock(MutexView mutex, WaitContext<LinuxPlatform>& context) {
  return decide_mutex(mutex, nullptr).backend->lock_slow(mutex, context);
}

// The word is free or locked; if it turns into more, the choice has been made meanwhile.
void undecided_unlock(MutexView mutex, const Budget&) {
  std::uint32_t word = MutexLayout::kLocked;
  if (mutex.word().compare_exchange(word, MutexLayout::kFree, MemoryOrder::kRelease)) return;
  if (word == MutexLayout::kFree) return;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);  // the word, then the choice: D1
  const MutexService service = known_mutex(mutex);
  service.backend->unlock_slow(mutex, *service.budget);
}

constexpr MutexBackend kUndecided = {undecided_try, undecided_lock, glibc_prepare,
                                     undecided_unlock};

// ---- the choice ----------------------------------------------------------------------------

std::uint32_t known_of(std::uint32_t kind) {
  return (kind & MutexView::kRuleMask) >> MutexView::kRuleShift;
}
std::uint32_t knowledge(int rule) {
  return rule == kNoRule ? 1 : static_cast<std::uint32_t>(rule) + 2;
}
int rule_of(std::uint32_t known) {
  const int rule = static_cast<int>(known) - 2;
  return rule < 0 || rule > kNoRule ? kNoRule : rule;
}

void add_rule(LineBuffer& line, const Rule& rule) {
  line.add(rule_subject_name(rule.subject));
  line.add(" ");
  if (*rule.module != '\0') line.add_foreign(rule.module, 100);
  if (rule.subject != RuleSubject::kModule && *rule.module != '\0') line.add(":");
  line.add_foreign(rule.name, 200);
}

// With RELOCK_VERBOSE, once for each rule.
void say_applied(int rule, const char* what) {
  if (likely(!g_runtime.options.verbose) || rule == kNoRule) return;
  Choice& choice = g_choices[rule];
  if (choice.applied.exchange(1, MemoryOrder::kRelaxed) != 0) return;
  const Rule& said = g_rules.rules[rule];
  LineBuffer line;
  line.add("relock: rules: line ");
  line.add_number(said.line);
  line.add(" (");
  add_rule(line, said);
  line.add("): first ");
  line.add(what);
  line.add(" served by ");
  line.add(lock_name(choice.lock));
  line.add(", wait ");
  line.add(wait_mode_name(choice.budget.mode));
  say(line.data);
}

// D1: a waiter makes the choice (sequentially consistent) before it touches the word, so whoever
// sees more than free or locked in the word (acquire) sees the choice.
// `known` as above; `open`: rules by call site are still to be asked. Returns what stands there.
std::uint32_t remember(MutexView mutex, std::uint32_t seen, std::uint32_t known, bool open) {
  LinuxAtomic32& kind = mutex.kind_cell();
  const Choice& choice = g_choices[rule_of(known)];
  for (;;) {
    std::uint32_t next = (seen & ~MutexView::kRuleBits) | (known << MutexView::kRuleShift);
    if (open) next |= MutexView::kRuleOpen;
    if (!open && choice.mutex == &kGlibcByRule) next |= MutexView::kGlibcByRule;
    if (kind.compare_exchange(seen, next, MemoryOrder::kSeqCst)) return next;
    const bool decided = known_of(seen) != 0 && (seen & MutexView::kRuleOpen) == 0;
    if (decided || MutexView(mutex).is_glibcs()) return seen;
  }
}

int first_of(int a, int b) { return a < b ? a : b; }

int rule_at_init(const void* object, const void* site) {
  const int module =
      rule_for_address(RuleSubject::kModule, kRuleMutex, lies_in_module(object) ? object : site);
  const int symbol = rule_for_address(RuleSubject::kSymbol, kRuleMutex, object);
  const int init = rule_for_address(RuleSubject::kInit, kRuleMutex, site);
  return first_of(first_of(module, symbol), init);
}

int rule_at_wait(const void* object, const void* site, std::uint32_t known) {
  const int by_site =
      site == nullptr ? kNoRule : rule_for_address(RuleSubject::kSite, kRuleMutex, site);
  if (known != 0) return first_of(by_site, rule_of(known));
  const void* place = lies_in_module(object) || site == nullptr ? object : site;
  const int module = rule_for_address(RuleSubject::kModule, kRuleMutex, place);
  const int symbol = rule_for_address(RuleSubject::kSymbol, kRuleMutex, object);
  return first_of(by_site, first_of(module, symbol));
}

MutexService service_of(std::uint32_t known) {
  const Choice& choice = g_choices[rule_of(known)];
  return {choice.mutex, &choice.budget};
}

}  // namespace

MutexService decide_mutex(MutexView mutex, const void* site) {
  const std::uint32_t seen = mutex.kind_cell().load(MemoryOrder::kAcquire);
  const std::uint32_t known = known_of(seen);
  if (likely(known != 0 && (seen & MutexView::kRuleOpen) == 0)) return service_of(known);
  const int rule = rule_at_wait(mutex.address(), site, known);
  const std::uint32_t now = known_of(remember(mutex, seen, knowledge(rule), false));
  say_applied(rule_of(now), "mutex");
  return service_of(now);
}

MutexService known_mutex(MutexView mutex) {
  const std::uint32_t seen = mutex.kind_cell().load(MemoryOrder::kAcquire);
  const std::uint32_t known = known_of(seen);
  if (known != 0 && (seen & MutexView::kRuleOpen) == 0) return service_of(known);
  return {&kUndecided, &g_runtime.budget};
}

void rule_initialised_mutex(MutexView mutex, const void* site) {
  if (mutex.is_glibcs()) return;
  const int rule = rule_at_init(mutex.address(), site);
  const std::uint32_t seen = mutex.kind_cell().load(MemoryOrder::kRelaxed);
  remember(mutex, seen, knowledge(rule), g_rules.any_site);
  if (!g_rules.any_site) say_applied(rule, "mutex");
}

SpinService ruled_spin(const void* spinlock) {
  const int rule = fixed_rule_for_object(RuleSubject::kSymbol, kRuleSpin, spinlock);
  const int module = fixed_rule_for_object(RuleSubject::kModule, kRuleSpin, spinlock);
  const int first = first_of(rule, module);
  say_applied(first, "spinlock");
  return {g_choices[first].spin, &g_choices[first].budget};
}

bool rule_makes_spin_glibcs(const void* spinlock) {
  const int rule = fixed_rule_for_object(RuleSubject::kSymbol, kRuleSpin, spinlock);
  const int module = fixed_rule_for_object(RuleSubject::kModule, kRuleSpin, spinlock);
  return g_choices[first_of(rule, module)].spin_is_glibcs;
}

bool rule_makes_rwlock_glibcs(const void* rwlock) {
  const int rule = fixed_rule_for_object(RuleSubject::kSymbol, kRuleRwlock, rwlock);
  const int module = fixed_rule_for_object(RuleSubject::kModule, kRuleRwlock, rwlock);
  const int first = first_of(rule, module);
  return g_choices[first].rwlock_is_glibcs;
}

void rule_opened_modules() { resolve_rules_of_new_modules(); }
void rules_after_fork() { forget_resolving_thread(); }

// ---- start ---------------------------------------------------------------------------------

namespace {

constexpr int kMostComplaints = 10;

void complain(void*, std::uint32_t number, const char* what) {
  if (++g_complaints > kMostComplaints + 1) return;
  LineBuffer line;
  line.add("relock: warning: ");
  line.add_foreign(g_runtime.options.rules.c_str(), 400);
  if (g_complaints > kMostComplaints) {
    line.add(": more lines are wrong: they are ignored too");
  } else {
    if (number != 0) {
      line.add(":");
      line.add_number(number);
    }
    line.add(": ");
    line.add_foreign(what, 300);
    line.add(number == 0 ? "" : ": line ignored");
  }
  say(line.data);
}

Choice choice_of(LockKind mutex, LockKind spin, RwlockKind rwlock, WaitMode wait) {
  Choice choice{};
  choice.lock = resolve_lock(mutex);
  choice.mutex = mutex == LockKind::kGlibc ? &kGlibcByRule : &mutex_backend(choice.lock);
  choice.spin = &spin_backend(resolve_lock(spin));
  choice.budget = budget_with(wait);
  choice.spin_is_glibcs = spin == LockKind::kGlibc;
  choice.rwlock_is_glibcs = rwlock == RwlockKind::kGlibc;
  return choice;
}

bool needs_nodes() {
  for (int i = 0; i < g_rules.count; ++i) {
    const LockKind lock = g_rules.rules[i].lock;
    if (lock == LockKind::kCna || lock == LockKind::kAuto) return true;
  }
  return false;
}

void make_choices() {
  const Options& options = g_runtime.options;
  if (needs_nodes()) find_nodes(&g_runtime.topology);
  g_choices[kNoRule] = choice_of(options.mutex, options.spin, options.rwlock, options.wait);
  for (int i = 0; i < g_rules.count; ++i) {
    const Rule& rule = g_rules.rules[i];
    const WaitMode wait = rule.has_wait ? rule.wait : options.wait;
    g_choices[i] = choice_of(rule.lock, rule.lock, rule.rwlock, wait);
  }
}

// Where rules pick the lock, the C library is one choice among others, so nothing is its own from
// the outset.
void put_into_force() {
  Runtime& runtime = g_runtime;
  std::uint8_t kinds = 0;
  for (int i = 0; i < g_rules.count; ++i) {
    kinds |= g_rules.rules[i].objects;
    if (!g_choices[i].spin->plain_release) runtime.spin_plain_release = false;
  }
  if ((kinds & kRuleMutex) != 0) {
    runtime.mutexes_ruled = true;
    runtime.mutex_is_glibcs = false;
    runtime.mutex_needs_care = false;
  }
  if ((kinds & kRuleSpin) != 0) runtime.spins_ruled = true;
  if ((kinds & kRuleRwlock) != 0) runtime.rwlocks_ruled = runtime.rwlock_is_glibcs = true;
}

void say_resolved() {
  LineBuffer line;
  line.add("relock: rules: ");
  line.add_foreign(g_runtime.options.rules.c_str(), 400);
  line.add(": ");
  line.add_number(static_cast<std::uint64_t>(g_rules.count));
  line.add(" rules, ");
  line.add_number(static_cast<std::uint64_t>(resolved_ranges()));
  line.add(" places found in the modules loaded so far");
  say(line.data);
}

}  // namespace

void load_rules_at_start() {
  const char* path = g_runtime.options.rules.c_str();
  if (*path == '\0') return;
  if (const char* wrong = load_rules(path, g_text, &g_rules, complain, nullptr)) {
    LineBuffer line;
    line.add("relock: warning: RELOCK_RULES=");
    line.add_foreign(path, 400);
    line.add(": ");
    line.add(wrong);
    line.add(": no rules");
    return say(line.data);
  }
  if (g_rules.count == 0) return;
  make_choices();
  resolve_rules_at_start();
  put_into_force();
  if (g_runtime.options.verbose) say_resolved();
}

}  // namespace relock
