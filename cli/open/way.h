// The way from a person's machine to the page of a running step, which its head serves on its own
// host only.
//
// Thread safety: functions without state, but LookAround, which reads the environment.
#pragma once

#include <string>

#include "profiles/live/live_steps.h"

namespace sonde::cli {

// Where the command runs.
struct Here {
  std::string user;
  std::string host;
  // Where the job was submitted that the command runs in; "" outside of jobs. From elsewhere a
  // compute node is reached through it.
  std::string submit_host;
  bool over_ssh = false;  // somebody logged in from another machine
  bool display = false;   // a browser can be shown
};
Here LookAround(const std::string& user);

struct Way {
  std::string url;  // with the token, which is a password
  bool is_here = false;
  // To be run on the person's own machine, for the address to lead to the head.
  std::string ssh;
};
Way WayTo(const Endpoint& endpoint, const Here& here);

// All of it in words.
std::string Told(const Way& way, const Endpoint& endpoint);

}  // namespace sonde::cli
