/* The 2-D heat equation on the unit square by Jacobi iteration, with MPI.
 *
 * The upper edge is held at 1, the others at 0; ranks form a grid and exchange halos each
 * iteration. Ends after a time, or when the largest change of an iteration falls below 1e-12.
 *
 *   mpicc -O2 mpi_heat.c -o mpi_heat -lm                          (or, with metrics of its own,)
 *   mpicc -O2 -DHAVE_SONDE mpi_heat.c -o mpi_heat -lsonde -lm
 *   srun --mpi=pmi2 -N4 ./mpi_heat [-n CELLS_PER_SIDE] [-t SECONDS] [-i ITERATIONS]
 *
 * With HAVE_SONDE it records heat_residual and heat_iterations_total; after a run with -i N the
 * counter of every rank is exactly N, unless the residual ended it before.
 *
 * Prints the residual, the speed, and the CPU time all ranks took by their own account
 * (getrusage), so that what a monitor shows can be compared with it.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef HAVE_SONDE
#include "sonde.h"
#endif

/* Ranks agree on residual and time this often; an Allreduce each iteration would cost more. */
enum { CHECK_EVERY = 20 };

typedef struct {
  int cells;
  double seconds;
  long iterations;
} Options;

typedef struct {
  MPI_Comm comm;
  int rank, up, down, left, right;
  int rows, columns; /* Of this rank's part, without the halo. */
  int top;           /* Whether this part touches the hot edge. */
  MPI_Datatype column;
  double *now, *next; /* (rows + 2) * (columns + 2), row by row. */
} Part;

static size_t at(const Part* part, int row, int column) {
  return (size_t)row * (size_t)(part->columns + 2) + (size_t)column;
}

static void usage(const char* program) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    fprintf(stderr, "usage: %s [-n CELLS_PER_SIDE] [-t SECONDS] [-i ITERATIONS]\n", program);
  MPI_Finalize();
  exit(2);
}

static Options parse(int argc, char** argv) {
  Options options = {.cells = 1024, .seconds = 10, .iterations = 0};
  int option;
  while ((option = getopt(argc, argv, "n:t:i:")) != -1) {
    if (option == 'n')
      options.cells = atoi(optarg);
    else if (option == 't')
      options.seconds = atof(optarg);
    else if (option == 'i')
      options.iterations = atol(optarg);
    else
      usage(argv[0]);
  }
  if (options.cells < 1 || options.seconds <= 0 || options.iterations < 0) usage(argv[0]);
  return options;
}

/* Cells of the share-th of count shares: they differ by one at most. */
static int share_of(int cells, int count, int share) {
  return cells / count + (share < cells % count ? 1 : 0);
}

static Part make_part(int cells) {
  Part part;
  int size, dimensions[2] = {0, 0}, periodic[2] = {0, 0}, place[2];
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dimensions);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 1, &part.comm);
  MPI_Comm_rank(part.comm, &part.rank);
  MPI_Cart_coords(part.comm, part.rank, 2, place);
  MPI_Cart_shift(part.comm, 0, 1, &part.up, &part.down);
  MPI_Cart_shift(part.comm, 1, 1, &part.left, &part.right);
  part.rows = share_of(cells, dimensions[0], place[0]);
  part.columns = share_of(cells, dimensions[1], place[1]);
  part.top = place[0] == 0;
  MPI_Type_vector(part.rows, 1, part.columns + 2, MPI_DOUBLE, &part.column);
  MPI_Type_commit(&part.column);

  size_t length = (size_t)(part.rows + 2) * (size_t)(part.columns + 2);
  part.now = calloc(length, sizeof(double));
  part.next = calloc(length, sizeof(double));
  if (!part.now || !part.next) {
    fprintf(stderr, "mpi_heat: no memory for %zu cells; use a smaller -n\n", length);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int column = 0; part.top && column < part.columns + 2; ++column)
    part.now[at(&part, 0, column)] = part.next[at(&part, 0, column)] = 1.0;
  return part;
}

static void free_part(Part* part) {
  free(part->now);
  free(part->next);
  MPI_Type_free(&part->column);
  MPI_Comm_free(&part->comm);
}

