#include "daemon/head/node_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.h"

namespace sonde::head {
namespace {

// Adds the times at which some nodes have points and others gave no value.
Status AddTimes(const QuerySpec& spec, const std::vector<Nanos>& odd, QueryGrid& grid) {
  const size_t middle = grid.times.size();
  grid.times.insert(grid.times.end(), odd.begin(), odd.end());
  std::inplace_merge(grid.times.begin(), grid.times.begin() + static_cast<ptrdiff_t>(middle),
                     grid.times.end());
  if (grid.times.size() <= kMaxGridTimes) return {};
  return {Code::kLimit, fmt::format("query of '{}': the nodes have points at more than {} times "
                                    "beside the ticks; ask with a downsample",
                                    spec.metric, kMaxGridTimes)};
}

}  // namespace

void NodeQuestions::Ask(Question question) {
  auto asked = std::make_shared<Asked>();
  asked->question = std::move(question);
  asked->grid.step = asked->question.period;
  {
    const std::lock_guard lock(mutex_);
    if (travelling_ >= most_) return waiting_.push_back(std::move(asked));
    ++travelling_;
  }
  Round(asked);
}

void NodeQuestions::Round(const std::shared_ptr<Asked>& asked) {
  ++asked->rounds;
  ask_(asked->question.spec, asked->grid, [weak = weak_from_this(), asked](tree::Gathered answer) {
    const std::shared_ptr<NodeQuestions> self = weak.lock();
    if (!self) return;
    const auto gathered = std::make_shared<const tree::Gathered>(std::move(answer));
    auto job = [raw = self.get(), asked, gathered] { raw->OnGathered(asked, *gathered); };
    self->executor_ ? self->executor_(std::move(job)) : self->worker_.Do(std::move(job));
  });
}

void NodeQuestions::OnGathered(const std::shared_ptr<Asked>& asked, const tree::Gathered& answer) {
  std::optional<Result<web::Answer>> result;
  try {
    result = Finish(*asked, answer);
  } catch (const std::exception& e) {
    log::Error("a question by host: {}", e.what());
    result = Status(Code::kInternal, fmt::format("put the nodes' answers together: {}", e.what()));
  }
  if (!result) return Round(asked);
  Next();
  asked->question.callback(*std::move(result));
}

std::optional<Result<web::Answer>> NodeQuestions::Finish(Asked& asked,
                                                         const tree::Gathered& answer) {
  const QuerySpec& spec = asked.question.spec;
  if (!answer.failure.ok()) return answer.failure;
  std::vector<Nanos> odd;
  if (answer.nodes > 1) odd = OddTimes(spec, answer.part, asked.grid);
  if (!odd.empty()) {
    constexpr int kMaxRounds = 3;  // a node that ends meanwhile has one more
    if (asked.rounds >= kMaxRounds) {
      return Status(Code::kUnavailable,
                    "the times of the nodes' points changed with each question; ask again, or with "
                    "a downsample");
    }
    if (const Status full = AddTimes(spec, odd, asked.grid); !full.ok()) return full;
    return std::nullopt;
  }
  std::vector<QueryResult> results = FinishPart(spec, answer.part);
  for (QueryResult& result : results) result.tags.Set("job", asked.question.job);
  return web::Answer{std::move(results), answer.nodes, asked.question.expected};
}

void NodeQuestions::Next() {
  std::shared_ptr<Asked> next;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      --travelling_;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  Round(next);
}

}  // namespace sonde::head
