#include "web/api/heat_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "web/route/gather.h"

namespace sonde::web {
namespace {

constexpr uint64_t kUsualRows = 256, kMostRows = 16'384;
constexpr uint64_t kMostMembers = 1u << 17;

// The hosts in the order of the description; where a daemon was started anew, the first place.
std::vector<std::string> HostsOf(const JobDescription& job) {
  std::vector<std::string> hosts;
  std::set<std::string_view> known;
  for (const NodeInfo& node : job.nodes) {
    if (!node.host.empty() && known.insert(node.host).second) hosts.push_back(node.host);
  }
  return hosts;
}

// kInvalid if the metric has no such tag.
Result<std::vector<std::string>> ValuesOf(const Profile& profile, const std::string& metric,
                                          const std::string& tag) {
  std::set<std::string> values;
  std::set<std::string> tags;
  for (const FootprintEntry& entry : profile.footprint) {
    if (entry.series.metric.name != metric) continue;
    for (const auto& [key, own] : entry.series.tags.pairs()) tags.insert(key);
    const std::string* value = entry.series.tags.Find(tag);
    if (value != nullptr) values.insert(*value);
  }
  if (values.empty()) {
    std::string able = "host, task";
    for (const std::string& key : tags) able += ", " + key;
    return Status(Code::kInvalid, fmt::format("by: expected one of {}, not '{}'", able, tag));
  }
  std::vector<std::string> all(values.begin(), values.end());
  // "nvme2n1" before "nvme10n1".
  std::sort(all.begin(), all.end(), [](const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return all;
}

// Which host, where the members are within one.
Status ReadHost(const Request& request, const Profile& profile, HeatMembers& members) {
  const std::string* host = request.Param("host");
  const bool within = members.by != kHeatHostTag && members.by != kHeatTaskTag;
  if (host == nullptr || host->empty()) {
    if (!within) return {};
    return {Code::kInvalid,
            "parameter host is missing: by=" + members.by + " shows what is within one node"};
  }
  if (!within) {
    return {Code::kInvalid, "host: only with a tag of the metric in by, not with by=" + members.by};
  }
  const auto& nodes = profile.job.nodes;
  if (std::none_of(nodes.begin(), nodes.end(),
                   [&](const NodeInfo& node) { return node.host == *host; })) {
    return {Code::kNotFound, "step " + profile.job.id.ToString() + " has no node '" + *host + "'"};
  }
  members.host = *host;
  return {};
}

Status ReadPart(const Request& request, HeatMembers& members) {
  const Result<uint64_t> first = NumberParam(request, "first", 0, 0, UINT32_MAX);
  if (!first.ok()) return first.status();
  const Result<uint64_t> count = NumberParam(request, "count", UINT32_MAX, 1, UINT32_MAX);
  if (!count.ok()) return count.status();
  const Result<uint64_t> rows = NumberParam(request, "rows", kUsualRows, 1, kMostRows);
  if (!rows.ok()) return rows.status();
  members.first = std::min(*first, members.all);
  const uint64_t chosen = std::min(*count, members.all - members.first);
  if (chosen > kMostMembers) {
    return {Code::kLimit, fmt::format("{} nodes or tasks are more than {}: ask for some of them by "
                                      "first and count",
                                      chosen, kMostMembers)};
  }
  members.here.resize(chosen);
  members.rows = std::min<uint64_t>(*rows, chosen);
  return {};
}

}  // namespace

Result<HeatMembers> ReadHeatMembers(const Request& request, const Profile& profile,
                                    const std::string& metric) {
  HeatMembers members;
  const std::string* by = request.Param("by");
  members.by = by == nullptr ? kHeatHostTag : std::string_view(*by);
  std::vector<std::string> names;  // of tasks they are numbers
  if (members.by == kHeatHostTag) {
    names = HostsOf(profile.job);
  } else if (!members.ByTask()) {
    Result<std::vector<std::string>> values = ValuesOf(profile, metric, members.by);
    if (!values.ok()) return values.status();
    names = *std::move(values);
  }
  SONDE_RETURN_IF_ERROR(ReadHost(request, profile, members));
  members.all = members.ByTask() ? profile.job.expected_tasks : names.size();
  SONDE_RETURN_IF_ERROR(ReadPart(request, members));
  for (size_t i = 0; i < members.here.size(); ++i) {
    HeatMembers::Member& one = members.here[i];
    one.name = members.ByTask() ? std::to_string(members.first + i) : names[members.first + i];
    if (!members.ByTask()) one.host = members.host.empty() ? one.name : members.host;
  }
  return members;
}

}  // namespace sonde::web
