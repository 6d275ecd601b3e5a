// A program compiled with -finstrument-functions whose memory comes from functions of its own: they
// end the program if they are called once more before they have returned, as one that holds a lock
// would hang. Calls them and a function; exits with 0.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

char memory[1 << 24];
size_t used = 0;
bool inside = false;

}  // namespace

// Its name needs the demangler, which allocates memory.
__attribute__((noinline)) void* TakeFromPool(size_t size) {
  char* const block = memory + used;
  used += (size + 15) / 16 * 16;
  if (used > sizeof(memory)) abort();
  return block;
}

extern "C" void* malloc(size_t size) {
  if (inside) abort();
  inside = true;
  auto* const block = static_cast<size_t*>(TakeFromPool(size + 16));
  inside = false;
  *block = size;
  return block + 2;
}
extern "C" void free(void*) {}
extern "C" void* calloc(size_t count, size_t size) { return malloc(count * size); }
extern "C" void* realloc(void* old, size_t size) {
  void* const block = malloc(size);
  if (old != nullptr) {
    const size_t before = static_cast<size_t*>(old)[-2];
    memcpy(block, old, before < size ? before : size);
  }
  return block;
}

__attribute__((noinline)) void Compute(int) { asm volatile(""); }

int main() {
  for (int i = 0; i < 6; ++i) {
    Compute(i);
    int* volatile kept = new int(i);
    delete kept;
  }
  return 0;
}
