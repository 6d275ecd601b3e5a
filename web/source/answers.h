// Several answers that become one.
//
// Thread safety: functions without state.
#pragma once

#include <vector>

#include "core/status.h"
#include "series/alias/aliases.h"
#include "web/source/step_series.h"

namespace sonde::web {

// What is said of an answer that others belong to: its nodes are those of the one that lacks the
// most, and rows answer alone if they do in any of them. The results are not looked at.
void KeepWorst(const Answer& other, Answer& answer);

// The answer to a question by another name of a metric: `answers` are those to alias.specs().
Result<Answer> FoldAnswers(const AliasQuery& alias, std::vector<Answer> answers);

}  // namespace sonde::web
