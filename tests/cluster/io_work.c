// A program that keeps its own account of its calls for files, by interface and operation, for
// test_io.py to compare. Prints one line of JSON.
//
//   io_work DIRECTORY
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, CLOSE, READ, WRITE, SYNC, SEEK, METADATA, OPERATIONS };
static const char* const kNames[OPERATIONS] = {"open", "close", "read",    "write",
                                               "sync", "seek",  "metadata"};
enum { POSIX, STDIO };
static long calls[2][OPERATIONS], bytes[2][OPERATIONS];
static char block[8192];

// Around a call: what it is counted as, with the bytes that it gave.
static long did(int api, int operation, long moved) {
  __atomic_fetch_add(&calls[api][operation], 1, __ATOMIC_RELAXED);
  if (moved > 0) __atomic_fetch_add(&bytes[api][operation], moved, __ATOMIC_RELAXED);
  return moved;
}
#define DID(API, OPERATION, CALL) did(API, OPERATION, (long)(CALL))
#define DONE(API, OPERATION, CALL) ((CALL), did(API, OPERATION, 0))

static void* descriptors(void* name) {
  const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  did(POSIX, OPEN, 0);
  for (int i = 0; i < 100; ++i) DID(POSIX, WRITE, write(fd, block, 1 + i * 10));
  DONE(POSIX, SEEK, lseek(fd, 0, SEEK_SET));
  while (DID(POSIX, READ, read(fd, block, 1000)) > 0) {
  }
  const struct iovec parts[] = {{block, 100}, {block + 100, 28}};
  DID(POSIX, WRITE, pwritev(fd, parts, 2, 50000));
  DID(POSIX, READ, preadv(fd, parts, 2, 50000));
  DID(POSIX, WRITE, pwrite(fd, block, 7, 0));
  DID(POSIX, READ, pread(fd, block, 9, 0));
  DONE(POSIX, SYNC, fdatasync(fd));
  DONE(POSIX, METADATA, ftruncate(fd, 10));
  struct stat info;
  DONE(POSIX, METADATA, fstat(fd, &info));
  DONE(POSIX, CLOSE, close(fd));
  DONE(POSIX, METADATA, unlink(name));
  return NULL;
}

static void streams(void) {
  FILE* file = fopen("text", "w");
  did(STDIO, OPEN, 0);
  for (int i = 0; i < 2000; ++i) DID(STDIO, WRITE, fprintf(file, "%d squared is %d\n", i, i * i));
  for (int i = 0; i < 50; ++i) DID(STDIO, WRITE, fwrite(block, 1, 300, file));
  DONE(STDIO, SYNC, fflush(file));
  DONE(STDIO, CLOSE, fclose(file));
  file = fopen("text", "r");
  did(STDIO, OPEN, 0);
  for (int i = 0; i < 2000; ++i) DID(STDIO, READ, strlen(fgets(block, sizeof(block), file)));
  DID(STDIO, READ, fread(block, 1, sizeof(block), file));
  DONE(STDIO, SEEK, fseek(file, 0, SEEK_SET));
  DID(STDIO, READ, fread(block, 1, 10, file));
  DONE(STDIO, CLOSE, fclose(file));
  DONE(POSIX, METADATA, unlink("text"));
}

int main(int argc, char** argv) {
  char own[64];
  if (argc < 2 || chdir(argv[1]) != 0) return 1;
  snprintf(own, sizeof(own), "rank%s", getenv("SLURM_PROCID") ? getenv("SLURM_PROCID") : "");
  DONE(POSIX, METADATA, mkdir(own, 0700));
  if (chdir(own) != 0) return 1;
  char names[4][8];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    snprintf(names[i], sizeof(names[i]), "data%d", i);
    pthread_create(&threads[i], NULL, &descriptors, names[i]);
  }
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  streams();
  struct stat info;
  DONE(POSIX, METADATA, stat("nothing", &info));
  if (chdir("..") != 0) return 1;
  DONE(POSIX, METADATA, rmdir(own));
  char line[2048] = "{";
  for (int api = 0; api < 2; ++api) {
    for (int i = 0; i < OPERATIONS; ++i) {
      const size_t at = strlen(line);
      snprintf(line + at, sizeof(line) - at, "%s\"%s %s\": [%ld, %ld]", at > 1 ? ", " : "",
               api == POSIX ? "posix" : "stdio", kNames[i], calls[api][i], bytes[api][i]);
    }
  }
  // A pipe or a file outside of that filesystem.
  dprintf(STDOUT_FILENO, "%s}\n", line);
  return 0;
}
