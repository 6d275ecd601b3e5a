#include "daemon/launch_message.h"

#include <fmt/core.h>

#include <charconv>
#include <functional>
#include <unordered_map>

#include "core/step_environment.h"
#include "core/text/names.h"
#include "core/text/options.h"
#include "core/text/settings.h"
#include "core/text/user_tags.h"
#include "launcher/launch.h"

namespace sonde {
namespace {

namespace key = launch::key;

template <typename T>
Status ParseInto(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) {
    return {Code::kInvalid, "expected a whole number"};
  }
  return {};
}

Status ParseRole(std::string_view text, Role& role) {
  if (text == "head") return role = Role::kHead, Status();
  if (text == "node") return role = Role::kNode, Status();
  if (text == "solo") return role = Role::kSolo, Status();
  return {Code::kInvalid, "expected head, node or solo"};
}

Status ParseKey(std::string_view hex, LaunchMessage& m) {
  const Status bad(Code::kInvalid, "expected 64 hexadecimal digits");
  if (hex.size() != 2 * m.key.size()) return bad;
  for (size_t i = 0; i < m.key.size(); ++i) {
    const char* at = hex.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, m.key[i], 16);
    if (error != std::errc() || end != at + 2) return bad;
  }
  m.has_key = true;
  return {};
}

Status ParseStepLevel(std::string_view text, LaunchMessage& m) {
  m.job.level = ParseLevel(text);
  return m.job.level > 0 ? Status() : Status(Code::kInvalid, std::string(kLevelExpected));
}

Status ParsePorts(LaunchMessage& m, std::string_view text) {
  if (!ParsePortRange(text)) return {Code::kInvalid, "expected two ports such as 60000-60100"};
  m.ports = text;
  return {};
}

Status CheckPeriod(std::string_view text, LaunchMessage& m) {
  SONDE_RETURN_IF_ERROR(ParseInto(text, m.job.period));
  if (m.job.period < kMinPeriod || m.job.period > kMaxPeriod) {
    return {Code::kInvalid, std::string(kPeriodExpected)};
  }
  return {};
}

using Setter = std::function<Status(LaunchMessage&, std::string_view)>;

Setter Text(std::string LaunchMessage::*field) {
  return [field](LaunchMessage& m, std::string_view v) { return m.*field = v, Status(); };
}
Setter JobText(std::string JobDescription::*field) {
  return [field](LaunchMessage& m, std::string_view v) { return m.job.*field = v, Status(); };
}
template <typename T>
Setter Number(T LaunchMessage::*field) {
  return [field](LaunchMessage& m, std::string_view v) { return ParseInto(v, m.*field); };
}
Setter JobNumber(uint32_t JobDescription::*field) {
  return [field](LaunchMessage& m, std::string_view v) { return ParseInto(v, m.job.*field); };
}

Status ParseTags(LaunchMessage& message, std::string_view text) {
  UserTags& tags = message.job.tags;
  const bool valid = ForEachUserTag(text, [&](std::string_view name, std::string_view value) {
    if (tags.size() < kMaxUserTags) tags[std::string(name)] = value;
  });
  return valid ? Status() : Status(Code::kInvalid, std::string(kUserTagsExpected));
}

Status ParseNote(LaunchMessage& message, std::string_view text) {
  constexpr size_t kMost = 8;
  if (message.notes.size() < kMost) message.notes.emplace_back(text.substr(0, kMaxTextLength));
  return {};
}

Status ParseVariable(LaunchMessage& message, std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  auto& kept = message.job.environment;
  if (name.size() == entry.size() || !KeepsVariable(name) || kept.size() == kMaxKeptVariables) {
    return {};
  }
  kept.emplace(name, entry.substr(name.size() + 1, kMaxKeptValue));
  return {};
}

