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
    steps.push_back(web::InShort(one.key, id, card, one.start, now));
  });
  co_return steps;
}

void ArchiveSource::StepsOf(const std::string& job, Nanos now, StepsCallback callback) const {
  workers_.Begin("list a job's steps", std::move(callback), DoStepsOf(job, now));
}

Task<Result<web::StepPage>> ArchiveSource::DoList(Selection selection, Nanos now) const {
  const Result<SelectedPage> selected = archive_->SelectPage(selection, now);
  if (!selected.ok()) co_return selected.status();
  web::StepPage page;
  page.found = selected->found;
  ForEachCard(selected->profiles,
              [&](const ListedProfile& one, const JobStep& id, const Card& card) {
                page.steps.push_back(web::InShort(one.key, id, card, one.start, now));
              });
  co_return page;
}

void ArchiveSource::List(const Selection& selection, Nanos now, ListCallback callback) const {
  workers_.Begin("list steps", std::move(callback), DoList(selection, now));
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

Task<Result<std::string>> ArchiveSource::DoCompareMany(ManyRunsQuestion question) const {
  auto found = FindManyRuns(*archive_, question);
  if (!found.ok()) co_return found.status();
  const auto runs = LoadManyRuns(*archive_, *std::move(found));
  if (!runs.ok()) co_return runs.status();
  co_return ManyRunsToJson(*runs);
}

void ArchiveSource::CompareMany(const ManyRunsQuestion& question, CompareCallback callback) const {
  workers_.Begin("compare many runs", std::move(callback), DoCompareMany(question),
                 Workers::Length::kLong);
}

Task<Result<std::string>> ArchiveSource::DoBands(ManyRunsQuestion question,
                                                 std::vector<std::string> metrics,
                                                 BandAxis axis) const {
  const auto found = FindManyRuns(*archive_, question);
  if (!found.ok()) co_return found.status();
  const auto bands = LoadRunBands(*archive_, *found, metrics, axis);
  if (!bands.ok()) co_return bands.status();
  co_return RunBandsToJson(*bands);
}

void ArchiveSource::Bands(const ManyRunsQuestion& question, const std::vector<std::string>& metrics,
                          BandAxis axis, CompareCallback callback) const {
  workers_.Begin("read series of runs", std::move(callback), DoBands(question, metrics, axis),
                 Workers::Length::kLong);
}

}  // namespace sonde::serve
