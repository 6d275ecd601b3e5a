#include "daemon/node/launcher/task_packet.h"

#include <charconv>

#include "core/time.h"
#include "launcher/launch.h"

namespace sonde::node {
namespace {

template <typename T>
void ParseNumber(std::string_view text, T& out) {
  std::from_chars(text.data(), text.data() + text.size(), out);
}

// Nanoseconds as seconds.
double ParseSeconds(std::string_view text) {
  Nanos time = 0;
  ParseNumber(text, time);
  return static_cast<double>(time) / static_cast<double>(kSecond);
}

void ParseTotals(std::string_view key, std::string_view value, TaskPacket& task) {
  if (key == launch::key::kUserTime) task.has_totals = true;
  if (key == launch::key::kUserTime) task.totals.user_seconds = ParseSeconds(value);
  if (key == launch::key::kSystemTime) task.totals.system_seconds = ParseSeconds(value);
  if (key == launch::key::kMaxRss) ParseNumber(value, task.totals.peak_bytes);
  if (key == launch::key::kMinorFaults) ParseNumber(value, task.totals.minor_faults);
  if (key == launch::key::kMajorFaults) ParseNumber(value, task.totals.major_faults);
  if (key == launch::key::kReadBytes) ParseNumber(value, task.totals.read_bytes);
  if (key == launch::key::kWrittenBytes) ParseNumber(value, task.totals.written_bytes);
}

}  // namespace

TaskPacket ParseTaskPacket(std::string_view body) {
  TaskPacket task;
  launch::ForEach(body, [&](std::string_view key, std::string_view value) {
    if (key == launch::key::kRank) ParseNumber(value, task.rank);
    if (key == launch::key::kFirst) ParseNumber(value, task.first);
    if (key == launch::key::kPid) ParseNumber(value, task.pid);
    if (key == launch::key::kStatus) ParseNumber(value, task.status);
    ParseTotals(key, value, task);
    if (key != launch::key::kPerf) return;
    while (!value.empty() && task.perf.size() < launch::kMaxEvents) {
      const size_t comma = value.find(',');
      ParseNumber(value.substr(0, comma), task.perf.emplace_back(0));
      value.remove_prefix(comma == std::string_view::npos ? value.size() : comma + 1);
    }
  });
  return task;
}

}  // namespace sonde::node
