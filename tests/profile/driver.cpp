// Calls the recorder as the interposer does, with waits whose lock, stacks and times are known:
//   driver PLUGIN SCENARIO
// The environment gives the rest: DIR, LOG_FILE, LOG_INTERVAL, RATE. What it prints is what the
// suite compares with the report.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "test_host.h"

namespace {

RelockProfiler recorder;

std::uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// A clock that scenarios with waits of many lengths set themselves, so that they need not last.
std::uint64_t simulated_ns = 1000000000;
std::uint64_t simulated_clock_ns(int) { return simulated_ns; }

const char* setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

int load(const char* plugin, bool simulated) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return ENOENT;
  }
  auto* entry =
      reinterpret_cast<decltype(&relock_profiler_entry)>(dlsym(library, "relock_profiler_entry"));
  if (entry == nullptr) return ENOENT;
  static RelockHost host = test_host();
  host.profile_dir = setting("DIR", "");
  host.log_file = setting("LOG_FILE", "/dev/null");
  host.log_interval_s = static_cast<std::uint32_t>(std::atoi(setting("LOG_INTERVAL", "0")));
  host.samples_per_s = static_cast<std::uint32_t>(std::atoi(setting("RATE", "10000")));
  host.mutex_lock_name = "tas";
  host.spin_lock_name = "ticket";
  host.rwlock_name = "glibc";
  host.wait_name = "adaptive";
  if (simulated) host.clock_ns = simulated_clock_ns;
  return entry(&host, &recorder);
}

}  // namespace

// Locks in the program's data: their names are the report's.
extern "C" {
pthread_mutex_t accounts_lock;
pthread_mutex_t journal_lock;
pthread_cond_t work_ready;
}

// Functions with external names and no inlining, so that they can be looked for in stacks. The
// empty statement after each call keeps it from becoming a jump.
#define STAYS_A_CALL __asm__ volatile("" ::: "memory")

extern "C" [[gnu::noinline]] std::uint32_t wait_for_account(const void* lock, int kind) {
  RelockWaitBegin begin{lock, nullptr, static_cast<std::uint8_t>(kind), false, 0, 0};
  const RelockWait wait = recorder.wait_begin(&begin);
  STAYS_A_CALL;
  return wait.ticket;
}
extern "C" [[gnu::noinline]] std::uint32_t transfer_money(const void* lock) {
  const std::uint32_t ticket = wait_for_account(lock, RELOCK_KIND_MUTEX);
  STAYS_A_CALL;
  return ticket;
}
extern "C" [[gnu::noinline]] std::uint32_t print_statement(const void* lock) {
  const std::uint32_t ticket = wait_for_account(lock, RELOCK_KIND_MUTEX);
  STAYS_A_CALL;
  return ticket;
}
extern "C" [[gnu::noinline]] void let_go(std::uint32_t ticket) {
  recorder.released(ticket);
  STAYS_A_CALL;
}
extern "C" [[gnu::noinline]] void close_books(std::uint32_t ticket) {
  let_go(ticket);
  STAYS_A_CALL;
}
extern "C" [[gnu::noinline]] void audit_books(std::uint32_t ticket) {
  let_go(ticket);
  STAYS_A_CALL;
}

