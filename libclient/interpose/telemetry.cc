#include "libclient/interpose/telemetry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text/options.h"
#include "libclient/interpose/task_prolog.h"

namespace sonde::interpose {
namespace {

// Not by stdio: it may be interposed, too.
void Say(const char* library, const char* text) {
  const char* debug = secure_getenv("SONDE_DEBUG");
  if (debug == nullptr || strcmp(debug, "1") != 0) return;
  char line[160];
  size_t size = 0;
  for (const char* part : {library, ": ", text, "\n"}) {
    while (*part != '\0' && size < sizeof(line)) line[size++] = *part++;
  }
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, line, size);
}

}  // namespace

bool Wanted(const char* library) {
  const char* socket = secure_getenv("SONDE_SOCKET");
  if (socket == nullptr || *socket == '\0') {
    Say(library, "no telemetry was asked for (SONDE_SOCKET is not set)");
    return false;
  }
  if (IsTaskProlog()) {
    Say(library, "this is a TaskProlog, not a task");
    return false;
  }
  if (&sonde_init == nullptr || &sonde_counter == nullptr || &sonde_add_slow_ == nullptr) {
    Say(library, "libsonde.so.1 is not loaded: preload it, too");
    return false;
  }
  return true;
}

int StepLevel() {
  const char* text = secure_getenv("SONDE_LEVEL");
  const int level = text == nullptr ? -1 : ParseLevel(text);
  return level < 0 ? 4 : level;
}

}  // namespace sonde::interpose
