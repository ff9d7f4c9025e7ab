// Stacks of the recorder's own, for the parts of it that need more than a few hundred bytes.
//
// A thread may wait for a lock on a stack with little room left: one of the smallest size, a signal
// stack, a coroutine's. Unwinding, making the file and writing the log take several kilobytes,
// which a lock call never did, so they run elsewhere.
#pragma once

namespace relock::profile {

// Maps the stacks. False: there is no memory for them.
bool set_up_own_stacks();

// Runs work(argument) on a stack of the recorder's own. False: all are in use by other threads, and
// nothing was run. Not to be nested. The program's signals wait until it is done.
bool on_own_stack(void (*work)(void*), void* argument);

}  // namespace relock::profile
