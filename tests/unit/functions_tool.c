/* Another tool with hooks of its own, which stands behind ours or in their place. */
#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

static int enters, exits;

EXPORTED void __cyg_profile_func_enter(void* function, void* site);
EXPORTED void __cyg_profile_func_exit(void* function, void* site);

void __cyg_profile_func_enter(void* function, void* site) {
  (void)function;
  (void)site;
  ++enters;
}
void __cyg_profile_func_exit(void* function, void* site) {
  (void)function;
  (void)site;
  ++exits;
}

EXPORTED int tool_enters(void) { return enters; }
EXPORTED int tool_exits(void) { return exits; }

__attribute__((destructor)) static void tell(void) {
  if (getenv("TOOL_TELLS") != NULL) printf("tool %d %d\n", enters, exits);
}
