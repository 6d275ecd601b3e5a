// Who may answer a query: decided in one place, from the query and from what is known of its steps.
// The caller carries out each way.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"
#include "series/query/query.h"

namespace sonde {

enum class AnswerWay : uint8_t {
  kHead,      // the head of the only step, by itself
  kEachHead,  // no result is of several steps: each step's head for its own
  kParts,     // parts of the answer, put together: of the nodes at a head, of the steps elsewhere
  // The reduced series; where they are not right (series/query/pieces/pieces.h) the archive reads
  // the nodes' series. kSpread: the percentiles that were recorded with them, if there are any.
  kSpread,
  kReduced,
  kSeries,  // the series of every node
};

// The steps that a query is about.
struct QueryScene {
  bool at_head = false;   // it is asked at the head of the only step
  size_t steps = 1;       // how many there are
  size_t heads = 0;       // of how many steps a head can be asked
  size_t nodes = 0;       // of the only step
  Nanos period = 0;       // of the only step
  bool is_count = false;  // the metric is known to be a counter
};

// Above it a question about the whole step is answered from the reduced series, where that is
// exact and the nodes' series would have to be read.
inline constexpr size_t kReadNodesUpTo = 64;

// The ways in the order in which to try them: the next one if one has no answer. The last way
// always answers, or its failure is the query's.
std::vector<AnswerWay> PlanQuery(const QuerySpec& spec, const QueryScene& scene);

// The same where the head of a step is asked for its part: kReduced or kParts.
AnswerWay PlanPart(const QuerySpec& spec, bool is_count);

}  // namespace sonde
