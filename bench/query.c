/* The program of bench/query.py: a task of a step that asks about the last minute of its own step,
 * by libsonde and over the head's HTTP, taking turns.
 *
 *   query ENDPOINT WARM_UP_SECONDS ROUNDS METRIC
 *
 * ENDPOINT is a file with the head's host, port and token, once it is there. Ranks other than 0
 * wait until rank 0 removes it. Prints lines `round NAME MICROSECONDS`.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libclient/sonde_query.h"

enum { PATIENCE_MS = 10000, BUFFER = 1 << 20 };

static const char* metric;
static const char* endpoint;

static void fail(const char* what) {
  fprintf(stderr, "bench query: %s\n", what);
  unlink(endpoint); /* the other ranks wait for that */
  exit(1);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void ask(sonde_query_t* query, int flags) {
  const sonde_question_t question = {.metric = metric,
                                     .aggregator = "avg",
                                     .downsample = "1s-avg",
                                     .flags = flags,
                                     .last_seconds = 60};
  sonde_result_t* result;
  if (sonde_query_get(query, &question, PATIENCE_MS, &result) != SONDE_OK) {
    fail(sonde_query_error(query));
  }
  const size_t wanted = flags == 0 ? 1 : 4;
  if (result->series_count != wanted || result->series[0].point_count < 50) fail("a short answer");
  sonde_result_free(result);
}

static int connect_to(const char* host, const char* port) {
  struct addrinfo* found;
  const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  if (getaddrinfo(host, port, &hints, &found) != 0) fail("cannot resolve the head");
  const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) fail("cannot connect to the head");
  freeaddrinfo(found);
  return fd;
}

/* One request over a connection that stays open; the answer is read and not looked into. */
static void http(int fd, const char* token, const char* by_host) {
  static char buffer[BUFFER];
  char body[1024];
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const long long now_ms = 1000LL * t.tv_sec + t.tv_nsec / 1000000;
  const int size = snprintf(body, sizeof(body),
                            "{\"start\":%lld,\"end\":%lld,\"queries\":[{\"metric\":\"%s\","
                            "\"aggregator\":\"avg\",\"downsample\":\"1s-avg\"%s}]}",
                            now_ms - 60000, now_ms, metric, by_host);
  const int sent = snprintf(buffer, sizeof(buffer),
                            "POST /api/query HTTP/1.1\r\nHost: head\r\nAuthorization: Bearer %s\r\n"
                            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                            token, size, body);
  if (write(fd, buffer, (size_t)sent) != sent) fail("cannot send to the head");
  size_t got = 0, wanted = BUFFER - 1;
  while (got < wanted) {
    const ssize_t more = read(fd, buffer + got, BUFFER - 1 - got);
    if (more <= 0) fail("the head's connection ended");
    got += (size_t)more;
    buffer[got] = '\0';
    const char* end = strstr(buffer, "\r\n\r\n");
    const char* length = strcasestr(buffer, "content-length:");
    if (end != NULL && length != NULL && length < end) {
      wanted = (size_t)(end + 4 - buffer) + (size_t)atol(length + strlen("content-length:"));
    }
  }
  if (strncmp(buffer, "HTTP/1.1 200", 12) != 0) fail(buffer);
}

int main(int argc, char** argv) {
  char host[256], port[16], token[128];
  struct stat info;
  if (argc != 5) return 2;
  endpoint = argv[1];
  metric = argv[4];
  while (stat(argv[1], &info) != 0) usleep(50000);
  if (strcmp(getenv("SLURM_PROCID"), "0") != 0) {
    while (stat(argv[1], &info) == 0) usleep(500000);
    return 0;
  }
  FILE* file = fopen(argv[1], "r");
  if (file == NULL || fscanf(file, "%255s %15s %127s", host, port, token) != 3) fail("no endpoint");
  fclose(file);
  sleep((unsigned)atoi(argv[2]));
  sonde_query_t* query = sonde_query_open(PATIENCE_MS, NULL);
  if (query == NULL) fail("no daemon to ask");
  const int fd = connect_to(host, port);
  const char* by_host =
      ",\"filters\":[{\"type\":\"wildcard\",\"tagk\":\"host\",\"filter\":\"*\",\"groupBy\":true}]";
  const int rounds = atoi(argv[3]);
  for (int round = 0; round < rounds + 10; ++round) {
    /* In turn, and every second time the other way round: what comes after a pause is slower. */
    static const char* const names[] = {"job", "job_http", "host", "host_http"};
    for (int turn = 0; turn < 4; ++turn) {
      const int what = round % 2 == 0 ? turn : 3 - turn;
      const double start = now_us();
      if (what % 2 == 0) {
        ask(query, what == 0 ? 0 : SONDE_BY_HOST);
      } else {
        http(fd, token, what == 1 ? "" : by_host);
      }
      if (round >= 10) printf("round %s %.1f\n", names[what], now_us() - start);
    }
    usleep(2000);
  }
  sonde_query_close(query);
  unlink(argv[1]);
  return 0;
}
