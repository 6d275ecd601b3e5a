// Answers about the whole running step: from its rows, and where these are not right from the
// series of its nodes (series/query/pieces/pieces.h). serve/whole_step.h does the same for a step
// that has ended.
//
// Where the nodes' series cannot be had, are too much to ask for, or lack what the rows have, rows
// answer alone, and the answer says so.
//
// Thread safety: any thread. The callback is called once, from any thread, and also before the
// function returns.
#pragma once

#include <memory>

#include "daemon/head/answers/hosts_now.h"
#include "daemon/head/answers/node_questions.h"
#include "daemon/head/answers/settled_pieces.h"
#include "daemon/head/record/step_record.h"
#include "series/query/query.h"
#include "web/source/step_series.h"

namespace sonde::head {

// So many pieces are asked for at most for one answer, one after the other.
inline constexpr size_t kMaxAskedPieces = 16;
// So many points a node may have to read for them: some 20 ms of its time.
inline constexpr double kMaxReadByNode = 1u << 20;

// What its parts need; `nodes` calls back, and is there as long as it does.
struct WholeStepSource {
  const StepRecord& record;
  std::shared_ptr<const HostsNow> hosts;
  NodeQuestions& nodes;
  std::shared_ptr<SettledPieces> settled;
};

// The query's plan says that rows may answer (series/query/plan.h), and it has no filter on `job`.
// False: no percentiles are recorded for it, or not of its groups. Then nothing is called.
bool AnswerWholeStep(const WholeStepSource& source, const QuerySpec& spec,
                     web::StepSeries::Callback callback);

}  // namespace sonde::head
