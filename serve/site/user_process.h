// The process that serves one user's archive, as that user: it reads only what the kernel lets him
// read. Connections come from the door, each with the head of one request.
//
// Its first message is "ok TOKEN", the token that heads must have, or "error WHY". It ends when the
// door closes the other end. What is in an archive is its user's, and so is the harm: a process
// that hangs as it opens it or as it ends is killed by the kernel (kMostToOpen, kMostToEnd), one
// that wants more than kMostMemory gets none, and where the machine has none left it goes before
// others.
//
// Thread safety: functions of a process of its own; BecomeUser and ServeUser before other threads.
#pragma once

#include <string>

#include "core/config.h"
#include "core/status.h"
#include "daemon/loop.h"
#include "serve/site/accounts.h"

namespace sonde::site {

inline constexpr int kMostToOpen = 25;  // seconds; the door waits for 20
inline constexpr int kMostToEnd = 60;
inline constexpr size_t kMostMemory = size_t{2} << 30;  // of its own, bytes

// Becomes the user for good: uid, groups and environment; no debugger may look in, since requests
// of administrators pass through here.
Status BecomeUser(const Account& account);
// Serves until the door is gone. Gives the exit code.
int ServeUser(const Account& account, const Config& config, UniqueFd door);

// A token that nobody can guess.
Result<std::string> RandomToken();

}  // namespace sonde::site
