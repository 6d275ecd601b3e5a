/* A program that knows how often it calls its functions, for test_functions.py. Compiled with
 * -finstrument-functions.
 *
 *   functions_work CALLS
 */
#include <stdlib.h>

static volatile long done;

__attribute__((noinline)) static void step(void) { done = done + 1; }

__attribute__((noinline)) void solve(long calls) {
  for (long i = 0; i < calls; ++i) step();
}

int main(int argc, char** argv) {
  const char* const rank = getenv("SLURM_PROCID");
  /* Each rank another number. */
  const long calls = (argc > 1 ? strtol(argv[1], NULL, 10) : 1) *
                     (1 + (rank == NULL ? 0 : strtol(rank, NULL, 10)));
  solve(calls);
  solve(calls);
  return done == 2 * calls ? 0 : 1;
}
