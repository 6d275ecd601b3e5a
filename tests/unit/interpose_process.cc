// An application for the tests of the interposers: carries out the commands it reads from standard
// input, one a line, and answers each with one line. See kCommands for the list. Its own input and
// output are pipes, which are not counted.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/commands.h"

namespace {

void* module = nullptr;
char text[4096];

// local | global
std::string Load(std::istream& in) {
  std::string scope;
  in >> scope;
  module = dlopen(CALLS_MODULE, RTLD_NOW | (scope == "local" ? RTLD_LOCAL : RTLD_GLOBAL));
  return module == nullptr ? dlerror() : "ok";
}

// FUNCTION [TIMES [THREADS]]: of the module, in this thread unless there are to be several.
std::string Call(std::istream& in) {
  std::string name;
  int times = 1, threads = 1, result = 0;
  in >> name >> times >> threads;
  const auto function = reinterpret_cast<int (*)()>(dlsym(module, name.c_str()));
  if (function == nullptr) return "no such function";
  if (threads == 1) {
    for (int i = 0; i < times; ++i) result = function();
    return std::to_string(result);
  }
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < times; ++i) {
        const int got = function();
        if (t == 0) result = got;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  return std::to_string(result);
}

std::string Answer(bool good) { return good ? "ok" : strerror(errno); }

int OpenData(int flags = 0) { return open("data", O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600); }

// 10 writes of 100 bytes, 5 reads of 150, and one of each kind with offsets and vectors.
std::string Posix(std::istream&) {
  const int fd = OpenData(O_TRUNC);
  if (fd < 0) return Answer(false);
  bool good = true;
  for (int i = 0; i < 10; ++i) good = write(fd, text, 100) == 100 && good;
  good = lseek(fd, 0, SEEK_SET) == 0 && good;
  for (int i = 0; i < 5; ++i) good = read(fd, text, 150) == 150 && good;
  iovec parts[] = {{text, 30}, {text + 30, 20}};
  good = pwrite(fd, text, 10, 0) == 10 && pread(fd, text, 20, 0) == 20 && good;
  good = writev(fd, parts, 2) == 50 && preadv(fd, parts, 2, 0) == 50 && good;
  good = fsync(fd) == 0 && good;
  return Answer(close(fd) == 0 && good);
}

// Text of 1000 + 15 bytes through buffers, which the C library writes and reads by system calls of
// its own.
std::string Stdio(std::istream&) {
  FILE* file = fopen("data", "we");
  if (file == nullptr) return Answer(false);
  for (int i = 0; i < 100; ++i) fwrite("123456789\n", 1, 10, file);
  fputs("12345\n", file);
  fprintf(file, "%d\n", 1234567);
  fputc('\n', file);
  bool good = fclose(file) == 0;
  file = fopen("data", "re");
  int lines = 0;
  while (fgets(text, sizeof(text), file) != nullptr) ++lines;
  good = fclose(file) == 0 && lines == 103 && good;
  return Answer(good);
}

// Nine operations on names, of which four fail as they should.
std::string Metadata(std::istream&) {
  struct stat info;
  bool good = mkdir("folder", 0700) == 0 && stat("folder", &info) == 0;
  good = rename("folder", "other") == 0 && rmdir("other") == 0 && good;
  good = access(".", R_OK) == 0 && good;
  good = stat("nothing", &info) != 0 && errno == ENOENT && good;
  good = unlink("nothing") != 0 && errno == ENOENT && good;
  good = unlink("no/such/folder") != 0 && errno == ENOENT && good;
  good = chmod("nothing", 0600) != 0 && errno == ENOENT && good;
  return Answer(good);
}

// What is no file: a pipe, a pair of sockets, a device, memory.
std::string NoFiles(std::istream&) {
  int ends[2], pair[2];
  bool good = pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
  good = write(ends[1], "x", 1) == 1 && read(ends[0], text, 1) == 1 && good;
  good = write(pair[0], "x", 1) == 1 && read(pair[1], text, 1) == 1 && good;
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  good = write(null, "x", 1) == 1 && good;
  const int memory = memfd_create("test", MFD_CLOEXEC);
  struct stat info;
  good = write(memory, "x", 1) == 1 && fstat(memory, &info) == 0 && good;
  for (const int fd : {ends[0], ends[1], pair[0], pair[1], null, memory}) close(fd);
  return Answer(good);
}

// A file's descriptor becomes a pipe's and a file's again; numbers that nobody has are closed.
std::string Reuse(std::istream&) {
  const int fd = OpenData(O_TRUNC);
  int ends[2];
  if (fd < 0 || pipe(ends) != 0) return Answer(false);
  const int spare = dup(fd);
  bool good = write(fd, text, 7) == 7;
  good = dup2(ends[1], fd) == fd && write(fd, text, 100) == 100 && good;  // into the pipe
  good = dup3(spare, fd, O_CLOEXEC) == fd && write(fd, text, 5) == 5 && good;
  for (const int each : {fd, spare, ends[0], ends[1]}) good = close(each) == 0 && good;
  good = close(fd) != 0 && errno == EBADF && good;
  good = close(-1) != 0 && close(1 << 30) != 0 && errno == EBADF && good;
  good = read(fd, text, 1) < 0 && errno == EBADF && good;
  return Answer(good);
}

// A child that writes by itself, and one that only runs another program.
std::string Fork(std::istream&) {
  const int fd = OpenData(O_TRUNC);
  bool good = write(fd, text, 3) == 3;
  for (const bool writes : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      if (writes) _exit(write(fd, text, 20) == 20 && write(fd, text, 20) == 20 ? 0 : 1);
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      close(null);
      unsetenv("LD_PRELOAD");
      execlp("true", "true", nullptr);
      _exit(2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    good = status == 0 && good;
  }
  good = write(fd, text, 4) == 4 && good;
  return Answer(close(fd) == 0 && good);
}

// A child in our memory rearranges its own descriptors; ours stay what they are.
std::string Vfork(std::istream&) {
  const int fd = OpenData(O_TRUNC);
  int ends[2];
  if (fd < 0 || pipe(ends) != 0 || write(fd, text, 3) != 3) return Answer(false);
  const pid_t child = vfork();
  if (child == 0) {
    dup2(ends[1], fd);
    close(ends[0]);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  const bool good = status == 0 && write(fd, text, 4) == 4 && close(ends[0]) == 0;
  close(ends[1]);
  return Answer(close(fd) == 0 && good);
}

// Not linked with libsonde, which some tests leave out.
bool Register(const char* name) {
  using Counter = void*(const char*, const char*, const char*, int, const void*, size_t);
  static auto* const counter = reinterpret_cast<Counter*>(dlsym(RTLD_DEFAULT, "sonde_counter"));
  return counter(name, "1", "", 0, nullptr, 0) != nullptr;
}

int handler_fd = -1;
volatile sig_atomic_t handled = 0;

void OnAlarm(int) {
  const int error = errno;
  // The last two look up what is not known.
  if (write(handler_fd, "x", 1) == 1) handled = handled + 1;
  close(open("data", O_RDONLY | O_CLOEXEC));
  access("/proc/self/status", R_OK);
  errno = error;
}

// A signal handler writes while the program registers metrics and forks, which hold libsonde's
// mutex.
std::string Handler(std::istream&) {
  handler_fd = OpenData(O_TRUNC | O_APPEND);
  struct sigaction action {};
  action.sa_handler = OnAlarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 200}, {0, 200}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; handled < 2000; ++i) {
    const std::string name = "metric_" + std::to_string(i % 5000);
    Register(name.c_str());
    if (i % 100 == 0) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      waitpid(child, nullptr, 0);
    }
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  close(handler_fd);
  return "ok";
}

std::string Metric(std::istream&) { return Register("own_total") ? "ok" : "null"; }

std::string Preloaded(std::istream&) {
  const char* value = getenv("LD_PRELOAD");
  return value == nullptr ? "none" : value;
}

const sonde::Commands kCommands = {
    {"load", Load},   {"call", Call},         {"posix", Posix},      {"stdio", Stdio},
    {"fork", Fork},   {"metadata", Metadata}, {"no_files", NoFiles}, {"vfork", Vfork},
    {"reuse", Reuse}, {"handler", Handler},   {"metric", Metric},    {"preloaded", Preloaded},
};

}  // namespace

int main() {
  if (chdir(getenv("DIRECTORY")) != 0) return 1;
  return sonde::CarryOut(kCommands);
}
