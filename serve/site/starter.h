// The one process of a site's server that stays root. It reads nothing of what clients send: the
// door tells it a user's name, and it starts a process that becomes that user (user_process.h) and
// whose end the door gets.
//
// Thread safety: a process with one thread.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "core/config.h"
#include "serve/site/accounts.h"
#include "serve/site/messages.h"

namespace sonde::site {

class Starter {
 public:
  // At most `most` processes at a time. The references outlive it.
  Starter(const Config& config, const Accounts& accounts, size_t most)
      : config_(config), accounts_(accounts), most_(most) {}

  // Until one of the signals comes, which are blocked (true), or the door closes its end.
  bool Run(const UniqueFd& door, const sigset_t& signals);

 private:
  void Start(const std::string& user, const UniqueFd& door);
  Result<UniqueFd> Fork(const Account& account, const UniqueFd& door);
  void Reap();

  const Config& config_;
  const Accounts& accounts_;
  const size_t most_;
  std::vector<pid_t> running_;
};

}  // namespace sonde::site
