/* An MPI program that has something for every panel of Grafana's dashboards that does not need
 * special hardware: calls of all classes, files, MPI-IO, phases, metrics of its own; compiled with
 * -finstrument-functions. Ends when the file that is its first argument is there; works in the
 * directory that is its second one.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libclient/sonde.h"

static int rank, ranks;
static char room[4096];

static void talk(void) {
  double out[64], in[64];
  memset(out, 0, sizeof out);
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  MPI_Request requests[2];
  MPI_Irecv(in, 64, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, 64, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Allreduce(out, in, 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void write_files(void) {
  char name[4200], bytes[8192];
  memset(bytes, 1, sizeof bytes);
  snprintf(name, sizeof name, "%s/file.%d", room, rank);
  FILE* stream = fopen(name, "w");
  if (stream != NULL) {
    fwrite(bytes, 1, sizeof bytes, stream);
    fclose(stream);
  }
  const int fd = open(name, O_RDWR);
  if (fd >= 0) {
    if (read(fd, bytes, sizeof bytes) > 0 && write(fd, bytes, 512) > 0) fsync(fd);
    close(fd);
  }
}

static void write_together(void) {
  char name[4200], bytes[1024];
  memset(bytes, 2, sizeof bytes);
  snprintf(name, sizeof name, "%s/together", room);
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) !=
      MPI_SUCCESS)
    return;
  const MPI_Offset place = (MPI_Offset)rank * (MPI_Offset)sizeof bytes;
  MPI_File_write_at(file, place, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, place, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

/* Memory that was not touched before, and CPU time. */
static double compute(void) {
  enum { kNumbers = 100000 };
  double* numbers = malloc(kNumbers * sizeof(double));
  if (numbers == NULL) return 0;
  double sum = 0;
  for (int i = 0; i < kNumbers; ++i) numbers[i] = i;
  for (int i = 0; i < kNumbers; ++i) sum += numbers[i];
  free(numbers);
  return sum;
}

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  snprintf(room, sizeof room, "%s", argv[2]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  sonde_metric_t* residual = sonde_gauge("shown_residual", "1", "Falls", 1, NULL, 0);
  sonde_metric_t* steps = sonde_counter("shown_steps_total", "1", "Steps", 1, NULL, 0);
  int stop = 0;
  for (int i = 0; !stop; ++i) {
    sonde_phase_begin("talk");
    talk();
    sonde_phase_end("talk");
    sonde_phase_begin("files");
    write_files();
    write_together();
    sonde_phase_end("files");
    sonde_set(residual, compute() / (i + 1));
    sonde_add(steps, 1);
    /* All ranks end in the same round. */
    stop = rank == 0 && access(argv[1], F_OK) == 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    usleep(50000);
  }
  MPI_Finalize();
  return 0;
}
