// Tells the user's command and webhook what alarms do, by a process for each: the head's loop waits
// for none of them.
//
// The command is the user's own, run as the user, with the alarm in its environment
// (SONDE_ALARM...) and as JSON on its standard input; no shell sees any of it. The webhook gets the
// same JSON by POST, from curl(1), which reads the URL from its standard input, so that no other
// user sees it in a list of processes. At most kMaxProcesses run at a time, each for kLimit at
// most; kMaxWaiting wait; and there are kMaxRuns in a step. A run that fails, or is left out,
// becomes a note.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "daemon/loop.h"

namespace sonde::head {

class AlarmActions {
 public:
  static constexpr size_t kMaxProcesses = 4;
  static constexpr size_t kMaxWaiting = 64;
  static constexpr size_t kMaxRuns = 512;
  static constexpr Nanos kLimit = 10 * kSecond;

  // One thing to tell.
  struct Message {
    std::vector<std::pair<std::string, std::string>> variables;  // for the environment
    std::string json;
  };

  // `command`: a program, by its path or found on the PATH, and its arguments, between blanks; ""
  // and "": nothing is told.
  AlarmActions(Loop& loop, const std::string& command, std::string webhook,
               std::function<void(std::string)> note);
  // Kills those that run.
  ~AlarmActions();
  AlarmActions(const AlarmActions&) = delete;
  AlarmActions& operator=(const AlarmActions&) = delete;

  void Tell(const Message& message);

 private:
  struct Job {
    bool webhook = false;
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> variables;
    std::string input;
  };
  struct Process {
    bool webhook = false;
    UniqueFd pidfd;
    Loop::TimerId limit = 0;
    bool killed = false;
  };

  void Enqueue(Job job);
  void StartNext();
  Status Spawn(const Job& job);
  void OnExit(pid_t pid);
  void Failed(bool webhook, const std::string& why);

  Loop& loop_;
  const std::vector<std::string> command_;
  const std::string webhook_;
  const std::function<void(std::string)> note_;
  std::deque<Job> waiting_;
  std::map<pid_t, Process> running_;
  size_t runs_ = 0;
  bool told_limit_ = false;
};

// curl's configuration for a POST of `json`.
std::string CurlConfig(const std::string& url, const std::string& json);

}  // namespace sonde::head
