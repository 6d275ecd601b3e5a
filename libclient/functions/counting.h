// When calls are counted, and what a call takes that is not the usual one: a function's first, a
// thread's first, one in a forked child, one within libsonde.
//
// The library may be called before its own constructor: by the constructor of another library. It
// starts then.
//
// Thread safety: any thread, signal handlers too. errno is kept.
#pragma once

#include "libclient/functions/table.h"
#include "libclient/interpose/telemetry.h"

namespace sonde::functions {

enum State : uint8_t {
  kFresh,     // nothing has been called
  kStarting,  // calls are kept until it is known whether they count
  kOn,
  kForked,  // the child of a process that counts
  kOff,     // nobody asks for calls
};
extern State state;  // atomic
inline State Now() { return __atomic_load_n(&state, __ATOMIC_RELAXED); }

// What is set when the library starts:
extern bool timed;
extern interpose::TickClock clock;
// Another tool's hooks behind ours, which are called as well; nullptr: none.
using Hook = void (*)(void* function, void* site);
extern Hook next_enter;
extern Hook next_exit;
extern bool besides;  // there is more to do than counting

// Counts a call of the function at this address; its place, nullptr if calls are not counted.
Function* CountSlowly(uintptr_t address);

}  // namespace sonde::functions
