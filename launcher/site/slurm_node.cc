#include "launcher/site/slurm_node.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>

#include "core/text/ascii.h"
#include "core/text/cpu_list.h"
#include "launcher/read_file.h"
#include "launcher/site/site_policy.h"
#include "launcher/site/slurm_partitions.h"

namespace sonde::launch {
namespace {

constexpr uint32_t kMostCores = 65536;

// "01-03" or "7", the digits of a name behind what they follow; as many digits as the list has.
bool InHostRange(std::string_view range, std::string_view digits) {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  uint32_t first = 0, last = 0, value = 0;
  if (!ParseNumber(low, first) || !ParseNumber(high, last) || !ParseNumber(digits, value)) {
    return false;
  }
  const bool width = digits.size() >= low.size() && digits.size() <= high.size() &&
                     (digits.size() == low.size() || digits.front() != '0');
  return width && first <= value && value <= last;
}

bool InHostRanges(std::string_view ranges, std::string_view digits) {
  for (;;) {
    const size_t comma = ranges.find(',');
    if (InHostRange(ranges.substr(0, comma), digits)) return true;
    if (comma == std::string_view::npos) return false;
    ranges.remove_prefix(comma + 1);
  }
}

// One name of a list, which may have brackets.
bool NamesHost(std::string_view pattern, std::string_view host) {
  const size_t open = pattern.find('[');
  if (open == std::string_view::npos) return pattern == host;
  const size_t close = pattern.find(']', open);
  if (close == std::string_view::npos || host.substr(0, open) != pattern.substr(0, open)) {
    return false;
  }
  const std::string_view ranges = pattern.substr(open + 1, close - open - 1);
  for (size_t end = open; end < host.size();) {
    if (std::isdigit(static_cast<unsigned char>(host[end])) == 0) break;
    ++end;
    if (InHostRanges(ranges, host.substr(open, end - open)) &&
        NamesHost(pattern.substr(close + 1), host.substr(end))) {
      return true;
    }
  }
  return false;
}

// What lines of nodes say of their processors; those of NodeName=DEFAULT hold for the lines below.
struct Shape {
  std::optional<uint32_t> cpus, boards, sockets, cores, threads, spec_cores;
  std::string spec_list;

  void Take(const SlurmSetting& setting) {
    const struct {
      const char* name;
      std::optional<uint32_t>& value;
    } numbers[] = {{"CPUs", cpus},
                   {"Procs", cpus},
                   {"Boards", boards},
                   {"Sockets", sockets},
                   {"SocketsPerBoard", sockets},
                   {"CoresPerSocket", cores},
                   {"ThreadsPerCore", threads},
                   {"CoreSpecCount", spec_cores}};
    for (const auto& [name, value] : numbers) {
      uint32_t number = 0;
      if (IsSlurmSetting(setting, name) && ParseNumber(setting.second, number)) {
        value = std::min(number, kMostCores);
      }
    }
    if (IsSlurmSetting(setting, "CpuSpecList")) spec_list = setting.second;
  }

  // Without sockets and cores each CPU is a core to Slurm, and without CPUs there is one.
  uint32_t AllCores() const {
    if (!sockets && !cores) return cpus.value_or(1) / std::max(threads.value_or(1), 1u);
    const uint64_t all = uint64_t{boards.value_or(1)} * sockets.value_or(1) * cores.value_or(1);
    return static_cast<uint32_t>(std::min<uint64_t>(all, kMostCores));
  }
  uint32_t Specialized() const {
    if (spec_cores) return *spec_cores;
    const auto listed = static_cast<uint32_t>(CountListed(spec_list));
    const uint32_t each = std::max(threads.value_or(1), 1u);
    return listed / each;
  }
};

// %n is the node's name, %h the host's.
std::string FillIn(std::string path, std::string_view node) {
  for (size_t at = 0; (at = path.find('%', at)) != std::string::npos && at + 1 < path.size();) {
    std::string with;
    if (path[at + 1] == 'n') {
      with = node;
    } else if (path[at + 1] == 'h') {
      char host[256] = "";
      ::gethostname(host, sizeof(host) - 1);
      with = std::string_view(host).substr(0, std::string_view(host).find('.'));
    } else {
      at += 2;
      continue;
    }
    path.replace(at, 2, with);
    at += with.size();
  }
  return path;
}

}  // namespace

bool NamesNode(std::string_view list, std::string_view node) {
  size_t begin = 0;
  bool in_brackets = false;
  for (size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') in_brackets = true;
    if (at < list.size() && list[at] == ']') in_brackets = false;
    if (at < list.size() && (list[at] != ',' || in_brackets)) continue;
    if (NamesHost(list.substr(begin, at - begin), node)) return true;
    begin = at + 1;
  }
  return false;
}

SlurmOnNode ReadSlurmOnNode(const std::string& path, std::string_view node, const ReadConf& read) {
  SlurmOnNode found;
  Shape all;
  SlurmNetworkLines network;
  SlurmPartitions partitions;
  found.complete = ReadSlurmConf(path, read, [&](SlurmLine line) {
    network.Take(line);
    partitions.Take(line);
    if (IsSlurmSetting(line.front(), "SlurmdPidFile")) {
      found.node.slurmd_pid_file = FillIn(std::string(line.front().second), node);
    }
    if (!IsSlurmSetting(line.front(), "NodeName")) return;
    const bool is_default = EqualsIgnoringCase(line.front().second, "DEFAULT");
    if (!is_default && !NamesNode(line.front().second, node)) return;
    Shape one = all;
    for (const SlurmSetting& setting : line) one.Take(setting);
    if (is_default) {
      all = one;
      return;
    }
    found.node.cores = one.AllCores();
    found.node.specialized = one.Specialized();
  });
  found.node.cores_are_shared = !found.complete.ok() || partitions.ShareCores(node);
  found.network = network.network();
  return found;
}

SlurmOnNode ReadSlurmOnNode(const Environment& environment, std::string_view node) {
  const std::string path = FindSlurmConf(environment);
  if (path.empty()) return {.complete = {Code::kNotFound, "there is no slurm.conf"}};
  return ReadSlurmOnNode(path, node, ReadSlurmConfFile);
}

std::string SlurmdProcessors(const SlurmNode& node, const std::string& proc) {
  const Result<std::string> pid = ReadFile(node.slurmd_pid_file);
  if (!pid.ok()) return "";
  const std::string_view digits = std::string_view(*pid).substr(0, pid->find_first_of(" \n"));
  uint32_t number = 0;
  if (!ParseNumber(digits, number)) return "";
  const Result<std::string> status = ReadFile(proc + "/" + std::string(digits) + "/status");
  if (!status.ok()) return "";
  constexpr std::string_view kAllowed = "\nCpus_allowed_list:\t";
  const size_t at = status->find(kAllowed);
  if (at == std::string::npos) return "";
  const size_t begin = at + kAllowed.size();
  return status->substr(begin, status->find('\n', begin) - begin);
}

}  // namespace sonde::launch
