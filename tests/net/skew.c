/* Preloaded into a daemon: its wall clock is off by SKEW_NS nanoseconds. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long Skew(void) {
  static long long skew;
  static int known;
  if (!known) {
    const char* text = getenv("SKEW_NS");
    skew = text == NULL ? 0 : atoll(text);
    known = 1;
  }
  return skew;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return 0;
  const long long now = time->tv_sec * 1000000000LL + time->tv_nsec + Skew();
  time->tv_sec = now / 1000000000LL;
  time->tv_nsec = now % 1000000000LL;
  return 0;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
