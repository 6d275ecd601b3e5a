// Logging: one line per event, to stderr, to a file or to nowhere; and to the system's log as well.
//
// A line says what happened, to what, why, and what follows. Lines look like
//   2026-11-21T03:07:00.123Z sonded[4711] warning: node n3: link lost: Connection reset by peer
//
// A message is one line whatever stands in it, and shows no control characters: it may quote what a
// user, an application or a peer has given (core/text/printable.h). Of a long one the beginning is
// written.
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::log {

enum class Level : unsigned char { kDebug, kInfo, kWarning, kError };

inline constexpr const char* kSystemLog = "/dev/log";

// Sets where lines go from now on: to the end of a file (0600), or to stderr for "". Before the
// first call, lines from kInfo on go to stderr. Nothing is buffered. The file may lie in a
// directory in which everybody may create files, so it must be a regular one of this user with one
// name; links are not followed.
Status Open(std::string_view program, const std::string& path, Level level);
// From now on lines go to no file and not to stderr.
void Discard(std::string_view program);
// From now on, warnings and errors also go to the system's log, which listens on the datagram
// socket at `path`. A line that it does not take at once is lost.
void AddSystemLog(const std::string& path = kSystemLog);
Result<Level> ParseLevel(std::string_view text);
bool Enabled(Level level);
void Write(Level level, std::string_view message);

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
