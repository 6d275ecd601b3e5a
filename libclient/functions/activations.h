// How long calls take: for each thread and function, when the outermost of its calls began. A call
// that a function makes of itself, directly or through others, is within the first one's time.
//
// A call that did not return as others do (longjmp, or an exception through code of Clang) is
// noticed when the function is called again from the same place or farther up the stack, and is not
// timed.
//
// Thread safety: each thread has its own; signal handlers too.
#pragma once

#include <stdint.h>

#include "libclient/functions/counting.h"

namespace sonde::functions {

struct Activation {
  uint64_t begun;    // the outermost call, in ticks
  uintptr_t frame;   // where its frame is
  const void* site;  // where in the function it began: a function may be inlined into itself
  uint32_t depth;    // 0: the function is not being called
};

// When the library starts; false if there can be no times: others have taken all thread-specific
// keys for whose values there is room.
bool PrepareActivations();
// In the child of a fork: calls that began before it are the parent's.
void ForgetActivations();

extern __thread Activation* activations __attribute__((tls_model("initial-exec")));

// Gets the calling thread's; nullptr without memory.
Activation* MakeActivations();

inline void Begin(const Function& function, uintptr_t frame, const void* site) {
  Activation* all = activations;
  if (__builtin_expect(all == nullptr, 0) && (all = MakeActivations()) == nullptr) return;
  Activation& one = all[&function - functions];
  // The stack grows down: nothing that is being called lies above its caller.
  if (one.depth != 0 && frame <= one.frame && (frame != one.frame || site != one.site)) {
    ++one.depth;
    return;
  }
  one.depth = 1;
  one.frame = frame;
  one.site = site;
  one.begun = clock.Now();
}

inline void End(const Function& function) {
  if (activations == nullptr) return;
  Activation& one = activations[&function - functions];
  if (one.depth == 0 || --one.depth != 0) return;
  interpose::AddSeconds(function.seconds, clock.Seconds(clock.Now() - one.begun));
}

}  // namespace sonde::functions
