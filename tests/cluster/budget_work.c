// An MPI program whose ranks compute, wait for a slow rank, write and sleep, one after the other,
// and measure how long each of it took. Prints one line of JSON for each rank: CPU seconds of
// computing and of waiting in MPI, seconds of the rest.
//
//   budget_work DIRECTORY [allreduce | turned]    in which they wait, instead of a receive; or a
//                                                 receive in a communicator of the reverse order
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds_by(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}
static double now(void) { return seconds_by(CLOCK_MONOTONIC); }
static double cpu(void) { return seconds_by(CLOCK_THREAD_CPUTIME_ID); }

static void compute(double seconds) {
  volatile double x = 1;
  const double end = cpu() + seconds;
  while (cpu() < end) {
    for (int i = 0; i < 10000; ++i) x = x * 1.0000001;
  }
}

static char data[1 << 20];

static void write_for(const char* directory, int rank, double seconds) {
  char name[4096];
  snprintf(name, sizeof(name), "%s/budget.%d", directory, rank);
  const int file = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
  const double end = now() + seconds;
  for (long i = 0; now() < end; ++i) {
    if (pwrite(file, data, sizeof(data), (i % 16) * (long)sizeof(data)) < 0) perror("pwrite");
    if (i % 16 == 15) fdatasync(file);
  }
  close(file);
  unlink(name);
}

int main(int argc, char** argv) {
  int rank, ranks, message = 0, sum = 0;
  double at[6];
  if (argc < 2) return 2;
  at[0] = now();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  memset(data, rank + 1, sizeof(data));
  MPI_Comm turned;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Barrier(MPI_COMM_WORLD);
  at[1] = now();
  const double computed = rank == 0 ? 3 : 1;
  compute(computed);
  at[2] = now();
  const double before = cpu();
  if (argc > 2 && strcmp(argv[2], "allreduce") == 0) {
    MPI_Allreduce(&message, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else if (rank == 0) {
    for (int to = 1; to < ranks; ++to) {
      if (argc > 2) {
        MPI_Send(&message, 1, MPI_INT, ranks - 1 - to, 0, turned);
      } else {
        MPI_Send(&message, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
      }
    }
  } else if (argc > 2) {
    MPI_Recv(&message, 1, MPI_INT, ranks - 1, 0, turned, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  at[3] = now();
  const double polled = cpu() - before;
  write_for(argv[1], rank, 1.5);
  at[4] = now();
  sleep(1);
  at[5] = now();
  printf(
      "{\"rank\": %d, \"computing\": %.3f, \"begin\": %.3f, \"mpi\": %.3f, "
      "\"mpi_cpu\": %.3f, \"io\": %.3f, \"idle\": %.3f}\n",
      rank, computed, at[1] - at[0], at[3] - at[2], polled, at[4] - at[3], at[5] - at[4]);
  MPI_Finalize();
  return 0;
}
