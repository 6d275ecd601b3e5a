// The rank of a process that tells none.
//
// Thread safety: functions without state.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace sonde::collect {

// As an environment says: NAME=VALUE, with a zero byte behind each. -1 if it does not.
int RankInEnvironment(std::string_view environment);

// As the environment says that the process had when it began. -1 if it does not, or cannot be read:
// the process may have ended.
int RankOfPeer(const std::string& proc, pid_t pid);

}  // namespace sonde::collect