static void exchange_halos(Part* part) {
  double* u = part->now;
  MPI_Request requests[8];
  MPI_Status statuses[8]; /* Unused, but GCC warns of MPICH's MPI_STATUSES_IGNORE. */
  const int rows = part->rows, columns = part->columns;
  MPI_Irecv(&u[at(part, 0, 1)], columns, MPI_DOUBLE, part->up, 0, part->comm, &requests[0]);
  MPI_Irecv(&u[at(part, rows + 1, 1)], columns, MPI_DOUBLE, part->down, 1, part->comm,
            &requests[1]);
  MPI_Irecv(&u[at(part, 1, 0)], 1, part->column, part->left, 2, part->comm, &requests[2]);
  MPI_Irecv(&u[at(part, 1, columns + 1)], 1, part->column, part->right, 3, part->comm,
            &requests[3]);
  MPI_Isend(&u[at(part, rows, 1)], columns, MPI_DOUBLE, part->down, 0, part->comm, &requests[4]);
  MPI_Isend(&u[at(part, 1, 1)], columns, MPI_DOUBLE, part->up, 1, part->comm, &requests[5]);
  MPI_Isend(&u[at(part, 1, columns)], 1, part->column, part->right, 2, part->comm, &requests[6]);
  MPI_Isend(&u[at(part, 1, 1)], 1, part->column, part->left, 3, part->comm, &requests[7]);
  MPI_Waitall(8, requests, statuses);
}

/* One Jacobi iteration; the largest change of a cell. */
static double relax(Part* part) {
  double change = 0;
  for (int row = 1; row <= part->rows; ++row) {
    const double* above = &part->now[at(part, row - 1, 0)];
    const double* here = &part->now[at(part, row, 0)];
    const double* below = &part->now[at(part, row + 1, 0)];
    double* next = &part->next[at(part, row, 0)];
    for (int column = 1; column <= part->columns; ++column) {
      next[column] = 0.25 * (above[column] + below[column] + here[column - 1] + here[column + 1]);
      change = fmax(change, fabs(next[column] - here[column]));
    }
  }
  double* swap = part->now;
  part->now = part->next;
  part->next = swap;
  return change;
}

/* What the application tells Sonde about itself. Without telemetry all of it does nothing. */
#ifdef HAVE_SONDE
static sonde_metric_t *iterations_total, *residual_gauge;

static void introduce(void) {
  iterations_total =
      sonde_counter("heat_iterations_total", "1", "Jacobi iterations of this rank", 0, NULL, 0);
  residual_gauge =
      sonde_gauge("heat_residual", "1", "Largest change of a cell in an iteration", 0, NULL, 0);
}
static void tell_iteration(void) { sonde_add(iterations_total, 1); }
static void tell_residual(double residual) { sonde_set(residual_gauge, residual); }
#else
static void introduce(void) {}
static void tell_iteration(void) {}
static void tell_residual(double residual) { (void)residual; }
#endif

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static void print_results(const Part* part, const Options* options, long iterations,
                          double residual, double wall) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double mine[2] = {seconds_of(usage.ru_utime), seconds_of(usage.ru_stime)}, cpu[2];
  int ranks;
  MPI_Comm_size(part->comm, &ranks);
  MPI_Reduce(mine, cpu, 2, MPI_DOUBLE, MPI_SUM, 0, part->comm);
  if (part->rank != 0) return;
  const double cells = (double)options->cells * (double)options->cells;
  printf("mpi_heat: %d x %d cells, %d ranks\n", options->cells, options->cells, ranks);
  printf("iterations  %ld\n", iterations);
  printf("residual    %.6e\n", residual);
  printf("wall        %.3f s\n", wall);
  printf("speed       %.3f million cells/s\n", 1e-6 * cells * (double)iterations / wall);
  printf("cpu         %.3f s user, %.3f s system, all ranks\n", cpu[0], cpu[1]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options = parse(argc, argv);
  Part part = make_part(options.cells);

  introduce();

  const double start = MPI_Wtime();
  long iterations = 0;
  double residual = 0, wall = 0;
  for (int go_on = 1; go_on;) {
    exchange_halos(&part);
    const double change = relax(&part);
    ++iterations;
    tell_iteration();
    const int last = iterations == options.iterations;
    if (!last && iterations % CHECK_EVERY != 0) continue;
    /* The largest of both, so that all ranks come to the same decision. */
    double mine[2] = {change, MPI_Wtime() - start}, largest[2];
    MPI_Allreduce(mine, largest, 2, MPI_DOUBLE, MPI_MAX, part.comm);
    residual = largest[0];
    wall = largest[1];
    tell_residual(residual);
    go_on = !last && residual > 1e-12 && (options.iterations || wall < options.seconds);
  }

  print_results(&part, &options, iterations, residual, wall);
  free_part(&part);
  MPI_Finalize();
  return 0;
}
