/* A library compiled with -finstrument-functions, which the program of the tests is linked with, or
 * loads: it calls functions before libsonde's constructors have run, or long after. */
static volatile int sink;

__attribute__((noinline)) static void when_loaded(void) { sink = sink + 1; }

__attribute__((constructor, no_instrument_function)) static void construct(void) {
  for (int i = 0; i < 3; ++i) when_loaded();
}

/* A function of that name is in the program, too. */
__attribute__((noinline)) static void helper(void) { sink = sink + 1; }

__attribute__((no_instrument_function, visibility("default"))) void SONDE_ENTRY(int times) {
  for (int i = 0; i < times; ++i) helper();
}
