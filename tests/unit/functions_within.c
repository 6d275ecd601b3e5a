/* Stands before libsonde: while a_function_whose_... is registered, a hundred functions are called
 * that were compiled with -finstrument-functions, as a signal handler might at that moment. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "libclient/sonde.h"
#include "tests/unit/hundreds.h"

static volatile int sink;

#define DEFINE(n) \
  __attribute__((noinline)) static void within_##n(void) { sink = sink + 1; }
#define CALL(n) within_##n();
HUNDRED(DEFINE, 1)

__attribute__((no_instrument_function)) sonde_metric_t* sonde_counter(const char* name,
                                                                      const char* unit,
                                                                      const char* help, int level,
                                                                      const sonde_tag_t* tags,
                                                                      size_t tag_count) {
  sonde_metric_t* (*next)(const char*, const char*, const char*, int, const sonde_tag_t*, size_t);
  *(void**)&next = dlsym(RTLD_NEXT, "sonde_counter");
  const char* const registered = tag_count > 0 ? tags[0].value : "";
  if (strncmp(registered, "a_function_whose_", strlen("a_function_whose_")) == 0) {
    HUNDRED(CALL, 1)
  }
  return next(name, unit, help, level, tags, tag_count);
}
