// An exhaustive scheduler for small programs of model threads.
//
// A program is a few functions that use the locks through ExplorePlatform. Everything a platform
// offers (an atomic access, a futex call, a pause, a clock read, a random draw) is a point at which
// another thread may go on. explore() runs the program again and again, depth first over all
// choices, until every schedule within the bounds has been seen or a check fails.
//
// What a schedule may do, beyond switching threads:
//   stores      a plain store may stay in its thread's store buffer (x86-TSO), at most
//               `delayed_stores` times; it leaves the buffer at any later point.
//               Read-modify-writes, seq_cst stores and futex calls empty the buffer.
//   weak        (weaker machines, as ARM) a store leaves the buffer in any order that its own order
//               and its cell allow: a release store after all before it, a relaxed one also before
//               others. A read-modify-write empties the buffer only if it is a release. At most
//               `stale_loads` times a load gives a value that its cell has had since the thread's
//               last acquire (and that the thread has not read past), as if it had been done early.
//   pause()     the thread goes on when something it has read since its last pause has changed (the
//               first `free_pauses` unsuccessful pauses in a row excepted). If nobody else can run,
//               spinning threads get `idle_pauses` more rounds; then that is a livelock. At most
//               `burnouts` times a spinning thread uses up its whole allowance in one go instead:
//               it spins on, with nobody else running, until it does something other than looking.
//   time        stands still, but for at most `timeouts` steps to the next deadline that somebody
//               waits for; with `idle_time` only when nobody can go on. Deadlines beyond
//               `horizon_ns` are never reached, so that with a huge promotion time a lost wakeup
//               shows. Sleeps shorter than `nap_ns` count as pauses.
//   futex       wakes in the order of arrival; `spurious` wakeups may happen.
//
//   one_by_one  long lines form without the choices of how they formed
//
// What is left out as equivalent, so that the search ends:
//   - No switch is tried before an access to a cell unless, somewhere in this search, one thread
//     has read and another one has written it. When that first happens, the search starts over.
//   - A state that has been seen before with at least as many switches left is not entered again. A
//     state is all committed cells, all buffers, the futex queue, the clock, what is left of the
//     bounds, and each thread's position. A thread is a deterministic function of the results that
//     the platform has given it, so a hash of those results is its position. This is sound as long
//     as everything threads share lies in cells; plain shared memory must be named by watch().
//     Keys have 64 bits: a collision could hide a state, with a chance of one in 10^5 at 10^7
//     states.
//   - choose(n) for n > 4 gives 0 and n - 1 only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace relock::explore {

struct Bounds {
  int preemptions = 2;  // switches away from a thread that could go on; negative: no limit
  int delayed_stores = 1;
  bool weak = false;    // else total store order, as on x86
  int stale_loads = 0;  // only where `weak`
  int spurious = 0;
  int timeouts = 0;
  bool idle_time = false;   // time passes only when nobody can go on
  bool one_by_one = false;  // a thread begins only when nobody who has begun can go on
  int free_pauses = 0;
  int idle_pauses = 40;
  int burnouts = 0;
  int steps = 3000;  // per execution
  std::uint64_t executions = 4'000'000;
  std::int64_t nap_ns = 20'000'000;
  std::int64_t horizon_ns = 1'000'000'000'000;
};

struct Program {
  std::function<void()> setup;                 // before each execution: objects as new
  std::vector<std::function<void()>> threads;  // run together
  std::vector<std::function<void()>> later;    // run once start_thread() has named them
  std::function<void()> finish;                // after all threads have ended: last checks
};

struct Outcome {
  std::uint64_t executions = 0;
  std::uint64_t states = 0;
  bool complete = true;  // false: the bound on executions was reached
  std::string failure;   // empty: every schedule passed
  std::string choices;   // the failing schedule
  std::string trace;     // what each thread did in it
  std::string misfit;    // replay() alone: why it cannot follow the string; the rest means nothing
};

Outcome explore(const Program& program, const Bounds& bounds);

// Runs one schedule, as explore() printed it (replay_string.h), with a trace of every access.
Outcome replay(const Program& program, const Bounds& bounds, const std::string& choices);

// ---- for model threads ----

[[noreturn]] void fail(const std::string& reason);
int this_thread();
// Thread `index` of Program::later may run from now on.
void start_thread(int index);
// From here on this is a forked child: all other threads are gone, whatever they were doing.
void become_forked_child();
// What a check knows beyond cells and positions is part of the state: say what it is now.
void check_state(std::uint64_t value);
// Is the thread sleeping or spinning without anything new to see?
bool is_waiting(int thread);
// A value that the script has read from plain shared memory and will act upon.
int looked_at(int value);
// A point at which others may go on, without an access to anything.
void step();
// A free choice below n.
int pick(int n);
// From now on any access to this memory fails (futex_wake on its addresses does not).
void poison(const void* begin, std::size_t bytes);

void unpoison(const void* begin);

// ---- for setup ----

// Called at each change of a cell in memory, with the thread whose store it was.
using CommitHook = void (*)(int thread, const void* cell, std::uint64_t old, std::uint64_t now);
void on_commit(CommitHook hook);

void name_memory(const void* begin, std::size_t bytes, const std::string& name);
// Shared memory that is accessed plainly: its bytes become part of what each step has seen.
void watch(const void* begin, std::size_t bytes);

}  // namespace relock::explore
