#include "cli/selection.h"

#include <fmt/format.h>

#include <ctime>
#include <string>

#include "web/opentsdb/request.h"

namespace sonde::cli {
namespace {

Nanos FromLocal(std::tm parts) {
  parts.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  return seconds < 0 ? -1 : Nanos{seconds} * kSecond;
}

// The beginning of the local day so many days ago.
Nanos DayBefore(Nanos now, int days) {
  const auto seconds = static_cast<std::time_t>(now / kSecond);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  parts.tm_mday -= days;
  return FromLocal(parts);
}

// "2026-11-20 14:00"; -1 for another form.
Nanos ParseLocal(const std::string& text) {
  for (const char* format :
       {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), format, &parts);
    if (end != nullptr && *end == '\0') return FromLocal(parts);
  }
  return -1;
}

}  // namespace

Result<Nanos> ParseMoment(std::string_view text, Nanos now) {
  if (text == "today") return DayBefore(now, 0);
  if (text == "yesterday") return DayBefore(now, 1);
  if (const Nanos local = ParseLocal(std::string(text)); local >= 0) return local;
  const Result<Nanos> time = web::ParseTimeOrSpan(text, now);
  if (time.ok()) return time;
  return Status(Code::kInvalid,
                fmt::format("'{}' is no time; expected so long ago (90m, 36h, 2d, 1w), today, "
                            "yesterday, 2026-01-31 or '2026-01-31 10:00'",
                            text));
}

void AddSelectionOptions(Arguments sub, SelectionWords& words) {
  sub.Option("--search", words.search,
             "With all these words, each in the step, name, user, command line or a tag, or the "
             "name of a node");
  sub.Option("--since", words.since,
             "That began since then: 90m, 36h, 2d, today, 2026-01-31, '2026-01-31 10:00'");
  sub.Option("--until", words.until, "That began by then");
  sub.Option("--cmd", words.command, "With this text in the command line");
  sub.Option("--name", words.name, "With this text in the job's name");
  sub.Option("--node", words.node, "That ran on this node");
  sub.Option("--state", words.state,
             "running, completed, failed, out_of_memory, cancelled, timeout, preempted, node_fail, "
             "lost or unknown");
  sub.Option("--tag", words.tags, "With this tag, NAME or NAME=VALUE; may be repeated").Repeated();
  sub.Option("--user", words.user, "Of this user");
  sub.Option("--account", words.account, "Of this account");
  sub.Option("--partition", words.partition, "In this partition");
  sub.Option("--level", words.level, "Recorded at this level, 0 to 4");
}

Result<Selection> SelectionOf(const SelectionWords& words, Nanos now) {
  return sonde::SelectionOf(words, now, {ParseMoment, "--"});
}

}  // namespace sonde::cli
