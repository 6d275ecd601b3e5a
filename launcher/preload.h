// LD_PRELOAD of an application whose MPI or I/O is watched: libsonde and the interposers, before
// the user's own libraries.
//
// Used by the plugin on each node and by `sonde run`. Header-only and free of dependencies: it is
// compiled into spank_sonde.so.
//
// Thread safety: functions without state.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace sonde::preload {

inline constexpr char kVariable[] = "LD_PRELOAD";

// In the directory of libraries. libsonde comes first: the interposers do nothing without it.
inline constexpr std::string_view kClient = "libsonde.so.1";
inline constexpr std::string_view kMpi = "sonde/libsonde-mpi.so";
inline constexpr std::string_view kIo = "sonde/libsonde-io.so";

// Calls f(entry) with every library of a LD_PRELOAD: colons and blanks stand between them.
template <typename F>
void ForEach(std::string_view value, F&& f) {
  while (!value.empty()) {
    const size_t end = value.find_first_of(": ");
    if (end != 0) f(value.substr(0, end));
    if (end == std::string_view::npos) return;
    value.remove_prefix(end + 1);
  }
}

// The value without our libraries.
inline std::string Without(std::string_view value, const std::string& directory) {
  std::string kept;
  ForEach(value, [&](std::string_view entry) {
    for (const std::string_view ours : {kClient, kMpi, kIo}) {
      if (entry == directory + "/" + std::string(ours)) return;
    }
    if (!kept.empty()) kept += ':';
    kept += entry;
  });
  return kept;
}

// The value with the libraries asked for. A missing library is left out, for the dynamic linker
// would complain of it in every process; if libsonde is missing, nothing is added.
inline std::string With(std::string_view value, const std::string& directory, bool mpi, bool io) {
  std::string kept = Without(value, directory);
  if (directory.find_first_of(": ") != std::string::npos) return kept;
  std::string added;
  for (const std::string_view ours : {kMpi, kIo}) {
    const std::string path = directory + "/" + std::string(ours);
    if ((ours == kMpi ? mpi : io) && ::access(path.c_str(), R_OK) == 0) added += ":" + path;
  }
  const std::string client = directory + "/" + std::string(kClient);
  if (added.empty() || ::access(client.c_str(), R_OK) != 0) return kept;
  return client + added + (kept.empty() ? "" : ":") + kept;
}

// A program built with GCC's address sanitizer ends at once if its run-time library is not loaded
// first, unless this variable allows it. The function adds that to the variable's value.
inline constexpr char kSanitizerVariable[] = "ASAN_OPTIONS";
inline std::string SanitizerOptions(std::string_view value) {
  constexpr std::string_view kOption = "verify_asan_link_order";
  if (value.find(kOption) != std::string_view::npos) return std::string(value);
  std::string all = std::string(kOption) + "=0";
  if (!value.empty()) all.append(":").append(value);
  return all;
}

}  // namespace sonde::preload