namespace {

void end_as(RelockWaitOutcome outcome, const void* lock, RelockObjectKind kind,
            std::uint32_t ticket, std::uint64_t wait_ns, std::uint64_t taken) {
  RelockWaitEnd end{};
  end.object = lock;
  end.wait.ticket = ticket;
  end.wait_ns = wait_ns;
  end.acquisitions = taken;
  end.kind = static_cast<std::uint8_t>(kind);
  end.outcome = static_cast<std::uint8_t>(outcome);
  end.chance = UINT32_MAX;  // what is drawn is the scenario's to say
  recorder.wait_end(&end);
}
void end(const void* lock, std::uint32_t ticket, std::uint64_t wait_ns, std::uint64_t taken) {
  end_as(RELOCK_WAIT_ACQUIRED, lock, RELOCK_KIND_MUTEX, ticket, wait_ns, taken);
}

// 30 waits of 2 ms for accounts_lock in transfer_money because of close_books, 10 of 1 ms in
// print_statement because of audit_books; 5 of 100 us for journal_lock that were never sampled;
// one timed out after 3 ms; a condition variable's wait of 7 ms.
void known_waits() {
  std::uint64_t taken = 0;
  for (int i = 0; i < 30; ++i) {
    const std::uint32_t ticket = transfer_money(&accounts_lock);
    if (i % 2 == 0) close_books(ticket);  // the release may be reported first or last
    end(&accounts_lock, ticket, 2000000, taken += 10);
    if (i % 2 == 1) close_books(ticket);
  }
  for (int i = 0; i < 10; ++i) {
    const std::uint32_t ticket = print_statement(&accounts_lock);
    audit_books(ticket);
    end(&accounts_lock, ticket, 1000000, taken += 10);
  }
  for (int i = 0; i < 5; ++i) end(&journal_lock, 0, 100000, 0);
  const std::uint32_t ticket = transfer_money(&journal_lock);
  end_as(RELOCK_WAIT_TIMED_OUT, &journal_lock, RELOCK_KIND_MUTEX, ticket, 3000000, 9);
  recorder.try_failed(&journal_lock, RELOCK_KIND_MUTEX);
  const std::uint32_t signalled = wait_for_account(&work_ready, RELOCK_KIND_COND);
  audit_books(signalled);
  end_as(RELOCK_WAIT_ACQUIRED, &work_ready, RELOCK_KIND_COND, signalled, 7000000, 0);
}

}  // namespace

extern "C" [[gnu::noinline]] void make_shared_lock(void* lock) {
  recorder.object_init(lock, RELOCK_KIND_MUTEX, __builtin_return_address(0));
  STAYS_A_CALL;
}
extern "C" [[gnu::noinline]] void* open_store() {
  void* lock = std::malloc(64);
  make_shared_lock(lock);
  STAYS_A_CALL;
  return lock;
}

