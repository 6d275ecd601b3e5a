/* Nanoseconds of processor time of some MPI calls of one rank with itself: for interpose_mpi. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { kCalls = 200000, kRounds = 5 };

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void Iprobe(void) {
  int there = 0;
  MPI_Iprobe(0, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}
static void Sendrecv(void) {
  double out = 1, in = 0;
  MPI_Sendrecv(&out, 1, MPI_DOUBLE, 0, 0, &in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}
static void Allreduce(void) {
  double out = 1, in = 0;
  MPI_Allreduce(&out, &in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void Measure(const char* name, void (*call)(void)) {
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const double start = Now();
    for (int i = 0; i < kCalls; ++i) call();
    const double each = (Now() - start) / kCalls;
    if (each < best) best = each;
  }
  printf("%s %.1f\n", name, best);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Measure("iprobe", Iprobe);
  Measure("sendrecv", Sendrecv);
  Measure("allreduce", Allreduce);
  MPI_Finalize();
  return 0;
}
