// The only process of a site's server that stays root. It reads nothing that clients send: the door
// sends it a user's name, and it starts a process that becomes that user (user_process.h); the door
// gets the other end of that process's socket.
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
  // Runs at most `most` processes at a time, besides those that end. The references must outlive
  // it.
  Starter(const Config& config, const Accounts& accounts, size_t most)
      : config_(config), accounts_(accounts), most_(most) {}

  // Runs until one of the blocked signals comes (true), or the door closes its end.
  bool Run(const UniqueFd& door, const sigset_t& signals);

 private:
  void Start(const std::string& user, const UniqueFd& door);
  Result<UniqueFd> Fork(const Account& account, const UniqueFd& door);
  void Reap();
  void KeepFew(uid_t user);

  const Config& config_;
  const Accounts& accounts_;
  const size_t most_;
  struct Running {
    pid_t pid;
    uid_t user;
  };
  std::vector<Running> running_;  // the newest first
};

}  // namespace sonde::site
