// A module with calls of MPI, linked with the stand-in: an application's part that
// interpose_process loads as Python would, privately, or for all. Each function answers with what
// it got.
#include <cstdint>

extern "C" {
int MPI_Init(int*, char***);
int MPI_Finalize();
int MPI_Send(const void*, int, void*, int, int, void*);
int MPI_Recv(void*, int, void*, int, int, void*, void*);
int MPI_Barrier(void*);
int MPI_Bcast(void*, int, void*, int, void*);
int MPI_Allgather(const void*, int, void*, void*, int, void*, void*);
int MPI_Alltoallv(const void*, const int*, const int*, void*, void*, const int*, const int*, void*,
                  void*);
void mpi_send_(const void*, const int*, const int*, const int*, const int*, const int*, int*);
void mpi_send_f08_(const void*, const int*, const int*, const int*, const int*, const int*, int*);
void mpi_recv_(void*, const int*, const int*, const int*, const int*, const int*, int*, int*);
void mpi_barrier_(const int*, int*);
extern int mpi_fortran_status_ignore_[6];
}

namespace {

double data[64];
void* const kDouble = reinterpret_cast<void*>(8);
void* const kWorld = reinterpret_cast<void*>(1);
void* const kBetween = reinterpret_cast<void*>(2);

}  // namespace

#define CALL extern "C" __attribute__((visibility("default"))) int

CALL init() { return MPI_Init(nullptr, nullptr); }
CALL finalize() { return MPI_Finalize(); }
CALL send() { return MPI_Send(data, 3, kDouble, 0, 0, kWorld); }
CALL send_to_nobody() { return MPI_Send(data, 3, kDouble, -1, 0, kWorld); }
CALL failing_send() { return MPI_Send(data, 3, kDouble, 0, -1, kWorld); }
CALL receive() { return MPI_Recv(data, 20, kDouble, 0, 0, kWorld, nullptr); }
CALL barrier() { return MPI_Barrier(kWorld); }
CALL broadcast() { return MPI_Bcast(data, 5, kDouble, 1, kWorld); }
CALL broadcast_between() { return MPI_Bcast(data, 5, kDouble, 1, kBetween); }
CALL allgather() { return MPI_Allgather(data, 1, kDouble, data, 1, kDouble, kWorld); }
CALL alltoallv() {
  const int to[] = {1, 2, 3, 4}, from[] = {2, 2, 2, 2}, places[] = {0, 2, 4, 6};
  return MPI_Alltoallv(data, to, places, kDouble, data, from, places, kDouble, kWorld);
}
CALL fortran_send() {
  const int count = 3, type = 8, zero = 0;
  int error = -1;
  mpi_send_(data, &count, &type, &zero, &zero, &zero, &error);
  return error;
}
// The error code is optional here.
CALL fortran_2008_send() {
  const int count = 3, type = 8, zero = 0;
  mpi_send_f08_(data, &count, &type, &zero, &zero, &zero, nullptr);
  return 0;
}
CALL fortran_receive() {
  const int count = 20, type = 8, zero = 0;
  int error = -1, status[6] = {};
  mpi_recv_(data, &count, &type, &zero, &zero, &zero, status, &error);
  mpi_recv_(data, &count, &type, &zero, &zero, &zero, mpi_fortran_status_ignore_, &error);
  return error;
}
CALL fortran_barrier() {
  const int comm = 0;
  int error = -1;
  mpi_barrier_(&comm, &error);
  return error;
}
