// The events of /api/live as text (web/live/live.h says what they are).
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "web/source/step_control.h"
#include "web/source/step_series.h"

namespace sonde::web {

struct TickEvent {
  std::string_view job;
  const LiveRows::Row& row;
  const LiveRows& rows;
  const std::vector<std::vector<QueryResult>>& queries;  // by m=; points of other ticks too
};

struct LostTicks {
  std::string_view job;
  int64_t ticks = 0;
  Nanos from = 0;
  Nanos to = 0;
};

void AppendStepEvent(std::string_view job, Nanos period, std::string& out);
void AppendTickEvent(const TickEvent& event, std::string& out);
void AppendLostEvent(const LostTicks& lost, std::string& out);
void AppendAlarmEvent(std::string_view job, const AlarmState& alarm, bool active, std::string& out);
void AppendNoteEvent(const Note& note, std::string& out);
void AppendErrorEvent(const Status& status, std::string& out);
void AppendEndEvent(std::string_view job, std::string& out);

}  // namespace sonde::web
