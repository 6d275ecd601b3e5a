// Whether functions.inc gives each function of MPI as many arguments as this mpi.h does. Compiled,
// and not run, by test_mpi.py.
#include <mpi.h>

#include <cstddef>

template <typename... Arguments>
constexpr std::size_t Count(int (*)(Arguments...)) {
  return sizeof...(Arguments);
}

#define PLAIN(NAME, LOWER, N, ...) static_assert(Count(&MPI_##NAME) == N, #NAME);
#if MPI_VERSION >= 4
#define LARGE(NAME, LOWER, N, ...)               \
  static_assert(Count(&MPI_##NAME) == N, #NAME); \
  static_assert(Count(&MPI_##NAME##_c) == N, #NAME "_c");
#else
#define LARGE PLAIN
// Of MPI 4.
int MPI_Isendrecv(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int,
                  MPI_Comm, MPI_Request*);
int MPI_Isendrecv_replace(void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*);
#endif
#include "libclient/mpi/functions.inc"