namespace {

void heap_lock() {
  void* lock = open_store();
  end(lock, 0, 5000000, 3);
  recorder.object_destroy(lock, RELOCK_KIND_MUTEX, 8);
  make_shared_lock(lock);  // elsewhere: another lock
  end(lock, 0, 6000000, 4);
}

// Every thread waits for its own mixture; only the sums are known.
void many_threads() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 20000; ++i) {
        const std::uint32_t ticket =
            i % 4 == 0 ? print_statement(&accounts_lock) : transfer_money(&accounts_lock);
        if (i % 4 == 0) {
          audit_books(ticket);
        } else {
          close_books(ticket);
        }
        end(&accounts_lock, ticket, i % 4 == 0 ? 30000 : 10000, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A wait from its begin to its end, by the simulated clock.
[[gnu::noinline]] void whole_wait(std::uint64_t wait_ns) {
  RelockWaitBegin begin{&accounts_lock, nullptr, RELOCK_KIND_MUTEX, false, 0, 0};
  RelockWaitEnd end{};
  end.object = &accounts_lock;
  end.wait = recorder.wait_begin(&begin);
  end.chance = begin.chance;
  end.wait_ns = wait_ns;
  simulated_ns += wait_ns;
  close_books(end.wait.ticket);
  recorder.wait_end(&end);
}

}  // namespace

extern "C" [[gnu::noinline]] void wait_evenly() {
  whole_wait(20000);
  STAYS_A_CALL;
}
extern "C" [[gnu::noinline]] void wait_unevenly(bool lengthy) {
  whole_wait(lengthy ? 25000000 : 20000);
  STAYS_A_CALL;
}

namespace {

// Of two stacks that wait for 20 us, one waits for 25 ms each 1000th time: nobody can expect it.
void uneven() {
  constexpr int kRounds = 200000;
  for (int i = 0; i < kRounds; ++i) {
    wait_evenly();
    wait_unevenly(i % 1000 == 0);
  }
}

void handler(int) {
  const std::uint32_t ticket = transfer_money(&journal_lock);
  close_books(ticket);
  end(&journal_lock, ticket, 1000, 0);
}

// A wait inside a signal handler, on a stack of its own: the walk leads back into the program.
void in_signal() {
  stack_t stack{};
  stack.ss_size = 65536;
  stack.ss_sp =
      mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

// Takes every number a descriptor of the process could have had, then records.
void closed_descriptors() {
  known_waits();
  // With a log on standard error, that number is taken as well: the log must notice.
  for (int i = setting("LOG_FILE", "/dev/null")[0] == '\0' ? 2 : 3; i < 64; ++i) close(i);
  int files[20];
  const std::string base = setting("DIR", ".");
  for (int i = 0; i < 20; ++i) {
    files[i] = open((base + "/data" + std::to_string(i)).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(files[i], "untouched", 9) != 9) std::abort();
  }
  known_waits();
  std::thread(known_waits).join();
  recorder.tick(now_ns() + 1000000000000u);
  recorder.finish(false);
  int whole = 0;
  for (int file : files) {
    char data[32] = "";
    lseek(file, 0, SEEK_SET);
    whole += read(file, data, sizeof data) == 9 && std::memcmp(data, "untouched", 9) == 0;
  }
  std::printf("whole %d lowest %d\n", whole, files[0]);
}

void forked() {
  known_waits();
  const pid_t child = fork();
  if (child == 0) {
    recorder.fork_child();
    const pid_t quiet = fork();  // waits for nothing: no file
    if (quiet == 0) _exit(0);
    waitpid(quiet, nullptr, 0);
    end(&journal_lock, transfer_money(&journal_lock), 4000000, 1);
    recorder.finish(false);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d status %d\n", child, status);
}

// Threads inside the unwinder while others fork; every child takes a stack it has not seen yet.
void fork_while_walking() {
  bool stop = false;
  std::vector<std::thread> walkers;
  for (int t = 0; t < 3; ++t) {
    walkers.emplace_back([&stop] {
      while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const std::uint32_t ticket = transfer_money(&accounts_lock);
        close_books(ticket);
        end(&accounts_lock, ticket, 1000, 0);
      }
    });
  }
  int fine = 0;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      recorder.fork_child();
      alarm(20);
      if (i % 20 == 0) known_waits();
      _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    fine += WIFEXITED(status) && WEXITSTATUS(status) == 7;
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  for (std::thread& walker : walkers) walker.join();
  std::printf("fine %d\n", fine);
}

void killed() {
  known_waits();
  const std::uint32_t waiting = transfer_money(&accounts_lock);  // still under way
  std::printf("%s\n", waiting != 0 ? "waiting" : "no ticket");
  std::fflush(stdout);
  raise(SIGKILL);
}

}  // namespace

// Frames that are not laid out like most: realigned, of a size known only when they run, and found
// by the frame pointer.
extern "C" [[gnu::noinline]] void realigned_frame(void (*next)(int), int size) {
  alignas(128) volatile char aligned[256];
  volatile char* sized = static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(size)));
  aligned[0] = 1;
  sized[0] = 1;
  next(size);
  aligned[1] = 2;
  sized[1] = 2;
}
extern "C" [[gnu::noinline]] void sized_frame(int size) {
  volatile char* sized = static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(size)));
  sized[0] = 1;
  const std::uint32_t ticket = transfer_money(&accounts_lock);
  close_books(ticket);
  end(&accounts_lock, ticket, 1000, 0);
  sized[1] = 2;
}

namespace {

void odd_frames() {
  for (const int size : {1000, 3000}) {
    realigned_frame(sized_frame, size);
    STAYS_A_CALL;
  }
}

}  // namespace

// Ends with a jump to the recorder, as functions that end by unlocking a mutex do.
volatile int balance;
extern "C" [[gnu::noinline]] void jumps_away(std::uint32_t ticket) {
  balance = 1;
  recorder.released(ticket);
}
extern "C" [[gnu::noinline]] void calls_jumper(std::uint32_t ticket) {
  jumps_away(ticket);
  STAYS_A_CALL;
}

