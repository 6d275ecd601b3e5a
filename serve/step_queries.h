// Queries over the steps of an archive: which steps they concern, what the heads of running steps
// are asked, what is read, and how the answers are put together.
//
// series/query/plan.h decides who answers. If no result covers several steps, each head answers for
// its own step. Otherwise each head gives its nodes' part of the answer, and the parts are merged
// with the part of the steps that are read; only where that cannot be done, as for a median, is
// every series of a running step asked for. If a head does not answer, the archive answers for its
// step; of many nodes from the rows of the whole step (serve/whole_step.h).
//
// Thread safety: Evaluate from any thread.
#pragma once

#include <vector>

#include "core/status.h"
#include "core/task.h"
#include "profiles/archive/archive.h"
#include "series/query/plan.h"
#include "series/query/query.h"
#include "serve/running_heads.h"
#include "web/source/data_source.h"

namespace sonde::serve {

class StepQueries {
 public:
  // Both must outlive this object.
  StepQueries(const Archive& archive, RunningHeads& heads) : archive_(archive), heads_(heads) {}

  Task<Result<web::Answer>> Evaluate(QuerySpec spec) const;

 private:
  using Steps = std::vector<ProfileEntry>;

  // Adds the step's series that the query asks for, as they are stored.
  Status ReadStep(const ProfileEntry& entry, const QuerySpec& spec, const SeriesFilter& filter,
                  std::vector<SeriesData>& out) const;
  Task<Result<web::Answer>> GoWay(AnswerWay way, const QuerySpec& spec, const Steps& steps,
                                  const SeriesFilter& filter) const;
  Task<Result<web::Answer>> EvaluateEach(const QuerySpec& spec, const Steps& steps,
                                         const SeriesFilter& filter) const;
  Task<Result<web::Answer>> EvaluateParts(const QuerySpec& spec, const Steps& steps,
                                          const SeriesFilter& filter) const;
  Task<Result<web::Answer>> EvaluateSeries(const QuerySpec& spec, const Steps& steps,
                                           const SeriesFilter& filter) const;
  Task<Result<web::Answer>> EvaluateWhole(const QuerySpec& spec, const ProfileEntry& step,
                                          const SeriesFilter& filter) const;

  Task<MetricType> TypeOf(const QuerySpec& spec, const Steps& steps, const RunningHeads::Told& told,
                          const std::vector<SeriesData>& series) const;

  const Archive& archive_;
  RunningHeads& heads_;
};

}  // namespace sonde::serve
