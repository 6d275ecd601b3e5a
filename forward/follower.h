// The process that sends a running step on: `sonded-head --forward CONFIG ARCHIVE KEY`, started by
// the head, of the lowest priority.
//
// It reads the step's archive as it grows, so the head does nothing for it and waits for nothing,
// and what a receiver cannot take waits in the archive. Standard input is a pipe from the head: its
// end is the head's. Then the rest is sent, for at most kLinger; what remains has a record in the
// archive and is sent by the next step's, or by `sonde export --pending`.
//
// Thread safety: RunFollower is a program; it has a thread for each destination.
#pragma once

#include <string>

#include "core/time.h"

namespace sonde::forward {

inline constexpr Nanos kPoll = 5 * kSecond;
inline constexpr Nanos kLinger = 10 * kSecond;

// Gives the exit code.
int RunFollower(const std::string& config_path, const std::string& archive, const std::string& key);

}  // namespace sonde::forward
