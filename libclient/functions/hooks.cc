// What a program calls that was compiled with -finstrument-functions, at the beginning and at the
// end of its functions. The C library has functions of these names that do nothing.
//
// All but the usual is in functions of its own, to which a hook passes on: so it saves no
// registers.
#include "libclient/functions/activations.h"
#include "libclient/functions/counting.h"

namespace sonde::functions {
namespace {

// Where a hook was called from.
struct Here {
  const void* site;
  uintptr_t frame;
};

__attribute__((noinline)) void EnterBesides(Function* function, void* address, void* site,
                                            Here here) {
  if (timed && function != nullptr) Begin(*function, here.frame, here.site);
  if (next_enter != nullptr) next_enter(address, site);
}

__attribute__((noinline, cold)) void EnterSlowly(void* address, void* site, Here here) {
  EnterBesides(CountSlowly(reinterpret_cast<uintptr_t>(address)), address, site, here);
}

__attribute__((noinline)) void ExitBesides(void* address, void* site) {
  if (timed && Now() == State::kOn) {
    const Function* const function = Find(reinterpret_cast<uintptr_t>(address));
    if (function != nullptr) End(*function);
  }
  if (next_exit != nullptr) next_exit(address, site);
}

}  // namespace
}  // namespace sonde::functions

#define SONDE_HOOK SONDE_INTERPOSED __attribute__((no_instrument_function))
#define SONDE_HERE \
  { __builtin_return_address(0), reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) }

SONDE_HOOK void __cyg_profile_func_enter(void* address, void* site) {
  using namespace sonde::functions;
  if (__builtin_expect(Now() != kOn, 0)) {
    if (Now() != kOff || next_enter != nullptr) EnterSlowly(address, site, SONDE_HERE);
    return;
  }
  Function* const function = Find(reinterpret_cast<uintptr_t>(address));
  if (__builtin_expect(function == nullptr, 0)) return EnterSlowly(address, site, SONDE_HERE);
  const uint32_t slot = __atomic_load_n(&function->slot_and_one, __ATOMIC_RELAXED) - 1;
  if (__builtin_expect(slot >= sonde_thread_.limit, 0)) {
    return EnterSlowly(address, site, SONDE_HERE);
  }
  uint64_t* const calls = &sonde_thread_.counts[slot].whole;
  __atomic_store_n(calls, __atomic_load_n(calls, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
  if (__builtin_expect(besides, 0)) EnterBesides(function, address, site, SONDE_HERE);
}

SONDE_HOOK void __cyg_profile_func_exit(void* address, void* site) {
  using namespace sonde::functions;
  if (__builtin_expect(besides, 0)) ExitBesides(address, site);
}
