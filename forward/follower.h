// The process that sends a running step on: `sonded-head --forward CONFIG ARCHIVE KEY`, started by
// the head, of the lowest priority.
//
// It reads the step's archive as it grows, so the head does nothing for it and waits for nothing;
// samples that a receiver cannot take wait in the archive. Standard input is a pipe from the head,
// which closes when the head ends. Then it sends the rest, for at most kLinger; if samples remain,
// they have a record in the archive, and the next step's or `sonde export --pending` sends them.
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
