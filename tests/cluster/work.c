/* Does known work and prints what it did, one JSON object, for test_values.py.
 *
 *   work [VERB=WHERE:AMOUNT | VERB...]     in this order
 *
 *   spin=WHERE:SECONDS     uses the processor, half of the time with system calls
 *   touch=WHERE:PAGES      touches so many pages for the first time
 *   room=DIRECTORY         where files are
 *   write=WHERE:BLOCKS     writes blocks of 4096 bytes to a file of its own, one call each
 *   read=WHERE:BLOCKS      reads them
 *   sync                   has all blocks stored
 *   forget                 drops the file from the page cache
 *   loopback=BYTES         sends bytes to itself over TCP
 *   ignore                 children are never waited for; those of spin stay until the file
 *                          `release` is there, and make the file `held` when they are done
 *   await                  waits for the file `begin`
 *   hold                   last: prints first, then waits for the file `release`
 *
 * WHERE is main; thread; child, which is waited for; grandchildren: ten, one after another, each
 * by a child of its own, which waits for it; ranked: main, AMOUNT times (rank + 1).
 *
 * What it prints: rank; user, system, lost (seconds; lost is of children never waited for); minor,
 * major (page faults); peak (bytes); rchar, wchar, syscr, syscw, as /proc/self/io counts and all
 * counted here from main() on; written, fetched (bytes, to and from storage); start, end: counters
 * of the node.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlock = 4096, kGrandchildren = 10 };

static int rank, ignoring, file = -1;
static const char* room = ".";

/* Input and output of all its processes and threads; shared with children. */
typedef struct {
  long long read_bytes, write_bytes, read_calls, write_calls;
  double lost;
} Did;
static Did* did;

static void die(const char* what) {
  perror(what);
  exit(1);
}

static double seconds(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Every read and write of this program goes through these two. */
static ssize_t do_read(int from, void* to, size_t size) {
  const ssize_t got = read(from, to, size);
  __atomic_fetch_add(&did->read_calls, 1, __ATOMIC_RELAXED);
  if (got > 0) __atomic_fetch_add(&did->read_bytes, got, __ATOMIC_RELAXED);
  return got;
}
static void do_write(int to, const void* from, size_t size) {
  if (write(to, from, size) != (ssize_t)size) die("write");
  __atomic_fetch_add(&did->write_calls, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&did->write_bytes, (long long)size, __ATOMIC_RELAXED);
}

static double used_by(int who) {
  struct rusage usage;
  getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

static void spin(double amount) {
  const double until = used_by(RUSAGE_THREAD) + amount;
  for (volatile long i = 0; used_by(RUSAGE_THREAD) < until;) {
    for (int k = 0; k < 20000; ++k) ++i;
    for (int k = 0; k < 100; ++k) syscall(SYS_getppid);
  }
}

static void touch(double pages) {
  const size_t size = (size_t)pages * kBlock;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  madvise(memory, size, MADV_NOHUGEPAGE);
  for (size_t at = 0; at < size; at += kBlock) memory[at] = 1;
  munmap(memory, size);
}

static void write_blocks(double blocks) {
  static const char block[kBlock] = {1};
  for (int i = 0; i < (int)blocks; ++i) do_write(file, block, kBlock);
}

static void read_blocks(double blocks) {
  char block[kBlock];
  lseek(file, 0, SEEK_SET);
  for (int i = 0; i < (int)blocks; ++i) {
    if (do_read(file, block, kBlock) != kBlock) die("read");
  }
}

static int exists(const char* name) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", room, name);
  return access(path, F_OK) == 0;
}

static void make(const char* name) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", room, name);
  close(open(path, O_CREAT | O_WRONLY, 0666));
}

static void await(const char* name) {
  while (!exists(name)) usleep(5000);
}

typedef struct {
  void (*work)(double);
  double amount;
} Part;

static void* in_thread(void* argument) {
  const Part* part = argument;
  part->work(part->amount);
  return NULL;
}

/* A child that works; with `deep` its child does, and it waits for that. */
static void in_child(const Part* part, int deep) {
  int done[2] = {-1, -1};
  if (ignoring && pipe(done) != 0) die("pipe");
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    if (deep) {
      in_child(part, 0);
    } else {
      part->work(part->amount);
    }
    if (ignoring) {
      did->lost += used_by(RUSAGE_SELF);
      close(done[1]);
      make("held");
      await("release");
    }
    _exit(0);
  }
  if (ignoring) {
    /* Until the child has closed its end. */
    char byte;
    close(done[1]);
    do_read(done[0], &byte, 1);
    close(done[0]);
  } else if (waitpid(child, NULL, 0) != child) {
    die("waitpid");
  }
}

static void do_part(void (*work)(double), const char* text) {
  Part part = {work, 0};
  const char* colon = strchr(text, ':');
  if (colon == NULL) exit(2);
  part.amount = atof(colon + 1);
  if (strncmp(text, "thread:", 7) == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, &part) != 0) die("pthread_create");
    pthread_join(thread, NULL);
  } else if (strncmp(text, "child:", 6) == 0) {
    in_child(&part, 0);
  } else if (strncmp(text, "grandchildren:", 14) == 0) {
    part.amount /= kGrandchildren;
    for (int i = 0; i < kGrandchildren; ++i) in_child(&part, 1);
  } else {
    if (strncmp(text, "ranked:", 7) == 0) part.amount *= rank + 1;
    work(part.amount);
  }
}

