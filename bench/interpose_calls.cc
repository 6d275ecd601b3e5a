// The program that bench_interpose runs, with the interposers and without: calls each function many
// times and prints `NAME NANOSECONDS`, the processor time of one call. Its MPI is a stand-in whose
// functions do nothing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

extern "C" {
int MPI_Init(int*, char***);
int MPI_Send(const void*, int, void*, int, int, void*);
int MPI_Recv(void*, int, void*, int, int, void*, void*);
int MPI_Barrier(void*);
int MPI_Wait(void*, void*);
int MPI_Allreduce(const void*, void*, int, void*, void*, void*);
void mpi_send_(const void*, const int*, const int*, const int*, const int*, const int*, int*);
extern void (*const functions_of_nothing[500])(void);  // compiled with -finstrument-functions
}

namespace {

double Nanoseconds() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return 1e9 * static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec);
}

// The best of several: what others do to the machine only adds.
template <typename Call>
void Measure(const char* name, int calls, Call call) {
  double best = 1e18;
  for (int round = 0; round < 5; ++round) {
    const double begin = Nanoseconds();
    for (int i = 0; i < calls; ++i) {
      call();
      asm volatile("" ::: "memory");
    }
    const double took = (Nanoseconds() - begin) / calls;
    if (took < best) best = took;
  }
  std::printf("%s %.2f\n", name, best);
}

void Mpi() {
  static double data[16];
  void* const type = reinterpret_cast<void*>(8);
  void* const comm = reinterpret_cast<void*>(1);
  MPI_Init(nullptr, nullptr);
  constexpr int kCalls = 200'000;
  Measure("mpi_send", kCalls, [&] { MPI_Send(data, 16, type, 0, 0, comm); });
  Measure("mpi_recv", kCalls, [&] { MPI_Recv(data, 16, type, 0, 0, comm, nullptr); });
  Measure("mpi_barrier", kCalls, [&] { MPI_Barrier(comm); });
  Measure("mpi_wait", kCalls, [&] { MPI_Wait(data, nullptr); });
  Measure("mpi_allreduce", kCalls, [&] { MPI_Allreduce(data, data, 2, type, nullptr, comm); });
  const int count = 16, size = 8, zero = 0;
  int error = 0;
  Measure("mpi_send_fortran", kCalls,
          [&] { mpi_send_(data, &count, &size, &zero, &zero, &zero, &error); });
}

void Functions() {
  constexpr int kCalls = 2'000'000;
  Measure("function", kCalls, [] { functions_of_nothing[0](); });
  uint32_t random = 1;
  Measure("function_of_many", kCalls, [&] {
    random = random * 1664525 + 1013904223;
    functions_of_nothing[(random >> 16) % 500]();
  });
}

void Io(const char* directory) {
  char text[128] = {};
  if (chdir(directory) != 0) exit(1);
  const int fd = open("data", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, text, sizeof text) != sizeof text) exit(1);
  constexpr int kCalls = 100'000;
  [[maybe_unused]] ssize_t n = 0;
  Measure("pread", kCalls, [&] { n = pread(fd, text, 8, 0); });
  Measure("pwrite", kCalls, [&] { n = pwrite(fd, text, 8, 0); });
  Measure("lseek", kCalls, [&] { lseek(fd, 0, SEEK_SET); });
  struct stat info;
  Measure("fstat", kCalls, [&] { n = fstat(fd, &info); });
  Measure("stat", kCalls, [&] { n = stat("data", &info); });
  Measure("access", kCalls, [&] { n = access("data", R_OK); });
  Measure("unlink_of_nothing", kCalls, [&] { n = unlink("nothing"); });
  Measure("open_and_close", kCalls / 4, [&] { close(open("data", O_RDONLY | O_CLOEXEC)); });
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) exit(1);
  Measure("read_of_a_pipe", kCalls, [&] { n = read(ends[0], text, 8); });
  FILE* const file = fopen("data", "r+e");
  if (file == nullptr) exit(1);
  Measure("fwrite", kCalls, [&] { fwrite(text, 1, 8, file); });
  Measure("fprintf", kCalls, [&] { fprintf(file, "%d\n", 12345); });
  Measure("fputc", kCalls, [&] { fputc('x', file); });
  rewind(file);
  Measure("fread", kCalls, [&] { n = static_cast<ssize_t>(fread(text, 1, 8, file)); });
  fclose(file);
  unlink("data");
}

}  // namespace

// A directory to write files in; or nothing, to call functions alone.
int main(int argc, char** argv) {
  Functions();
  if (argc < 2) return 0;
  Mpi();
  Io(argv[1]);
  return 0;
}
