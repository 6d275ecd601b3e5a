// A profile as text for a terminal: the head prints it when the step ends, and `sonde show` prints
// it afterwards. A value that was not measured is left out or the text says why; it never appears
// as zero.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde {

struct ReportOptions {
  enum class Form : unsigned char { kShort, kFull } form = Form::kFull;  // short: one line
  size_t width = 80;
  bool unicode = false;        // bars of block characters
  bool colour = false;         // for a terminal with colours
  size_t max_nodes = 32;       // rows of the node table; the worst ones if there are more
  std::vector<NodeRow> nodes;  // may be empty, as in the head: extremes then have names only
  Nanos now = 0;               // ends a running step's duration
};

// Lines that end in a newline.
std::string RenderReport(const Profile& profile, const ReportOptions& options);

// The numbers at the top of the report, as a JSON object.
std::string SummaryToJson(const Summary& summary);

// Everything in the report and more, as one JSON object; docs/archive.md describes it. `steps`: of
// the step's job, as JSON; "" leaves them out.
std::string ReportToJson(const Profile& profile, const std::vector<NodeRow>& nodes, Nanos now,
                         std::string_view steps = "");

}  // namespace sonde
