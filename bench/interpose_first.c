/* The program that bench_interpose runs for the first calls of functions: each of 500 once. Prints
 * `NAME NANOSECONDS`, the processor time of one. The first one of all is apart, as the tables of
 * symbols are read in it. */
#include <stdio.h>
#include <time.h>

extern void (*const functions_of_nothing[500])(void); /* compiled with -finstrument-functions */

static double nanoseconds(void) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return 1e9 * (double)used.tv_sec + (double)used.tv_nsec;
}

int main(void) {
  const double begin = nanoseconds();
  functions_of_nothing[0]();
  const double one = nanoseconds();
  for (int i = 1; i < 500; ++i) functions_of_nothing[i]();
  const double end = nanoseconds();
  printf("%s_first %.0f\n", NAME, one - begin);
  printf("%s_others %.0f\n", NAME, (end - one) / 499);
  return 0;
}