static void loopback(double bytes) {
  static char block[65536];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof(address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, length) != 0 || listen(listener, 1) != 0)
    die("listen");
  getsockname(listener, (struct sockaddr*)&address, &length);
  if (connect(to, (struct sockaddr*)&address, length) != 0) die("connect");
  const int from = accept(listener, NULL, NULL);
  for (long long sent = 0; sent < (long long)bytes;) {
    const ssize_t part = send(to, block, sizeof(block), 0);
    if (part <= 0) die("send");
    for (ssize_t got = 0; got < part;) {
      const ssize_t n = recv(from, block, sizeof(block), 0);
      if (n <= 0) die("recv");
      got += n;
    }
    sent += part;
  }
  close(from);
  close(to);
  close(listener);
}

/* The number in a column of the line that begins with `name`; blanks and colons separate. */
static long long statistic(const char* path, const char* name, int column) {
  char line[8192];
  FILE* lines = fopen(path, "r");
  long long value = -1;
  while (lines != NULL && value < 0 && fgets(line, sizeof(line), lines) != NULL) {
    char* word = strtok(line, " :\t\n");
    if (word == NULL || strcmp(word, name) != 0) continue;
    for (int i = 0; i < column && word != NULL; ++i) word = strtok(NULL, " :\t\n");
    if (word != NULL) value = atoll(word);
  }
  if (lines != NULL) fclose(lines);
  return value;
}

static void node_counters(char* text, size_t size) {
  snprintf(text, size,
           "{\"node_forks_total\": %lld, \"node_context_switches_total\": %lld, "
           "\"node_vmstat_pgfault_total\": %lld, \"node_network_receive_bytes_total\": %lld, "
           "\"node_network_transmit_packets_total\": %lld}",
           statistic("/proc/stat", "processes", 1), statistic("/proc/stat", "ctxt", 1),
           statistic("/proc/vmstat", "pgfault", 1), statistic("/proc/net/dev", "lo", 1),
           statistic("/proc/net/dev", "lo", 10));
}

/* What was read and written before main(): by slurmstepd in this process, and by the loader. */
static void take_over_io(void) {
  char text[512];
  const int from = open("/proc/self/io", O_RDONLY);
  const ssize_t size = read(from, text, sizeof(text) - 1);
  if (size <= 0) die("/proc/self/io");
  text[size] = '\0';
  close(from);
  sscanf(text, "rchar: %lld wchar: %lld syscr: %lld syscw: %lld", &did->read_bytes,
         &did->write_bytes, &did->read_calls, &did->write_calls);
  did->read_bytes += size;
  ++did->read_calls;
}

static void print_results(const char* start) {
  static char end[1024], text[4096];
  if (start[0] != '\0') node_counters(end, sizeof(end));
  struct rusage own, children;
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  const long peak = own.ru_maxrss > children.ru_maxrss ? own.ru_maxrss : children.ru_maxrss;
  size_t size = 0;
  /* Twice: the second time with the length of this very text. It does not depend on the values. */
  for (int i = 0; i < 2; ++i) {
    size =
        (size_t)snprintf(text, sizeof(text),
                         "{\"rank\": %d, \"user\": %.6f, \"system\": %.6f, \"lost\": %.6f, "
                         "\"minor\": %ld, \"major\": %ld, "
                         "\"peak\": %lld, \"written\": %lld, \"fetched\": %lld, \"rchar\": %20lld, "
                         "\"wchar\": %20lld, "
                         "\"syscr\": %20lld, \"syscw\": %20lld, \"start\": %s, \"end\": %s}\n",
                         rank, seconds(own.ru_utime) + seconds(children.ru_utime),
                         seconds(own.ru_stime) + seconds(children.ru_stime), did->lost,
                         own.ru_minflt + children.ru_minflt, own.ru_majflt + children.ru_majflt,
                         peak * 1024LL, 512LL * (own.ru_oublock + children.ru_oublock),
                         512LL * (own.ru_inblock + children.ru_inblock), did->read_bytes,
                         did->write_bytes + (long long)size, did->read_calls, did->write_calls + 1,
                         start[0] != '\0' ? start : "{}", end[0] != '\0' ? end : "{}");
  }
  if (write(STDOUT_FILENO, text, size) != (ssize_t)size) die("write");
}

static void open_file(void) {
  char path[4096];
  if (file >= 0) return;
  snprintf(path, sizeof(path), "%s/file.%d", room, rank);
  file = open(path, O_CREAT | O_RDWR, 0600);
  if (file < 0) die(path);
}

static int starts(const char* text, const char* with) {
  return strncmp(text, with, strlen(with)) == 0;
}

int main(int argc, char** argv) {
  did = mmap(NULL, sizeof(*did), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (did == MAP_FAILED) die("mmap");
  take_over_io();
  const char* procid = getenv("SLURM_PROCID");
  rank = procid != NULL ? atoi(procid) : 0;
  char start[1024] = "";
  int holds = 0;
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (starts(word, "spin=")) {
      do_part(spin, word + 5);
    } else if (starts(word, "touch=")) {
      do_part(touch, word + 6);
    } else if (starts(word, "room=")) {
      room = word + 5;
      open_file();
    } else if (starts(word, "write=")) {
      do_part(write_blocks, word + 6);
    } else if (starts(word, "read=")) {
      do_part(read_blocks, word + 5);
    } else if (strcmp(word, "sync") == 0) {
      if (fsync(file) != 0) die("fsync");
    } else if (strcmp(word, "forget") == 0) {
      posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    } else if (starts(word, "loopback=")) {
      node_counters(start, sizeof(start));
      loopback(atof(word + 9));
    } else if (strcmp(word, "ignore") == 0) {
      signal(SIGCHLD, SIG_IGN);
      ignoring = 1;
    } else if (strcmp(word, "await") == 0) {
      await("begin");
    } else if (strcmp(word, "hold") == 0) {
      holds = 1;
    } else {
      fprintf(stderr, "work: unknown word %s\n", word);
      return 2;
    }
  }
  print_results(start);
  if (holds) await("release");
  return 0;
}