namespace {

void jumped() {
  const std::uint32_t ticket = transfer_money(&accounts_lock);
  calls_jumper(ticket);
  end(&accounts_lock, ticket, 1000, 0);
}

// A deep recursion: the innermost frames are kept, and the stack below what was seen is looked at.
[[gnu::noinline]] int go_down(int depth) {
  volatile char room[4000];
  room[0] = 1;
  if (depth == 0) {
    sized_frame(64);
  } else {
    go_down(depth - 1);
  }
  return room[0];
}
void deep() {
  sized_frame(64);
  go_down(300);
  std::thread([] {
    sized_frame(64);
    go_down(300);
  }).join();
}

// Waits on stacks that are neither the program's nor a thread's, that are unmapped afterwards, and
// whose neighbours cannot be read.
void coroutine_body() {
  sized_frame(64);
  STAYS_A_CALL;
}
void coroutines() {
  constexpr size_t kBytes = 65536;
  for (int round = 0; round < 50; ++round) {
    char* memory = static_cast<char*>(
        mmap(nullptr, 3 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory + kBytes, kBytes, PROT_READ | PROT_WRITE);
    ucontext_t here;
    ucontext_t there;
    getcontext(&there);
    there.uc_stack.ss_sp = memory + kBytes;
    there.uc_stack.ss_size = kBytes;
    there.uc_link = &here;
    makecontext(&there, coroutine_body, 0);
    swapcontext(&here, &there);
    munmap(memory, 3 * kBytes);
  }
}

// Two libraries, one after the other: addresses in the first keep their names.
void reload() {
  for (const char* name : {"LIBRARY_ONE", "LIBRARY_TWO"}) {
    void* library = dlopen(setting(name, ""), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
      return;
    }
    using Call = void (*)(void (*)(int));
    reinterpret_cast<Call>(dlsym(library, "call_back"))(sized_frame);
    dlclose(library);
  }
}

// The log at intervals: ticks of three threads around its time.
void ticking() {
  known_waits();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (std::uint64_t i = 0; i < 25; ++i) recorder.tick(now_ns() + i * 100000000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  raise(SIGKILL);  // no log at the end
}

void timing() {
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t start = now_ns();
    for (int i = 0; i < 4000; ++i) {
      const std::uint32_t ticket = transfer_money(&accounts_lock);
      close_books(ticket);
      end(&accounts_lock, ticket, 1000, 0);
    }
    std::printf("ns per sampled wait %llu\n",
                static_cast<unsigned long long>((now_ns() - start) / 4000));
  }
}

struct Scenario {
  const char* name;
  void (*run)();
};
constexpr Scenario kScenarios[] = {{"known", known_waits},     {"heap", heap_lock},
                                   {"threads", many_threads},  {"uneven", uneven},
                                   {"signal", in_signal},      {"closed", closed_descriptors},
                                   {"fork", forked},           {"walking", fork_while_walking},
                                   {"kill", killed},           {"timing", timing},
                                   {"nothing", [] {}},         {"odd", odd_frames},
                                   {"jumped", jumped},         {"deep", deep},
                                   {"coroutines", coroutines}, {"reload", reload},
                                   {"ticking", ticking}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int lowest_before = dup(0);
  close(lowest_before);
  const int error = load(argv[1], std::strcmp(argv[2], "uneven") == 0);
  const int lowest_after = dup(0);
  close(lowest_after);
  if (error != 0) {
    std::printf("refused %d\n", error);
    return 1;
  }
  std::printf("descriptors left open %d\n", lowest_after - lowest_before);
  for (const Scenario& scenario : kScenarios) {
    if (std::strcmp(argv[2], scenario.name) != 0) continue;
    errno = 12345;
    scenario.run();
    if (std::strcmp(argv[2], "known") == 0) std::printf("errno %d\n", errno);
    recorder.finish(false);
    return 0;
  }
  return 2;
}
