// Queries over the steps of an archive: which steps they are about, what is asked of the heads of
// those that run, what is read, and how that comes together.
//
// Where no result is of several steps each head answers for its own. Else each gives its nodes'
// part of the answer, and parts are put together with that of the steps that are read; only where
// that cannot be done, as for a median, is every series of a running step asked for. A head that
// does not answer leaves its step to what the archive has.
//
// Thread safety: Evaluate from any thread; it blocks while heads are asked.
#pragma once

#include <vector>

#include "cli/running_heads.h"
#include "core/status.h"
#include "profiles/archive.h"
#include "series/query.h"
#include "web/data_source.h"

namespace sonde::cli {

class StepQueries {
 public:
  // Both outlive it.
  StepQueries(const Archive& archive, RunningHeads& heads) : archive_(archive), heads_(heads) {}

  Result<web::Answer> Evaluate(const QuerySpec& spec) const;

 private:
  using Steps = std::vector<ProfileEntry>;

  // Adds the step's series that the query asks for, as they are stored.
  Status ReadStep(const ProfileEntry& entry, Archive::Scope scope, const QuerySpec& spec,
                  const SeriesFilter& filter, std::vector<SeriesData>& out) const;
  Result<web::Answer> EvaluateEach(const QuerySpec& spec, const Steps& steps,
                                   const SeriesFilter& filter) const;
  Result<web::Answer> EvaluateParts(const QuerySpec& spec, const Steps& steps,
                                    const SeriesFilter& filter) const;
  Result<web::Answer> EvaluateSeries(const QuerySpec& spec, const Steps& steps,
                                     const SeriesFilter& filter, Archive::Scope scope) const;

  MetricType TypeOf(const QuerySpec& spec, const Steps& steps, const RunningHeads::Told& told,
                    const std::vector<SeriesData>& series) const;

  const Archive& archive_;
  RunningHeads& heads_;
};

}  // namespace sonde::cli
