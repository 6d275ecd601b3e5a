// What the rows of a heatmap are of: the nodes of a step, its tasks, or, within one node, what a
// tag of the metric names: its cores, GPUs, disks or network interfaces.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "profiles/model/profile.h"
#include "web/http/http.h"

namespace sonde::web {

inline constexpr std::string_view kHeatHostTag = "host", kHeatTaskTag = "task";

struct HeatMembers {
  struct Member {
    std::string name;  // the host, the rank, or the tag's value
    std::string host;  // "": a task's, which is not known yet
  };

  std::string by;            // the tag that names them
  std::string host;          // within this node; "": of all nodes
  uint64_t first = 0;        // of all members
  uint64_t all = 0;          // how many there are
  std::vector<Member> here;  // from the first one on
  uint64_t rows = 0;

  bool ByTask() const { return by == kHeatTaskTag; }
};

// By the request's parameters by, host, first, count and rows. The values of a tag are those that
// the profile has of the metric on any node, in their natural order: 2 before 10.
Result<HeatMembers> ReadHeatMembers(const Request& request, const Profile& profile,
                                    const std::string& metric);

}  // namespace sonde::web
