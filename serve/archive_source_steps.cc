// What the pages show of a job: its steps, their tags, and comparisons of runs.
#include <utility>

#include "profiles/archive/listed_cards.h"
#include "profiles/compare/load.h"
#include "serve/archive_source.h"

namespace sonde::serve {

Task<Result<std::vector<web::StepInShort>>> ArchiveSource::DoStepsOf(std::string job,
                                                                     Nanos now) const {
  const auto found = FindSteps(*archive_, job);
  if (!found.ok()) co_return found.status();
  const auto cards = CardsOf(*archive_, *found, now);
  if (!cards.ok()) co_return cards.status();
  std::vector<web::StepInShort> steps;
  ForEachCard(*cards, [&](const ListedProfile& one, const JobStep& id, const Card& card) {
    web::StepInShort& step = steps.emplace_back();
    step.key = one.key;
    step.id = id;
    step.name = card.name;
    step.state = card.state;
    step.start = one.start;
    step.end = card.end;
    step.nodes = card.nodes;
    step.tasks = card.tasks;
    for (const auto& [name, value] : card.tags) step.tags.emplace(name, value);
    step.summary = SummaryOfCard(card, one.start, now);
  });
  co_return steps;
}

void ArchiveSource::StepsOf(const std::string& job, Nanos now, StepsCallback callback) const {
  workers_.Begin("list a job's steps", std::move(callback), DoStepsOf(job, now));
}

// For the newest run of the step, which is the one shown.
Task<Result<UserTags>> ArchiveSource::DoChangeTags(JobStep id, TagChange change) const {
  const Result<Steps> found = archive_->Find(id);
  if (!found.ok()) co_return found.status();
  if (found->empty()) {
    co_return Status(Code::kNotFound, "the archive has no step " + id.ToString());
  }
  if (!keeper_) {
    co_return Status(Code::kPermission, "the archive " + archive_->root() + " is only read here");
  }
  co_return keeper_->Tag(found->front().key, change);
}

void ArchiveSource::ChangeTags(const JobStep& id, const UserTags& set,
                               const std::vector<std::string>& remove,
                               TagsCallback callback) const {
  workers_.Begin("change tags", std::move(callback), DoChangeTags(id, {set, remove}));
}

Task<Result<std::string>> ArchiveSource::DoCompare(std::vector<std::string> groups,
                                                   std::string align) const {
  const auto phase = ParseAlign(align);
  if (!phase.ok()) co_return phase.status().Within("parameter align");
  DiffQuestion question;
  question.groups = std::move(groups);
  question.phase = *phase;
  const auto diff = LoadDifference(*archive_, question, nullptr);
  if (!diff.ok()) co_return diff.status();
  co_return DiffToJson(*diff);
}

void ArchiveSource::Compare(const std::vector<std::string>& groups, const std::string& align,
                            CompareCallback callback) const {
  workers_.Begin("compare runs", std::move(callback), DoCompare(groups, align),
                 Workers::Length::kLong);
}

}  // namespace sonde::serve
