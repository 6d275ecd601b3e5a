// What has become of the daemons of a node: a file for each node in the text format of Prometheus,
// for the textfile collector of node_exporter and for `sonde doctor --quick`.
//
// slurmstepd writes it as root, into a directory that belongs to root and that nobody else may
// write to: DIRECTORY/NODE.prom, in one piece at a time. Several slurmstepds take turns by a lock;
// one that does not get it soon loses its count, rather than let a step wait.
//
// The directory is opened early: with SlurmdParameters=contain_spank the callbacks for tasks run in
// the mount namespace of the job, which may have another directory in its place.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/unique_fd.h"
#include "launcher/last_words.h"

namespace sonde::launch {

inline constexpr std::string_view kStateDirectory = "/run/sonde";

struct NodeCounters {
  static constexpr std::string_view kReasons[] = {"start",  "reported", "crashed",
                                                  "killed", "profile",  "unfinished"};
  // By FailureKind.
  struct Failures {
    uint64_t count = 0;
    uint64_t last = 0;  // when, in seconds since the epoch; 0: never
  };

  uint64_t starts = 0;  // daemons
  Failures failures[std::size(kReasons)];
};

// The file's text, and back; what is missing in the text or cannot be read counts as 0.
std::string WriteCounters(const NodeCounters& counters, std::string_view node);
NodeCounters ReadCounters(std::string_view text);

class NodeCounting {
 public:
  // Makes the directory if it is not there. An error is what Count will give.
  Status Open(const std::string& directory, const std::string& node);
  // Counts a daemon that failed or, without a failure, one that was started.
  Status Count(std::optional<FailureKind> failure, time_t now) const;
  void Close() { directory_.Reset(); }

 private:
  UniqueFd directory_;
  Status no_directory_{Code::kUnavailable, "the directory of the node's counters is not open"};
  std::string node_;
};

}  // namespace sonde::launch
