// Finds the C library's functions, and switches counting on where there is telemetry.

#include <dlfcn.h>
#include <pthread.h>

#include "libclient/io/call.h"

namespace sonde::io {

constinit interpose::TickClock clock;

// The version of the first functions on this processor: some, such as __xstat, are there for old
// programs alone and have no other.
#if defined(__x86_64__)
constexpr char kOldest[] = "GLIBC_2.2.5";
#else
constexpr char kOldest[] = "GLIBC_2.17";
#endif

void* Real::Find() {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) found = dlvsym(RTLD_NEXT, symbol, kOldest);
  __atomic_store_n(&address, found, __ATOMIC_RELEASE);
  return found;
}

namespace {

// A child attaches when it first moves data: most children only run another program.
void AfterForkInChild() {
  if (On()) __atomic_store_n(&state, State::kForked, __ATOMIC_RELEASE);
}

}  // namespace

// The bounds of the section that SONDE_IO fills, from the linker.
extern "C" {
extern Real __start_sonde_reals[];
extern Real __stop_sonde_reals[];
}

__attribute__((constructor)) void Start() {
  for (Real* real = __start_sonde_reals; real != __stop_sonde_reals; ++real) real->Find();
  if (!interpose::Wanted("libsonde-io.so")) return;
  clock.Start();
  if (pthread_atfork(nullptr, nullptr, &AfterForkInChild) != 0) return;
  __atomic_store_n(&state, State::kOn, __ATOMIC_RELEASE);
}

}  // namespace sonde::io
