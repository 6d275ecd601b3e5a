/* Functions for the tests of libsonde_functions, compiled with -finstrument-functions: those that C
 * has. functions_process calls them. */
#include "tests/unit/instrumented.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/hundreds.h"

#define NOINLINE __attribute__((noinline))
#define BARE __attribute__((no_instrument_function))

static volatile int sink;

NOINLINE static void helper(void) { sink = sink + 1; }

NOINLINE void work(int times) {
  for (int i = 0; i < times; ++i) helper();
}

/* Longer than the value of a tag may be. */
#define LONG_NAME \
  a_function_whose_name_is_longer_than_the_value_of_a_tag_may_be_because_its_author_wanted_to_say_all_\
of_what_it_does_in_the_name_of_it
NOINLINE void LONG_NAME(void) { sink = sink + 1; }
void call_long_name(void) { LONG_NAME(); }

NOINLINE static void before_main(void) { sink = sink + 1; }
__attribute__((constructor)) BARE static void construct(void) {
  before_main();
  before_main();
}

/* --- Time */

BARE static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
BARE static void spend(double seconds) {
  for (const double end = now() + seconds; now() < end;) continue;
}

NOINLINE static void descend(int depth) {
  spend(0.002);
  if (depth > 1) descend(depth - 1);
}
NOINLINE static void outer(int depth) {
  spend(0.002);
  descend(depth);
}
BARE double time_recursion(int depth) {
  const double begin = now();
  outer(depth);
  return now() - begin;
}

static jmp_buf back;
NOINLINE static void leave(int by_jump) {
  if (by_jump) longjmp(back, 1);
  spend(0.005);
}
BARE double time_after_jumps(int jumps) {
  static volatile int left;
  for (left = 0; left < jumps;) {
    if (setjmp(back) == 0) leave(1);
    left = left + 1;
  }
  const double begin = now();
  leave(0);
  return now() - begin;
}

/* --- Processes, threads and signals */

NOINLINE static void in_child(void) { sink = sink + 1; }
BARE int fork_and_count(int times) {
  const pid_t counts = fork();
  if (counts == 0) {
    for (int i = 0; i < times; ++i) in_child();
    _exit(0);
  }
  const pid_t silent = fork();
  if (silent == 0) _exit(0);
  int status = -1, other = -1;
  waitpid(counts, &status, 0);
  waitpid(silent, &other, 0);
  return status | other;
}

NOINLINE static pid_t spend_and_fork(void) {
  spend(0.005);
  const pid_t child = fork();
  if (child == 0) in_child();
  return child;
}
BARE double time_fork(void) {
  const double begin = now();
  const pid_t child = spend_and_fork();
  if (child == 0) _exit(0);
  const double took = now() - begin;
  waitpid(child, NULL, 0);
  return took;
}

static volatile sig_atomic_t handled;
NOINLINE static void in_handler(void) { handled = handled + 1; }
BARE static void on_alarm(int signal) {
  (void)signal;
  in_handler();
}
BARE void handle_alarms(void) {
  struct sigaction action = {0};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
}
BARE int alarms_handled(void) { return handled; }

/* --- More functions than are told apart */

#define DEFINE(n) \
  NOINLINE static void many_##n(void) { sink = sink + 1; }
#define CALL(n) many_##n();
/* clang-format off */
#define EACH(f) \
  HUNDRED(f, 0) HUNDRED(f, 1) HUNDRED(f, 2) HUNDRED(f, 3) HUNDRED(f, 4) HUNDRED(f, 5) \
  HUNDRED(f, 6) HUNDRED(f, 7) HUNDRED(f, 8) HUNDRED(f, 9) HUNDRED(f, 10)
/* clang-format on */

EACH(DEFINE)
BARE void call_many(void) { EACH(CALL) }
