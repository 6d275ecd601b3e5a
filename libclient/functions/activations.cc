#include "libclient/functions/activations.h"

#include <pthread.h>
#include <sys/mman.h>

#include "libclient/interpose/keep_errno.h"

namespace sonde::functions {

__thread Activation* activations __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr size_t kActivationsSize = (kPlaces + 1) * sizeof(Activation);

// Each thread has room for the values of so many keys. For those of others the C library allocates
// memory, which must not be in a signal handler, and which a program's own calloc, counted and
// timed, may be asked for (glibc: PTHREAD_KEY_2NDLEVEL_SIZE).
constexpr pthread_key_t kKeysWithRoom = 32;

constinit pthread_key_t key = 0;

void OnThreadEnd(void* memory) {
  activations = nullptr;
  munmap(memory, kActivationsSize);
}

}  // namespace

bool PrepareActivations() {
  if (pthread_key_create(&key, &OnThreadEnd) != 0) return false;
  if (key < kKeysWithRoom) return true;
  pthread_key_delete(key);
  return false;
}

// Memory that is not touched does not exist, so a thread takes what its functions need.
Activation* MakeActivations() {
  const interpose::KeepErrno keep;
  void* const memory = mmap(nullptr, kActivationsSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  activations = static_cast<Activation*>(memory);  // first: what the C library calls may be timed
  pthread_setspecific(key, memory);
  return activations;
}

void ForgetActivations() {
  if (activations == nullptr) return;
  munmap(activations, kActivationsSize);
  activations = nullptr;
  pthread_setspecific(key, nullptr);
}

}  // namespace sonde::functions
