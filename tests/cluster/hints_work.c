/* Programs with one thing wrong each, and what they are like when that is changed: for
 * test_hints.py.
 *
 *   hints_work MODE SECONDS
 *
 * A run has work for about SECONDS of a processor and prints how much of it lay one after the
 * other: what it would take on a machine that has nothing else to do. Modes:
 *
 *   compute          computes on little memory; two tasks have half of the work each
 *   light            the same with pauses
 *   pages            reads all over 512 MiB
 *   pieces, buffered writes 48 bytes at a time, by write() or by a buffer of 1 MiB
 *   uneven, even     MPI: rank 1 has three times the work of the others, or all have the same
 *   serial, divided  MPI: rank 0 does half of the work alone while the others wait, or all share it
 *   leak, frees      allocates and fills memory all the time, and keeps it or not
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static volatile uint64_t sink;

/* So many seconds of this process's processor time. */
static void compute(double seconds) {
  const double end = now(CLOCK_PROCESS_CPUTIME_ID) + seconds;
  uint64_t x = 88172645463325252u;
  while (now(CLOCK_PROCESS_CPUTIME_ID) < end) {
    for (int i = 0; i < 20000; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
    }
    sink += x;
  }
}

static void light(double seconds) {
  for (double t = 0; t < seconds; t += 0.02) {
    compute(0.014);
    usleep(6000);
  }
}

/* Does something for so many seconds of processor time; how long a million of it take. */
static double per_million(double seconds, void (*some)(void), double each) {
  const double begin = now(CLOCK_PROCESS_CPUTIME_ID);
  double count = 0, used = 0;
  for (; used < seconds; used = now(CLOCK_PROCESS_CPUTIME_ID) - begin) {
    some();
    count += each;
  }
  return used / count * 1e6;
}

enum { SOME = 10000 };
static uint64_t* all;
static const size_t kAll = (size_t)512 << 17; /* of 8 bytes: 512 MiB */

static void read_anywhere(void) {
  static uint64_t x = 88172645463325252u, sum = 0;
  for (int i = 0; i < SOME; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sum += all[(x + sum % 2) % kAll];
  }
  sink += sum;
}

static double pages(double seconds) {
  all = malloc(kAll * sizeof(*all));
  for (size_t i = 0; i < kAll; ++i) all[i] = i;
  return per_million(seconds, read_anywhere, SOME);
}

static FILE* file;

static void write_pieces(void) {
  char piece[48];
  memset(piece, 'x', sizeof(piece));
  for (int i = 0; i < SOME; ++i) fwrite(piece, sizeof(piece), 1, file);
  rewind(file);
}

static double pieces(double seconds, int buffered) {
  char name[] = "hints-pieces-XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  file = fdopen(fd, "w");
  static char buffer[1 << 20]; /* glibc ignores the size of a buffer that it is not given */
  setvbuf(file, buffered ? buffer : NULL, buffered ? _IOFBF : _IONBF, sizeof(buffer));
  const double took = per_million(seconds, write_pieces, SOME);
  fclose(file);
  return took;
}

static void leak(double seconds, int frees) {
  for (double t = 0; t < seconds; t += 0.05) {
    const size_t size = 1 << 20;
    char* const memory = malloc(size);
    memset(memory, 1, size);
    sink += (uint64_t)memory[size / 2];
    if (frees) free(memory);
    compute(0.001);
    usleep(49000);
  }
}

static double path; /* in seconds, of what lay one after the other */
static double counted;

/* All wait for each other: what the slowest has used since they did so before counts. */
static void meet(void) {
  const double used = now(CLOCK_PROCESS_CPUTIME_ID);
  MPI_Barrier(MPI_COMM_WORLD);
  double mine = used - counted, most;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  path += most;
  counted = now(CLOCK_PROCESS_CPUTIME_ID);
}

static void uneven(double seconds, int rank, int even) {
  const double mine = even ? 2 : rank == 1 ? 3 : 1;
  for (double t = 0; t < seconds; t += 0.04) {
    compute(mine * 0.02);
    meet();
  }
}

static void serial(double seconds, int rank, int ranks, int divided) {
  for (int i = 0; i < 2; ++i) {
    if (divided) {
      compute(seconds / 4 / ranks);
    } else if (rank == 0) {
      compute(seconds / 4);
    }
    meet();
    compute(seconds / 4);
    meet();
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* const mode = argv[1];
  const double seconds = atof(argv[2]);
  const char* const tasks = getenv("SLURM_NTASKS");
  const char* const modes[] = {"uneven", "even", "serial", "divided"};
  int parallel = 0, rank = 0, ranks = 1;
  for (int i = 0; i < 4; ++i) parallel |= strcmp(mode, modes[i]) == 0;
  if (parallel) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  }
  counted = now(CLOCK_PROCESS_CPUTIME_ID);
  if (strcmp(mode, "compute") == 0) compute(seconds / (tasks ? atoi(tasks) : 1));
  if (strcmp(mode, "light") == 0) light(seconds);
  if (strcmp(mode, "leak") == 0) leak(seconds, 0);
  if (strcmp(mode, "frees") == 0) leak(seconds, 1);
  if (strcmp(mode, "uneven") == 0) uneven(seconds, rank, 0);
  if (strcmp(mode, "even") == 0) uneven(seconds, rank, 1);
  if (strcmp(mode, "serial") == 0) serial(seconds, rank, ranks, 0);
  if (strcmp(mode, "divided") == 0) serial(seconds, rank, ranks, 1);
  if (!parallel) path = now(CLOCK_PROCESS_CPUTIME_ID) - counted;
  if (strcmp(mode, "pages") == 0) path = pages(seconds);
  if (strcmp(mode, "pieces") == 0) path = pieces(seconds, 0);
  if (strcmp(mode, "buffered") == 0) path = pieces(seconds, 1);
  if (rank == 0) printf("%.6f\n", path);
  if (parallel) MPI_Finalize();
  return 0;
}
