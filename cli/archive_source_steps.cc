// What the pages show of a job: its steps, their tags, and runs beside each other.
#include <exception>
#include <utility>

#include "cli/archive_source.h"
#include "cli/command.h"
#include "cli/diff_load.h"
#include "cli/job_steps.h"
#include "cli/listed_cards.h"
#include "profiles/ask_keeper.h"

namespace sonde::cli {

Result<std::vector<web::StepInShort>> ArchiveSource::StepsOf(const std::string& job,
                                                             Nanos now) const {
  const auto found = FindSteps(*archive_, job);
  if (!found.ok()) return found.status();
  const auto cards = CardsOf(*archive_, *found, now);
  if (!cards.ok()) return cards.status();
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
  return steps;
}

// Of the newest run of the step, which is the one that is shown.
Result<UserTags> ArchiveSource::ChangeTags(const JobStep& id, const UserTags& set,
                                           const std::vector<std::string>& remove) const {
  const Result<std::vector<ProfileEntry>> found = archive_->Find(id);
  if (!found.ok()) return found.status();
  if (found->empty()) {
    return Status(Code::kNotFound, "the archive has no step " + id.ToString());
  }
  return TagWhereItIsOpen(*archive_, found->front().key, {set, remove});
}

void ArchiveSource::Compare(const std::vector<std::string>& groups, const std::string& align,
                            CompareCallback callback) const {
  Post([this, groups, align, callback = std::move(callback)](const Status& stopped) {
    if (!stopped.ok()) return callback(stopped);
    try {
      const auto phase = ParseAlign(align);
      if (!phase.ok()) return callback(phase.status().Within("parameter align"));
      DiffQuestion question;
      question.groups = groups;
      question.phase = *phase;
      const auto diff = LoadDifference(*archive_, question, nullptr);
      callback(diff.ok() ? Result<std::string>(DiffToJson(*diff)) : diff.status());
    } catch (const std::exception& e) {
      callback(Status(Code::kInternal, std::string("compare runs: ") + e.what()));
    }
  });
}

}  // namespace sonde::cli
