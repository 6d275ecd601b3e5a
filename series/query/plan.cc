#include "series/query/plan.h"

#include "series/query/part.h"
#include "series/query/steps.h"

namespace sonde {
namespace {

// A head has every row of the step's reduced series in memory, and can ask all nodes that are
// there.
std::vector<AnswerWay> PlanAtHead(const QuerySpec& spec, const QueryScene& scene) {
  if (AnswersFromReduced(spec, scene.is_count)) return {AnswerWay::kReduced};
  if (SpreadAnswers(spec, scene.period)) return {AnswerWay::kSpread, AnswerWay::kParts};
  return {AnswerWay::kParts};
}

// Heads are asked in whole milliseconds.
bool AnswersFromParts(const QuerySpec& spec, const QueryScene& scene) {
  return scene.heads > 0 && query_steps::HasParts(spec) && spec.start % kMillisecond == 0 &&
         spec.end % kMillisecond == 0;
}

}  // namespace

std::vector<AnswerWay> PlanQuery(const QuerySpec& spec, const QueryScene& scene) {
  if (scene.at_head) return PlanAtHead(spec, scene);
  std::vector<AnswerWay> plan;
  if (scene.steps > 1) {
    if (query_steps::IsSeparateBy(spec, query_steps::kJobTag)) return {AnswerWay::kEachHead};
    if (AnswersFromParts(spec, scene)) plan.push_back(AnswerWay::kParts);
    plan.push_back(AnswerWay::kSeries);
    return plan;
  }
  // It asks its nodes for no more than the answer.
  if (scene.heads == 1) plan.push_back(AnswerWay::kHead);
  const bool large = scene.nodes > kReadNodesUpTo;
  if (large && SpreadAnswers(spec, scene.period)) plan.push_back(AnswerWay::kSpread);
  plan.push_back(large && AnswersFromReduced(spec) ? AnswerWay::kReduced : AnswerWay::kSeries);
  return plan;
}

AnswerWay PlanPart(const QuerySpec& spec, bool is_count) {
  return is_count && ReducedSumsCounters(spec) ? AnswerWay::kReduced : AnswerWay::kParts;
}

}  // namespace sonde