std::unordered_map<std::string_view, Setter> MakeSetters() {
  using M = LaunchMessage;
  using J = JobDescription;
  using V = std::string_view;
  return {
      {key::kRole, [](M& m, V v) { return ParseRole(v, m.role); }},
      {key::kJob, [](M& m, V v) { return m.job.id.job = v, Status(); }},
      {key::kStep, [](M& m, V v) { return m.job.id.step = v, Status(); }},
      {key::kArrayJob, JobText(&J::array_job)},
      {key::kArrayTask, JobText(&J::array_task)},
      {key::kHetJob, JobText(&J::het_job)},
      {key::kCluster, JobText(&J::cluster)},
      {key::kJobName, JobText(&J::name)},
      {key::kUser, JobText(&J::user)},
      {key::kUid, JobNumber(&J::uid)},
      {key::kAccount, JobText(&J::account)},
      {key::kPartition, JobText(&J::partition)},
      {key::kCommand, JobText(&J::command)},
      {key::kWorkDir, JobText(&J::workdir)},
      {key::kHome, Text(&M::home)},
      {key::kNodes, JobNumber(&J::expected_nodes)},
      {key::kJobNodes, JobNumber(&J::job_nodes)},
      {key::kTasks, JobNumber(&J::expected_tasks)},
      {key::kLocalTasks, Number(&M::tasks_here)},
      {key::kNodeId, Number(&M::node_id)},
      {key::kHost, Text(&M::host)},
      {key::kHosts, Text(&M::hosts)},
      {key::kTopology, Text(&M::topology)},
      {key::kTopologyPattern, Text(&M::topology_pattern)},
      {key::kLevel, [](M& m, V v) { return ParseStepLevel(v, m); }},
      {key::kPeriod, [](M& m, V v) { return CheckPeriod(v, m); }},
      {key::kEventList, Text(&M::events)},
      {key::kGpus, Text(&M::gpus)},
      {key::kMemory, Number(&M::memory)},
      {key::kKey, [](M& m, V v) { return ParseKey(v, m); }},
      {key::kHeadHost, Text(&M::head_host)},
      {key::kHeadPort, Number(&M::head_port)},
      {key::kPorts, ParsePorts},
      {key::kSocket, Text(&M::socket)},
      {key::kConfig, Text(&M::config_path)},
      {key::kColumns, Number(&M::columns)},
      {key::kVariablesCome, [](M& m, V v) { return m.variables_come = v == "later", Status(); }},
      {key::kArchive, Text(&M::archive)},
      {key::kAlarms, Text(&M::alarms)},
      {key::kTags, ParseTags},
      {key::kCalls, [](M& m, V v) { return m.calls = preload::CallsOf(v), Status(); }},
      {key::kNote, ParseNote},
      {key::kEnvironment, ParseVariable},
      {key::kTimeLimit, Number(&M::time_limit)},
      {key::kBegun, Number(&M::begun)},
      {key::kAhead, Number(&M::ahead)},
      {key::kPlace, Number(&M::place)},
      {key::kBefore, Text(&M::before)},
      {key::kStart, [](M& m, V v) { return m.acting = true, ParseInto(v, m.job.start); }},
  };
}

Status CheckComplete(const LaunchMessage& m) {
  const bool networked = m.role != Role::kSolo;
  if (m.job.id.job.empty()) return {Code::kInvalid, "launch message: job is missing"};
  if (m.job.level == 0) return {Code::kInvalid, "launch message: level is missing"};
  if (m.host.empty()) return {Code::kInvalid, "launch message: host is missing"};
  if (networked && !m.has_key) return {Code::kInvalid, "launch message: key is missing"};
  if (m.role == Role::kNode && (m.head_host.empty() || m.head_port == 0)) {
    return {Code::kInvalid, "launch message: head_host or head_port is missing"};
  }
  return {};
}

}  // namespace

Result<LaunchMessage> ParseLaunchMessage(std::string_view body) {
  static const auto setters = MakeSetters();
  LaunchMessage message;
  Status failed;
  launch::ForEach(body, [&](std::string_view name, std::string_view value) {
    const auto setter = setters.find(name);
    if (setter == setters.end() || !failed.ok()) return;
    failed = setter->second(message, value).Within(fmt::format("launch message: {}", name));
  });
  if (failed.ok()) failed = CheckComplete(message);
  if (!failed.ok()) return failed;
  message.text = body;
  return message;
}

}  // namespace sonde
