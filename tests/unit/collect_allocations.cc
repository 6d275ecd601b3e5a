// Counts what a test program allocates with new. In a file of its own: seen beside its calls, the
// compiler takes free() for a mistake.
#include <atomic>
#include <cstdlib>
#include <new>

extern std::atomic<size_t> allocations;
std::atomic<size_t> allocations{0};

void* operator new(size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
