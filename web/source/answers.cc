#include "web/source/answers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sonde::web {
namespace {

uint32_t Missing(const Answer& answer) {
  return answer.nodes_expected - std::min(answer.nodes_answered, answer.nodes_expected);
}

}  // namespace

void KeepWorst(const Answer& other, Answer& answer) {
  if (answer.nodes_expected == 0 || Missing(other) > Missing(answer)) {
    answer.nodes_answered = other.nodes_answered;
    answer.nodes_expected = other.nodes_expected;
  }
  if (answer.rows_only.empty()) answer.rows_only = other.rows_only;
}

Result<Answer> FoldAnswers(const AliasQuery& alias, std::vector<Answer> answers) {
  Answer whole;
  std::vector<std::vector<QueryResult>> results;
  for (Answer& answer : answers) {
    KeepWorst(answer, whole);
    results.push_back(std::move(answer.results));
  }
  Result<std::vector<QueryResult>> folded = alias.Fold(std::move(results));
  if (!folded.ok()) return folded.status();
  whole.results = *std::move(folded);
  return whole;
}

}  // namespace sonde::web
