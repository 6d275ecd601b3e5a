#include "libclient/functions/counting.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libclient/functions/activations.h"
#include "libclient/functions/function_name.h"
#include "libclient/interpose/keep_errno.h"

namespace sonde::functions {

constinit State state = State::kFresh;
constinit bool timed = false;
constinit interpose::TickClock clock;
constinit Hook next_enter = nullptr;
constinit Hook next_exit = nullptr;
constinit bool besides = false;
constinit Function functions[kPlaces + 1] = {};
constinit uint32_t claimed = 0;

namespace {

using interpose::KeepErrno;
using interpose::Visit;

constexpr char kLibrary[] = "libsonde_functions.so.1";
constexpr char kTooMany[] =
    "more than 1,000 functions were called: the others are counted together, as (other)";
static_assert(kMaxFunctions == 1000);
constexpr char kUntimed[] =
    "functions are counted and not timed: the program and its libraries have taken the first 32 "
    "thread-specific keys (pthread_key_create)";
static_assert(sizeof(kUntimed) <= 192);

// One thread registers functions and tells pending calls, for all. Who finds it busy only says that
// there is more to do.
constinit bool busy = false;           // atomic
constinit bool unsettled = false;      // atomic
constinit bool tells_untimed = false;  // there can be no times, and nobody was told

// Where libsonde refuses a metric: what is added to it goes nowhere.
constinit sonde_metric_t refused = {nullptr, UINT32_MAX, UINT32_MAX};

void Set(State now) { __atomic_store_n(&state, now, __ATOMIC_RELEASE); }

// The C library has hooks, too, which do nothing.
Hook NextHook(void* libc, const char* symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol);
  const bool is_libc = libc != nullptr && found == dlsym(libc, symbol);
  return is_libc ? nullptr : reinterpret_cast<Hook>(found);
}

bool Asked(const char* variable) {
  const char* const value = secure_getenv(variable);
  return value != nullptr && strcmp(value, "1") == 0;
}

void AfterForkInChild() {
  if (Now() != State::kOn) return;
  ForgetActivations();
  // What waited is the parent's to tell, and so is what another of its threads was doing.
  for (Function& function : functions) {
    if (function.pending != 0) function.pending = 0;  // else its page is not copied
  }
  busy = unsettled = false;
  Set(State::kForked);
}

void Start() {
  State expected = State::kFresh;
  if (!__atomic_compare_exchange_n(&state, &expected, State::kStarting, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    return;
  }
  const Visit visit;
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  next_exit = NextHook(libc, "__cyg_profile_func_exit");
  next_enter = NextHook(libc, "__cyg_profile_func_enter");
  bool on = interpose::Wanted(kLibrary) && pthread_atfork(nullptr, nullptr, &AfterForkInChild) == 0;
  if (on && Asked("SONDE_FUNCTION_SECONDS")) {
    clock.Start();
    timed = PrepareActivations();
    tells_untimed = !timed;
  }
  besides = timed || next_enter != nullptr || next_exit != nullptr;
  Set(on ? State::kOn : State::kOff);
}

// Connects the child: most children that call a function count.
void Rejoin() {
  const Visit visit;
  if (visit.good()) Set(sonde_init() == SONDE_OK ? State::kOn : State::kOff);
}

// False if there is no daemon: from now on no call is counted.
bool Register(Function& function) {
  // Too large for the stack of a signal handler; the caller is the busy one.
  static constinit FunctionName name = {};
  if (&function == &Others()) {
    PutSymbol("(other)", &name.function);
    name.object[0] = '\0';
  } else {
    FindFunctionName(function.address, &name);
  }
  sonde_tag_t tags[kSymbolPieces + 1];
  size_t count = 0;
  for (; count < name.function.count; ++count) {
    tags[count] = {kSymbolKeys[count], name.function.pieces[count]};
  }
  if (name.object[0] != '\0') tags[count++] = {"object", name.object};
  sonde_metric_t* const calls = interpose::Counter(interpose::kFunctionCallsMetric, tags, count);
  if (calls == nullptr && sonde_init() != SONDE_OK) {
    Set(State::kOff);
    return false;
  }
  if (timed) {
    function.seconds = interpose::Counter(interpose::kFunctionSecondsMetric, tags, count);
  }
  if (&sonde_annotate != nullptr) {
    if (&function == &Others()) sonde_annotate(kTooMany);
    if (tells_untimed) sonde_annotate(kUntimed);
    tells_untimed = false;
  }
  if (calls != nullptr) {
    __atomic_store_n(&function.slot_and_one, calls->slot + 1, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&function.calls, calls != nullptr ? calls : &refused, __ATOMIC_RELEASE);
  return true;
}

// False if there is no daemon.
bool TellPending(Function& function) {
  if (__atomic_load_n(&function.pending, __ATOMIC_ACQUIRE) == 0) return true;
  if (function.calls == nullptr && !Register(function)) return false;
  const uint32_t calls = __atomic_exchange_n(&function.pending, 0, __ATOMIC_ACQ_REL);
  sonde_add_slow_(function.calls, calls);
  return true;
}

// What another thread, or a signal handler, leaves meanwhile is told, too.
void Settle() {
  do {
    if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQ_REL)) return;
    __atomic_store_n(&unsettled, false, __ATOMIC_SEQ_CST);
    for (Function& function : functions) {
      if (!TellPending(function)) break;
    }
    __atomic_store_n(&busy, false, __ATOMIC_SEQ_CST);
  } while (__atomic_load_n(&unsettled, __ATOMIC_SEQ_CST) && Now() == State::kOn);
}

__attribute__((constructor)) void AtLoad() { Start(); }

__attribute__((destructor)) void AtEnd() {
  const Visit visit;
  if (visit.good() && __atomic_load_n(&unsettled, __ATOMIC_SEQ_CST) && Now() == State::kOn) {
    Settle();
  }
}

}  // namespace

Function& Claim(uintptr_t address) {
  for (size_t at = FirstPlace(address);; at = (at + 1) % kPlaces) {
    Function& function = functions[at];
    uintptr_t found = __atomic_load_n(&function.address, __ATOMIC_RELAXED);
    if (found == 0) {
      if (__atomic_load_n(&claimed, __ATOMIC_RELAXED) >= kMaxFunctions) return Others();
      if (__atomic_compare_exchange_n(&function.address, &found, address, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
        __atomic_fetch_add(&claimed, 1, __ATOMIC_RELAXED);
        return function;
      }
    }
    if (found == address) return function;
  }
}

Function* CountSlowly(uintptr_t address) {
  const KeepErrno keep;
  if (Now() == State::kFresh) Start();
  if (Now() == State::kForked) Rejoin();
  if (Now() == State::kOff) return nullptr;
  Function& function = Claim(address);
  const Visit visit;
  sonde_metric_t* const calls = __atomic_load_n(&function.calls, __ATOMIC_ACQUIRE);
  if (calls != nullptr && visit.good() && Now() == State::kOn) {
    sonde_add_slow_(calls, 1);
    return &function;
  }
  __atomic_fetch_add(&function.pending, 1, __ATOMIC_ACQ_REL);
  __atomic_store_n(&unsettled, true, __ATOMIC_SEQ_CST);
  if (visit.good() && Now() == State::kOn) Settle();
  return &function;
}

}  // namespace sonde::functions
