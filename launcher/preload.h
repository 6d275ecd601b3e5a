// LD_PRELOAD of an application whose calls are counted: libsonde and the interposers, before the
// user's own libraries.
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
inline constexpr std::string_view kFunctions = "libsonde_functions.so.1";
inline constexpr std::string_view kAll[] = {kClient, kMpi, kIo, kFunctions};

// Whose calls are counted.
struct Calls {
  bool mpi = false;
  bool io = false;         // for files
  bool functions = false;  // of the program, where it was compiled for that

  bool any() const { return mpi || io || functions; }
  bool Counts(std::string_view library) const;
};

// Each kind of calls: its name, the library that counts it, and whether it does.
struct Kind {
  std::string_view name;
  std::string_view library;
  bool Calls::*counted;
};
inline constexpr Kind kKinds[] = {{"mpi", kMpi, &Calls::mpi},
                                  {"io", kIo, &Calls::io},
                                  {"functions", kFunctions, &Calls::functions}};

inline bool Calls::Counts(std::string_view library) const {
  for (const Kind& kind : kKinds) {
    if (library == kind.library) return this->*kind.counted;
  }
  return false;
}

// "mpi,io", as a launch message has them.
inline std::string NamesOf(const Calls& calls) {
  std::string names;
  for (const Kind& kind : kKinds) {
    if (calls.*kind.counted) names.append(names.empty() ? "" : ",").append(kind.name);
  }
  return names;
}

// The reverse; names of a newer release are passed over.
inline Calls CallsOf(std::string_view names) {
  Calls calls;
  while (!names.empty()) {
    const size_t end = names.find(',');
    const std::string_view name = names.substr(0, end);
    for (const Kind& kind : kKinds) {
      if (name == kind.name) calls.*kind.counted = true;
    }
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  }
  return calls;
}

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
    for (const std::string_view ours : kAll) {
      if (entry == directory + "/" + std::string(ours)) return;
    }
    if (!kept.empty()) kept += ':';
    kept += entry;
  });
  return kept;
}

// The value with the libraries asked for. A missing library is left out, for the dynamic linker
// would complain of it in every process; if libsonde is missing, nothing is added.
inline std::string With(std::string_view value, const std::string& directory, const Calls& calls) {
  std::string kept = Without(value, directory);
  if (directory.find_first_of(": ") != std::string::npos) return kept;
  std::string added;
  for (const std::string_view ours : kAll) {
    const std::string path = directory + "/" + std::string(ours);
    if (calls.Counts(ours) && ::access(path.c_str(), R_OK) == 0) added += ":" + path;
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
