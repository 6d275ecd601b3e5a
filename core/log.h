// Logging: one line per event, to stderr or to a file.
//
// A line says what happened, to what, why, and what follows. Lines look like
//   2026-11-21T03:07:00.123Z sonded[4711] warning: node n3: link lost: Connection reset by peer
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::log {

enum class Level : unsigned char { kDebug, kInfo, kWarning, kError };

// Sets where lines go from now on: to the end of a file (0600), or to stderr for "". Before the
// first call, lines from kInfo on go to stderr. Nothing is buffered.
Status Open(std::string_view program, const std::string& path, Level level);
Result<Level> ParseLevel(std::string_view text);
bool Enabled(Level level);
void Write(Level level, std::string_view line);

template <typename... A>
void Debug(fmt::format_string<A...> f, A&&... a) {
  if (Enabled(Level::kDebug)) Write(Level::kDebug, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void Info(fmt::format_string<A...> f, A&&... a) {
  if (Enabled(Level::kInfo)) Write(Level::kInfo, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void Warning(fmt::format_string<A...> f, A&&... a) {
  if (Enabled(Level::kWarning)) Write(Level::kWarning, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void Error(fmt::format_string<A...> f, A&&... a) {
  if (Enabled(Level::kError)) Write(Level::kError, fmt::format(f, std::forward<A>(a)...));
}

}  // namespace sonde::log
