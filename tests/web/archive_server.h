// What the programs share that make an archive for a test in a browser and serve it as `sonde
// serve` does. A failure ends the program: there is no test without the archive.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "core/status.h"

namespace sonde::web {

// Says what failed and ends the program.
[[noreturn]] void Fail(const Status& status);

template <typename T>
T Need(Result<T> result) {
  if (!result.ok()) Fail(result.status());
  return *std::move(result);
}
inline void Need(const Status& status) {
  if (!status.ok()) Fail(status);
}

// Serves the archive in `root` and prints its address with the token. Returns when standard input
// ends; before that `told` gets each of its characters.
void ServeArchive(const std::string& root, const std::function<void(char)>& told);

}  // namespace sonde::web
