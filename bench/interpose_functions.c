/* For bench_interpose_calls: functions that do nothing, compiled with -finstrument-functions. */
#include "tests/unit/hundreds.h"

#define DEFINE(n) \
  __attribute__((noinline)) static void nothing_##n(void) { __asm__ volatile(""); }
#define NAME(n) nothing_##n,
#define EACH(f) HUNDRED(f, 1) HUNDRED(f, 2) HUNDRED(f, 3) HUNDRED(f, 4) HUNDRED(f, 5)

EACH(DEFINE)
void (*const functions_of_nothing[500])(void) = {EACH(NAME)};
