// A profile as text for a terminal: the head prints it when the step ends, and `sonde show` prints
// it afterwards. A value that was not measured is left out or the text says why; it never appears
// as zero.
//
// Thread safety: functions without state.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model/profile.h"
#include "profiles/model/summary.h"
#include "profiles/report/hints.h"

namespace sonde {

inline constexpr size_t kSparklinePoints = 16;

// What a report has for terminals with colours, and the only codes that commands print.
inline constexpr std::string_view kRed = "\x1b[31m";
inline constexpr std::string_view kGreen = "\x1b[32m";
inline constexpr std::string_view kCyan = "\x1b[36m";
inline constexpr std::string_view kNoColour = "\x1b[0m";
inline constexpr std::string_view kReportColours[] = {kRed, kGreen, kCyan, kNoColour};

struct ReportOptions {
  enum class Form : unsigned char { kShort, kFull } form = Form::kFull;  // short: some six lines
  size_t width = 80;
  bool unicode = false;        // bars of block characters
  bool colour = false;         // for a terminal with colours
  size_t max_nodes = 32;       // rows of the node table; the worst ones if there are more
  std::vector<NodeRow> nodes;  // may be empty, as in the head: extremes then have names only
  std::vector<ReportHint> hints;
  // Of the application's metrics over the step's time, kSparklinePoints of each by SeriesName; may
  // be empty.
  std::map<std::string, std::vector<double>> sparklines;
  Nanos now = 0;  // ends a running step's duration
};

// Lines that end in a newline.
std::string RenderReport(const Profile& profile, const ReportOptions& options);

// The numbers at the top of the report, as a JSON object.
std::string SummaryToJson(const Summary& summary);

// The top of ReportToJson, as members: what the report says in words and bars. docs/endpoints.md
// (/api/v1/overview) describes it. `now` ends a running step.
void WriteReportTop(JsonWriter& json, const Profile& profile, const Summary& summary, Nanos now);

// Everything in the report and more, as one JSON object; docs/archive.md describes it. `steps`: of
// the step's job, as JSON; "" leaves them out.
std::string ReportToJson(const Profile& profile, const std::vector<NodeRow>& nodes, Nanos now,
                         std::string_view steps = "", std::span<const ReportHint> hints = {});

}  // namespace sonde
