#include "core/job.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sonde {
namespace {

constexpr std::array<std::pair<EndState, std::string_view>, 9> kStates = {{
    {EndState::kRunning, "running"},
    {EndState::kCompleted, "completed"},
    {EndState::kFailed, "failed"},
    {EndState::kOutOfMemory, "out_of_memory"},
    {EndState::kCancelled, "cancelled"},
    {EndState::kTimeout, "timeout"},
    {EndState::kPreempted, "preempted"},
    {EndState::kNodeFail, "node_fail"},
    {EndState::kLost, "lost"},
}};

}  // namespace

JobStep JobStep::Parse(std::string_view text) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

std::string_view ToString(EndState state) {
  for (const auto& [value, name] : kStates) {
    if (value == state) return name;
  }
  return "unknown";
}

EndState ParseEndState(std::string_view text) {
  for (const auto& [value, name] : kStates) {
    if (name == text) return value;
  }
  return EndState::kUnknown;
}

void AddExits(const std::vector<TaskExit>& exits, JobDescription& job) {
  for (const TaskExit& exit : exits) {
    const auto at =
        std::lower_bound(job.exits.begin(), job.exits.end(), exit,
                         [](const TaskExit& a, const TaskExit& b) { return a.rank < b.rank; });
    if (at != job.exits.end() && at->rank == exit.rank) continue;
    if (job.exits.size() >= kMaxTaskExits) {
      ++job.exits_left_out;
    } else {
      job.exits.insert(at, exit);
    }
  }
}

std::string StateWord(const JobDescription& job) {
  const std::string* kept =
      job.state == EndState::kUnknown ? job.kept.Find(KeptName("state", "")) : nullptr;
  if (kept == nullptr || kept->size() < 2) return std::string(ToString(job.state));
  return kept->substr(1, kept->size() - 2);  // without its quotes
}

}  // namespace sonde
