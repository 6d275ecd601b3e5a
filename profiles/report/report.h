// A profile as people read it in a terminal: what the head prints when the step ends and what
// `sonde show` prints afterwards are this text. What was not measured is left out or says why; it
// never appears as zero.
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
  bool colour = false;         // for a terminal that is one
  size_t max_nodes = 32;       // rows of the node table; the worst ones if there are more
  std::vector<NodeRow> nodes;  // may be empty, as in the head: extremes then have names only
  Nanos now = 0;               // ends a running step's duration
};

// Lines that end in a newline.
std::string RenderReport(const Profile& profile, const ReportOptions& options);

// The numbers that the report starts with, as a JSON object.
std::string SummaryToJson(const Summary& summary);

// Everything in the report and more, as one JSON object; docs/archive.md describes it. `steps`: of
// the step's job, JSON; "": are left out.
std::string ReportToJson(const Profile& profile, const std::vector<NodeRow>& nodes, Nanos now,
                         std::string_view steps = "");

}  // namespace sonde
