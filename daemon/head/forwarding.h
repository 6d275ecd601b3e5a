// Has a process of its own send the running step on, where sonde.conf says so
// (forward/follower.h): it reads the archive, so the head has no part in it and waits for nothing.
//
// It is started a moment after the step, or at its end if that comes first, and learns of the end
// of this process by a pipe that is never written to. It outlives it for some seconds at most.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <string>

#include "core/config.h"
#include "core/job.h"
#include "daemon/loop.h"

namespace sonde::head {

class Forwarding {
 public:
  // Many steps are over by then, and the first ticks are not disturbed.
  static constexpr Nanos kStartAfter = kSecond;

  Forwarding(Loop& loop, std::string config_path, const Config& config, std::string archive,
             JobDescription job, std::function<void(std::string)> note);
  ~Forwarding();
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

 private:
  void Start();
  Status Spawn();

  Loop& loop_;
  const std::string config_path_;
  const std::string archive_;
  const JobDescription job_;
  const std::function<void(std::string)> note_;
  Loop::TimerId timer_ = 0;
};

}  // namespace sonde::head
