// An MPI program that keeps its own account of what it calls, sends and receives, by class, for
// test_mpi.py to compare. Prints one line of JSON for each rank.
//
//   mpi_work DIRECTORY [threads]
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { P2P, WAIT, COLLECTIVE, ONE_SIDED, IO, OTHER, CLASSES };
static const char* const kNames[CLASSES] = {"p2p",       "wait", "collective",
                                            "one_sided", "io",   "other"};

static long calls[CLASSES], sent[CLASSES], received[CLASSES];
static int rank, ranks;

// Before each call: its class, and what the documentation says it sends and receives.
#define DID(CLASS, SENT, RECEIVED)                                                       \
  (__atomic_fetch_add(&calls[CLASS], 1, 0), __atomic_fetch_add(&sent[CLASS], (SENT), 0), \
   __atomic_fetch_add(&received[CLASS], (RECEIVED), 0))

enum { ROUNDS = 50, MANY = 1000 };
static double out[MANY * 8], in[MANY * 8];

static void point_to_point(void) {
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Request requests[2];
    DID(P2P, 0, MANY * 8);
    MPI_Irecv(in, MANY, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[0]);
    DID(P2P, (i + 1) * 8, 0);
    MPI_Isend(out, i + 1, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[1]);
    DID(WAIT, 0, 0);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  // More room than what comes, with and without a status.
  for (int i = 0; i < 4; ++i) {
    MPI_Status status;
    if (rank % 2 == 0 && rank + 1 < ranks) {
      DID(P2P, 300, 0);
      MPI_Send(out, 75, MPI_FLOAT, rank + 1, 2, MPI_COMM_WORLD);
    } else if (rank % 2 == 1) {
      DID(WAIT, 0, 0);
      MPI_Probe(rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      DID(P2P, 0, 300);
      MPI_Recv(in, MANY, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
               i % 2 == 0 ? MPI_STATUS_IGNORE : &status);
    }
  }
  DID(P2P, 0, 0);
  MPI_Send(out, 10, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
  DID(P2P, 0, 0);
  MPI_Recv(in, 10, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  DID(P2P, 24, 24);
  MPI_Sendrecv(out, 3, MPI_DOUBLE, next, 4, in, 100, MPI_DOUBLE, before, 4, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  DID(P2P, 5 * sizeof(int), 5 * sizeof(int));
  MPI_Sendrecv_replace(out, 5, MPI_INT, next, 5, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  // Every third of 30 numbers: the type is worth 80 bytes, whatever it spans.
  MPI_Datatype strided;
  MPI_Type_vector(10, 1, 3, MPI_DOUBLE, &strided);
  DID(OTHER, 0, 0);
  MPI_Type_commit(&strided);
  MPI_Request request;
  DID(P2P, 2 * 80, 0);
  MPI_Issend(out, 2, strided, next, 6, MPI_COMM_WORLD, &request);
  DID(P2P, 0, 160);
  MPI_Recv(in, 20, MPI_DOUBLE, before, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  DID(WAIT, 0, 0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  DID(OTHER, 0, 0);
  MPI_Type_free(&strided);
}

static void collectives(void) {
  int counts[64], places[64], total = 0;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = i + 1;
    places[i] = total;
    total += counts[i];
  }
  const int root = ranks - 1, is_root = rank == root;
  DID(COLLECTIVE, 0, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  DID(COLLECTIVE, is_root ? 800 : 0, is_root ? 0 : 800);
  MPI_Bcast(out, 100, MPI_DOUBLE, root, MPI_COMM_WORLD);
  DID(COLLECTIVE, 80, is_root ? 80 : 0);
  MPI_Reduce(out, in, 10, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8, 8);
  MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  DID(COLLECTIVE, 16, 16);
  MPI_Allreduce(MPI_IN_PLACE, in, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  DID(COLLECTIVE, 24, is_root ? 24 * ranks : 0);
  MPI_Gather(is_root ? MPI_IN_PLACE : (void*)out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, root,
             MPI_COMM_WORLD);
  DID(COLLECTIVE, 8 * counts[rank], is_root ? 8 * total : 0);
  MPI_Gatherv(out, counts[rank], MPI_DOUBLE, in, counts, places, MPI_DOUBLE, root, MPI_COMM_WORLD);
  DID(COLLECTIVE, is_root ? 16 * ranks : 0, 16);
  MPI_Scatter(out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, root, MPI_COMM_WORLD);
  DID(COLLECTIVE, is_root ? 8 * total : 0, 8 * counts[rank]);
  MPI_Scatterv(out, counts, places, MPI_DOUBLE, in, counts[rank], MPI_DOUBLE, root, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8, 8 * ranks);
  MPI_Allgather(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8, 8 * ranks);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8 * counts[rank], 8 * total);
  MPI_Allgatherv(out, counts[rank], MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8 * ranks, 8 * ranks);
  MPI_Alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  int same[64], spaces[64];
  for (int i = 0; i < ranks; ++i) {
    same[i] = rank + 1;
    spaces[i] = i * (rank + 1);
  }
  DID(COLLECTIVE, 8 * ranks * (rank + 1), 8 * total);
  MPI_Alltoallv(out, same, spaces, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8 * ranks, 8);
  MPI_Reduce_scatter_block(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8 * total, 8 * counts[rank]);
  MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  DID(COLLECTIVE, 8, 8);
  MPI_Scan(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Request request;
  DID(COLLECTIVE, is_root ? 8 : 0, is_root ? 0 : 8);
  MPI_Ibcast(out, 1, MPI_DOUBLE, root, MPI_COMM_WORLD, &request);
  DID(WAIT, 0, 0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  // Between two groups: counted without bytes.
  MPI_Comm half, between;
  DID(OTHER, 0, 0);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (ranks > 1) {
    DID(OTHER, 0, 0);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &between);
    const int side = rank % 2 != 0 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    DID(COLLECTIVE, 0, 0);
    MPI_Bcast(out, 100, MPI_DOUBLE, side, between);
    DID(OTHER, 0, 0);
    MPI_Comm_free(&between);
  }
  DID(OTHER, 0, 0);
  MPI_Comm_free(&half);
}

static void one_sided(void) {
  MPI_Win window;
  DID(ONE_SIDED, 0, 0);
  MPI_Win_create(in, sizeof(in), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  DID(ONE_SIDED, 0, 0);
  MPI_Win_fence(0, window);
  const int next = (rank + 1) % ranks;
  DID(ONE_SIDED, 80, 0);
  MPI_Put(out, 10, MPI_DOUBLE, next, 0, 10, MPI_DOUBLE, window);
  DID(ONE_SIDED, 0, 40);
  MPI_Get(out + 100, 5, MPI_DOUBLE, next, 100, 5, MPI_DOUBLE, window);
  DID(ONE_SIDED, 8, 0);
  MPI_Accumulate(out, 1, MPI_DOUBLE, next, 200, 1, MPI_DOUBLE, MPI_SUM, window);
  DID(ONE_SIDED, 0, 0);
  MPI_Win_fence(0, window);
  DID(ONE_SIDED, 0, 0);
  MPI_Win_free(&window);
}

static void files(const char* directory) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/mpi_work.data", directory);
  MPI_File file;
  DID(IO, 0, 0);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  DID(IO, 4000, 0);
  MPI_File_write_at_all(file, 4000 * rank, out, 500, MPI_DOUBLE, MPI_STATUS_IGNORE);
  DID(IO, 0, 800);
  MPI_File_read_at(file, 4000 * rank, in, 100, MPI_DOUBLE, MPI_STATUS_IGNORE);
  DID(IO, 0, 0);
  MPI_File_close(&file);
}

static void* exchange(void* comm) {
  int sent_value = 1, got = 0;
  for (int i = 0; i < ROUNDS * 10; ++i) {
    DID(P2P, sizeof(int), sizeof(int));
    MPI_Sendrecv(&sent_value, 1, MPI_INT, 0, 8, &got, 1, MPI_INT, 0, 8, *(MPI_Comm*)comm,
                 MPI_STATUS_IGNORE);
  }
  return NULL;
}

static void threads(void) {
  enum { THREADS = 4 };
  pthread_t workers[THREADS];
  MPI_Comm comms[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    DID(OTHER, 0, 0);
    MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
    pthread_create(&workers[i], NULL, &exchange, &comms[i]);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(workers[i], NULL);
}

int main(int argc, char** argv) {
  const int with_threads = argc > 2 && strcmp(argv[2], "threads") == 0;
  int provided = 0;
  DID(OTHER, 0, 0);
  if (with_threads) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  point_to_point();
  collectives();
  one_sided();
  files(argv[1]);
  if (with_threads && provided == MPI_THREAD_MULTIPLE) threads();
  DID(OTHER, 0, 0);
  char line[1024];
  int at = snprintf(line, sizeof(line), "{\"rank\": %d, \"threads\": %s", rank,
                    provided == MPI_THREAD_MULTIPLE ? "true" : "false");
  for (int i = 0; i < CLASSES; ++i) {
    at += snprintf(line + at, sizeof(line) - at, ", \"%s\": [%ld, %ld, %ld]", kNames[i], calls[i],
                   sent[i], received[i]);
  }
  printf("%s}\n", line);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
