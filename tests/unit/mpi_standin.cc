// A stand-in for an MPI library, for tests and benchmarks of libsonde-mpi.so: one rank, and calls
// that take no time. Handles are pointers, as with Open MPI; a datatype is its size. Fortran's
// entry points do not call those of C, but for mpi_barrier_.
#include <cstdint>
#include <cstring>

#define STANDIN extern "C" __attribute__((visibility("default")))

STANDIN int PMPI_Init(int*, char***) { return 0; }
STANDIN int MPI_Init(int*, char***) { return 0; }
STANDIN int MPI_Finalize() { return 0; }

STANDIN int PMPI_Type_size_x(void* type, int64_t* size) {
  *size = static_cast<int64_t>(reinterpret_cast<intptr_t>(type));
  return 0;
}
STANDIN int PMPI_Get_count(const void* status, void*, int* count) {
  memcpy(count, status, sizeof(*count));
  return 0;
}
STANDIN int PMPI_Comm_size(void*, int* size) {
  *size = 4;
  return 0;
}
STANDIN int PMPI_Comm_rank(void*, int* rank) {
  *rank = 1;
  return 0;
}
// The communicator 2 is one between groups.
STANDIN int PMPI_Comm_test_inter(void* comm, int* flag) {
  *flag = reinterpret_cast<intptr_t>(comm) == 2 ? 1 : 0;
  return 0;
}

// Fails if the tag is negative.
STANDIN int MPI_Send(const void*, int, void*, int, int tag, void*) { return tag < 0 ? 1 : 0; }
// Half of what there is room for comes. A status that is not wanted is nowhere.
STANDIN int MPI_Recv(void*, int count, void*, int, int, void*, void* status) {
  const int elements = count / 2;
  if (status != nullptr) memcpy(status, &elements, sizeof(elements));
  return 0;
}
STANDIN int MPI_Barrier(void*) { return 0; }
STANDIN int MPI_Bcast(void*, int, void*, int, void*) { return 0; }
STANDIN int MPI_Allreduce(const void*, void*, int, void*, void*, void*) { return 0; }
STANDIN int MPI_Wait(void*, void*) { return 0; }
// A library whose collective is made of its own public functions.
STANDIN int MPI_Allgather(const void* from, int count, void* type, void*, int, void*, void* comm) {
  for (int rank = 0; rank < 4; ++rank) MPI_Send(from, count, type, rank, 0, comm);
  return MPI_Barrier(comm);
}
// Nine arguments: the last of them on the stack, on any processor.
STANDIN int MPI_Alltoallv(const void*, const int*, const int*, void*, void*, const int*, const int*,
                          void*, void* comm) {
  return comm == nullptr ? 1 : 0;
}

STANDIN void pmpi_type_size_(const int* type, int* size, int* error) {
  *size = *type;
  *error = 0;
}
STANDIN void pmpi_get_count_(const int* status, const int*, int* count, int* error) {
  *count = *status;
  *error = 0;
}
STANDIN void pmpi_comm_rank_(const int*, int* rank, int* error) {
  *rank = 1;
  *error = 0;
}
STANDIN void pmpi_comm_size_(const int*, int* size, int* error) {
  *size = 4;
  *error = 0;
}
STANDIN void pmpi_comm_test_inter_(const int*, int* flag, int* error) { *flag = *error = 0; }

extern "C" {
__attribute__((visibility("default"))) int mpi_fortran_in_place_ = 0;
__attribute__((visibility("default"))) int mpi_fortran_status_ignore_[6] = {};
}

STANDIN void mpi_send_(const void*, const int*, const int*, const int*, const int*, const int*,
                       int* error) {
  *error = 0;
}
STANDIN void mpi_send_f08_(const void*, const int*, const int*, const int*, const int*, const int*,
                           int* error) {
  if (error != nullptr) *error = 0;
}
STANDIN void mpi_recv_(void*, const int* count, const int*, const int*, const int*, const int*,
                       int* status, int* error) {
  if (status != mpi_fortran_status_ignore_) *status = *count / 2;
  *error = 0;
}
STANDIN void mpi_barrier_(const int*, int* error) { *error = MPI_Barrier(nullptr); }
