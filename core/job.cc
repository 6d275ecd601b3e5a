#include "core/job.h"

#include <array>
#include <utility>

namespace sonde {
namespace {

constexpr std::array<std::pair<EndState, std::string_view>, 6> kStates = {{
    {EndState::kRunning, "running"},
    {EndState::kCompleted, "completed"},
    {EndState::kFailed, "failed"},
    {EndState::kOutOfMemory, "out_of_memory"},
    {EndState::kCancelled, "cancelled"},
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
  return "lost";
}

EndState ParseEndState(std::string_view text) {
  for (const auto& [value, name] : kStates) {
    if (name == text) return value;
  }
  return EndState::kLost;
}

}  // namespace sonde
