#include "daemon/head/answers/node_questions.h"

#include <fmt/core.h>

#include <utility>

#include "core/log.h"

namespace sonde::head {

void NodeQuestions::Ask(Question question) {
  auto asked = std::make_shared<Asked>();
  asked->question = std::move(question);
  asked->grid = asked->question.grid;
  {
    const std::lock_guard lock(mutex_);
    if (travelling_ >= most_) return waiting_.push_back(std::move(asked));
    ++travelling_;
  }
  Round(asked);
}

void NodeQuestions::Round(const std::shared_ptr<Asked>& asked) {
  ++asked->rounds;
  nodes_->Ask(
      asked->question.spec, asked->grid, [weak = weak_from_this(), asked](tree::Gathered answer) {
        const std::shared_ptr<NodeQuestions> self = weak.lock();
        if (!self) return;
        const auto gathered = std::make_shared<tree::Gathered>(std::move(answer));
        auto job = [raw = self.get(), asked, gathered] { raw->OnGathered(asked, *gathered); };
        self->executor_ ? self->executor_(std::move(job)) : self->worker_.Do(std::move(job));
      });
}

void NodeQuestions::OnGathered(const std::shared_ptr<Asked>& asked, tree::Gathered& answer) {
  const Question& question = asked->question;
  Result<bool> whole = false;
  web::PartAnswer part;
  web::Answer results;
  try {
    whole = IsWhole(*asked, answer);
    if (whole.ok() && !*whole) return Round(asked);
    if (whole.ok() && question.part_callback) {
      part = {std::move(answer.part), answer.nodes, question.expected};
      TagPart("job", question.job, part.part);
    } else if (whole.ok()) {
      results = {FinishPart(question.spec, answer.part), answer.nodes, question.expected};
      for (QueryResult& result : results.results) result.tags.Set("job", question.job);
    }
  } catch (const std::exception& e) {
    log::Error("a question by host: {}", e.what());
    whole = Status(Code::kInternal, fmt::format("put the nodes' answers together: {}", e.what()));
  }
  Next();
  if (question.part_callback) {
    question.part_callback(whole.ok() ? Result<web::PartAnswer>(std::move(part)) : whole.status());
  } else {
    question.callback(whole.ok() ? Result<web::Answer>(std::move(results)) : whole.status());
  }
}

Result<bool> NodeQuestions::IsWhole(Asked& asked, const tree::Gathered& answer) {
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
    return false;
  }
  return true;
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
