// The entry points of MPI, in C and Fortran, made from functions.inc.
//
// A call is counted by the first entry point that it reaches in a thread; calls that the library
// makes within it are not counted. Fortran's entry points of MPICH and the like call those of C,
// which know the arguments best, so C counts; those of Open MPI do not, so they count themselves.
// Each entry point finds out at its first call which case it is.
#include <utility>

#include "libclient/mpi/peers.h"
#include "libclient/mpi/site.h"

namespace sonde::mpi {
namespace {

// Larger than any MPI_Status, in C or Fortran.
struct alignas(16) StatusRoom {
  char bytes[128];
};

template <typename Result, size_t... i>
__attribute__((always_inline)) inline Result Invoke(void* real, const Word* a,
                                                    std::index_sequence<i...>) {
  return reinterpret_cast<Result (*)(decltype(Word(i))...)>(real)(a[i]...);
}

// Reads the clock around the call, and counts it.
template <class Shape, class Abi, size_t kArguments>
__attribute__((always_inline)) inline int Measure(Site& site, void* real, Word* a) {
  StatusRoom room;
  Shape::template Prepare<Abi>(a, reinterpret_cast<Word>(&room));
  thread.depth = 1;
  const uint64_t begin = clock.Now();
  const int result = Invoke<int>(real, a, std::make_index_sequence<kArguments>());
  const uint64_t end = clock.Now();
  Bytes bytes;
  if (result == 0) bytes = Shape::template Count<Abi>(a);
  const double seconds = Record(site, end - begin, end, bytes);
  if (result == 0) CountPeer<Shape, Abi>(a, seconds, end);
  thread.depth = 0;
  return result;
}

inline bool Passes() { return !__atomic_load_n(&active, __ATOMIC_RELAXED) || thread.depth != 0; }

inline void* Real(Site& site, const char* symbol) {
  void* real = __atomic_load_n(&site.real, __ATOMIC_RELAXED);
  return __builtin_expect(real != nullptr, 1) ? real : FindReal(site, symbol);
}

template <class Shape, class Abi, size_t kArguments>
__attribute__((always_inline)) inline int CallC(Site& site, const char* symbol, Word* a) {
  void* const real = Real(site, symbol);
  if (__builtin_expect(real == nullptr, 0)) return kMissing;
  if (Passes()) return Invoke<int>(real, a, std::make_index_sequence<kArguments>());
  return Measure<Shape, Abi, kArguments>(site, real, a);
}

// A call of Fortran: `a` has the arguments of C, the address of the error code, which may be
// absent, and the length of a text where there is one.
template <class Shape, size_t kArguments>
__attribute__((always_inline)) inline void CallFortran(Site& site, const char* symbol, Word* a) {
  constexpr auto kAll = std::make_index_sequence<kArguments + 2>();
  void* const real = Real(site, symbol);
  auto* const error = reinterpret_cast<int*>(a[kArguments]);
  if (__builtin_expect(real == nullptr, 0)) {
    if (error != nullptr) *error = kMissing;
    return;
  }
  const auto inner = __atomic_load_n(&site.inner, __ATOMIC_RELAXED);
  if (Passes() || inner == Site::kCounts) {
    Invoke<void>(real, a, kAll);
    return;
  }
  StatusRoom room;
  Shape::template Prepare<FortranAbi>(a, reinterpret_cast<Word>(&room));
  const uint32_t recorded = thread.recorded;
  if (inner == Site::kNone) thread.depth = 1;
  const uint64_t begin = clock.Now();
  Invoke<void>(real, a, kAll);
  const uint64_t end = clock.Now();
  if (inner == Site::kUnknown) {
    const auto found = thread.recorded != recorded ? Site::kCounts : Site::kNone;
    __atomic_store_n(&site.inner, found, __ATOMIC_RELAXED);
    if (found == Site::kCounts) return;
    thread.depth = 1;
  }
  Bytes bytes;
  const bool succeeded = error == nullptr || *error == 0;
  if (succeeded) bytes = Shape::template Count<FortranAbi>(a);
  const double seconds = Record(site, end - begin, end, bytes);
  if (succeeded) CountPeer<Shape, FortranAbi>(a, seconds, end);
  thread.depth = 0;
}

constexpr Site MakeSite(const char* name, Class kind, bool sends, bool receives) {
  return {name, kind, sends, receives};
}

}  // namespace

#define SONDE_P1 Word a0
#define SONDE_P2 SONDE_P1, Word a1
#define SONDE_P3 SONDE_P2, Word a2
#define SONDE_P4 SONDE_P3, Word a3
#define SONDE_P5 SONDE_P4, Word a4
#define SONDE_P6 SONDE_P5, Word a5
#define SONDE_P7 SONDE_P6, Word a6
#define SONDE_P8 SONDE_P7, Word a7
#define SONDE_P9 SONDE_P8, Word a8
#define SONDE_P10 SONDE_P9, Word a9
#define SONDE_P11 SONDE_P10, Word a10
#define SONDE_P12 SONDE_P11, Word a11
#define SONDE_P13 SONDE_P12, Word a12
#define SONDE_A1 a0
#define SONDE_A2 SONDE_A1, a1
#define SONDE_A3 SONDE_A2, a2
#define SONDE_A4 SONDE_A3, a3
#define SONDE_A5 SONDE_A4, a4
#define SONDE_A6 SONDE_A5, a5
#define SONDE_A7 SONDE_A6, a6
#define SONDE_A8 SONDE_A7, a7
#define SONDE_A9 SONDE_A8, a8
#define SONDE_A10 SONDE_A9, a9
#define SONDE_A11 SONDE_A10, a10
#define SONDE_A12 SONDE_A11, a11
#define SONDE_A13 SONDE_A12, a12

#define SONDE_SITE(NAME, CLASS, ...)                                                            \
  static constinit Site site = MakeSite("MPI_" #NAME, Class::CLASS, shape::__VA_ARGS__::kSends, \
                                        shape::__VA_ARGS__::kReceives)

#define SONDE_C(NAME, SYMBOL, ABI, N, CLASS, ...)               \
  SONDE_INTERPOSED int SYMBOL(SONDE_P##N) {                     \
    SONDE_SITE(NAME, CLASS, __VA_ARGS__);                       \
    Word a[] = {SONDE_A##N};                                    \
    return CallC<shape::__VA_ARGS__, ABI, N>(site, #SYMBOL, a); \
  }
#define SONDE_FORTRAN(NAME, SYMBOL, N, CLASS, ...)                  \
  SONDE_INTERPOSED void SYMBOL(SONDE_P##N, Word error, Word text) { \
    SONDE_SITE(NAME, CLASS, __VA_ARGS__);                           \
    Word a[] = {SONDE_A##N, error, text};                           \
    CallFortran<shape::__VA_ARGS__, N>(site, #SYMBOL, a);           \
  }

#define PLAIN(NAME, LOWER, N, CLASS, ...)                    \
  SONDE_C(NAME, MPI_##NAME, CAbi, N, CLASS, __VA_ARGS__)     \
  SONDE_FORTRAN(NAME, mpi_##LOWER##_, N, CLASS, __VA_ARGS__) \
  SONDE_FORTRAN(NAME, mpi_##LOWER##_f08_, N, CLASS, __VA_ARGS__)
#define LARGE(NAME, LOWER, N, CLASS, ...)   \
  PLAIN(NAME, LOWER, N, CLASS, __VA_ARGS__) \
  SONDE_C(NAME, MPI_##NAME##_c, LargeAbi, N, CLASS, __VA_ARGS__)

#include "libclient/mpi/functions.inc"

// --- Beginning and end: their arguments and effects differ between C and Fortran.

namespace {

template <typename Result, size_t kArguments>
Result Starting(Site& site, const char* symbol, Word* a) {
  constexpr auto kAll = std::make_index_sequence<kArguments>();
  void* const real = Real(site, symbol);
  if (real == nullptr) return static_cast<Result>(kMissing);
  Begin();
  if (Passes()) return Invoke<Result>(real, a, kAll);
  thread.depth = 1;
  const uint64_t begin = clock.Now();
  struct Done {
    Site& site;
    uint64_t begin;
    ~Done() {
      const uint64_t end = clock.Now();
      Record(site, end - begin, end, {});
      thread.depth = 0;
    }
  } const done{site, begin};
  return Invoke<Result>(real, a, kAll);
}

template <typename Result, size_t kArguments>
Result Ending(Site& site, const char* symbol, Word* a) {
  void* const real = Real(site, symbol);
  if (real == nullptr) return static_cast<Result>(kMissing);
  if (Passes()) return Invoke<Result>(real, a, std::make_index_sequence<kArguments>());
  struct Done {
    ~Done() { End(); }
  } const done;
  return Starting<Result, kArguments>(site, symbol, a);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define SONDE_EDGE(NAME, SYMBOL, RESULT, HOW, N) \
  SONDE_INTERPOSED RESULT SYMBOL(SONDE_P##N) {   \
    SONDE_SITE(NAME, Other, None);               \
    Word a[] = {SONDE_A##N};                     \
    return HOW<RESULT, N>(site, #SYMBOL, a);     \
  }
// NOLINTEND(bugprone-macro-parentheses)

SONDE_EDGE(Init, MPI_Init, int, Starting, 2)
SONDE_EDGE(Init, mpi_init_, void, Starting, 1)
SONDE_EDGE(Init, mpi_init_f08_, void, Starting, 1)
SONDE_EDGE(Init_thread, MPI_Init_thread, int, Starting, 4)
SONDE_EDGE(Init_thread, mpi_init_thread_, void, Starting, 3)
SONDE_EDGE(Init_thread, mpi_init_thread_f08_, void, Starting, 3)
SONDE_EDGE(Finalize, MPI_Finalize, int, Ending, 1)
SONDE_EDGE(Finalize, mpi_finalize_, void, Ending, 1)
SONDE_EDGE(Finalize, mpi_finalize_f08_, void, Ending, 1)

}  // namespace sonde::mpi
