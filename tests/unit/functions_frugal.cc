// A program compiled with -finstrument-functions that ends if memory is asked for while a function
// of its own is called for the first time: in a signal handler that lets its signal through
// (SA_NODEFER), which may have interrupted malloc() itself, and outside of one. The first is the
// process's first call of all. Exits with 0.
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#define NOINLINE __attribute__((noinline))
#define BARE __attribute__((no_instrument_function))

namespace {

char memory[1 << 24];
size_t used = 0;
volatile sig_atomic_t forbidden = 0;
volatile int sink = 0;

}  // namespace

extern "C" BARE void* malloc(size_t size) {
  if (forbidden != 0) abort();
  auto* const block = reinterpret_cast<size_t*>(memory + used);
  used += (size + 31) / 16 * 16;
  if (used > sizeof(memory)) abort();
  *block = size;
  return block + 2;
}
extern "C" BARE void free(void*) {
  if (forbidden != 0) abort();
}
extern "C" BARE void* calloc(size_t count, size_t size) { return malloc(count * size); }
extern "C" BARE void* realloc(void* old, size_t size) {
  void* const block = malloc(size);
  if (old != nullptr) {
    const size_t before = static_cast<size_t*>(old)[-2];
    memcpy(block, old, before < size ? before : size);
  }
  return block;
}

namespace frugal {

NOINLINE void Ordinary() { sink = sink + 1; }
NOINLINE void InHandler() { sink = sink + 1; }

}  // namespace frugal

BARE static void OnSignal(int) {
  forbidden = 1;
  frugal::InHandler();
  forbidden = 0;
}

BARE int main() {
  int* volatile kept = new int(1);  // so that the C++ library is there
  delete kept;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  forbidden = 1;
  frugal::Ordinary();
  forbidden = 0;
  return 0;
}
