// Linked into sonded and sonde where they are built with sanitizers.
//
// sonded starts with a clean environment and stderr on /dev/null, so what the sanitizers find goes
// to files, which the tests on a cluster look at; and it ends without running destructors, so leaks
// are looked for there.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

extern "C" {

// libfabric's libraries keep what they found out about devices.
[[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:libefa.so\n";
}

#ifdef SONDE_SANITIZER_REPORTS
#define SONDE_LOG "log_path=" SONDE_SANITIZER_REPORTS "/sonded"

[[gnu::visibility("default")]] const char* __asan_default_options() {
  return SONDE_LOG ":detect_stack_use_after_return=1";
}
[[gnu::visibility("default")]] const char* __ubsan_default_options() {
  return SONDE_LOG ":print_stacktrace=1";
}
[[gnu::visibility("default")]] const char* __tsan_default_options() {
  return SONDE_LOG ":second_deadlock_stack=1";
}

#ifdef __SANITIZE_ADDRESS__
void _Exit(int status) noexcept {
  // The leak check looks at this process as a debugger would.
  prctl(PR_SET_DUMPABLE, 1);
  __lsan_do_recoverable_leak_check();
  _exit(status);
}
#endif
#endif

}  // extern "C"
