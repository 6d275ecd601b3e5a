// A question of the step's own programs, as queries of LiveSource.
//
// A question without a downsample is for the values of the ticks: it is asked with the period as
// the interval, which changes no value and keeps the head from reading whole hours around the
// range. A question by another name of a metric (series/alias/aliases.h) is one or two queries for
// what that name stands for.
//
// Thread safety: from any thread.
#pragma once

#include <memory>
#include <string>

#include "core/time.h"
#include "daemon/head/answers/live_source.h"
#include "daemon/head/record/step_record.h"
#include "series/query/query.h"

namespace sonde::head {

// A question without a downsample as one for the values of the ticks; with a rate, from far enough
// before `start` that its first point in the range has one. Others stay as they are.
QuerySpec AtTicks(QuerySpec spec, Nanos period);

// Whether the step has the metric so far, by its own name or by another.
bool HasMetric(const StepRecord& record, const std::string& metric);

// Whether the answer takes so little time that the head's loop may give it between two messages:
// rows of the last minutes of few columns, or a question that the nodes answer, in a step of few
// nodes and series. Else it is a matter for another thread.
bool TakesLittleTime(const StepRecord& record, Nanos period, const QuerySpec& question);

// The answer may have points from before `start`. `callback` is called once, from any thread, and
// also before this returns.
void AskStep(const std::shared_ptr<const LiveSource>& source, const StepRecord& record,
             Nanos period, const QuerySpec& question, web::StepSeries::Callback callback);

}  // namespace sonde::head
