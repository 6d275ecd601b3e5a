#include "web/source/step_history.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "core/task.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

constexpr size_t kMostListed = 1000;

// By their profiles, which have everything that a card has: sources with few steps keep no cards.
Task<Result<StepPage>> ListByProfiles(const StepHistory& history, Selection selection, Nanos now) {
  const Result<std::vector<JobDescription>> jobs =
      co_await Ask(history, &StepHistory::Jobs, kMostListed);
  if (!jobs.ok()) co_return jobs.status();
  std::vector<JobStep> ids;
  for (const JobDescription& job : *jobs) ids.push_back(job.id);
  const std::vector<Result<Profile>> profiles = co_await ProfilesOf(history, std::move(ids));
  StepPage page;
  SelectedList list(selection, now);
  std::map<std::string, JobStep> named;
  for (const Result<Profile>& profile : profiles) {
    if (!profile.ok()) continue;
    const JobDescription& job = profile->job;
    const auto on_node = [&](const std::string& host) {
      return std::any_of(job.nodes.begin(), job.nodes.end(),
                         [&](const NodeInfo& node) { return node.host == host; });
    };
    const std::string made = MakeCard(*profile, 0, now);
    Card card;
    if (!DecodeCard(made, card).ok() || job.start < selection.since ||
        job.start > selection.until || !Lasts(card, selection) || !Matches(card, selection) ||
        (!selection.node.empty() && !on_node(selection.node)) ||
        !Finds(card, job.id, selection, on_node)) {
      continue;
    }
    list.Add(job.id.ToString(), made, card, job.start);
    named.emplace(job.id.ToString(), job.id);
  }
  page.found = list.found();
  const std::vector<Selected> taken = list.Take();
  for (size_t i = selection.offset; i < taken.size(); ++i) {
    Card card;
    if (!DecodeCard(taken[i].card, card).ok()) continue;
    page.steps.push_back(InShort("", named.at(taken[i].key), card, taken[i].start, now));
  }
  co_return page;
}

// `list` gives its page to the callback.
Task<void> Give(Task<Result<StepPage>> list, StepHistory::ListCallback callback) {
  Status failed;
  try {
    const Result<StepPage> page = co_await std::move(list);
    callback(page);
  } catch (const std::exception& error) {
    failed = Status(Code::kInternal, std::string("list steps: ") + error.what());
  }
  if (!failed.ok()) callback(failed);
}

}  // namespace

StepInShort InShort(const std::string& key, const JobStep& id, const Card& card, Nanos start,
                    Nanos now) {
  StepInShort step;
  step.key = key;
  step.id = id;
  step.name = card.name;
  step.command = card.command;
  step.user = card.user;
  step.account = card.account;
  step.partition = card.partition;
  step.state = card.state;
  step.level = card.level;
  step.start = start;
  step.end = card.end;
  step.nodes = card.nodes;
  step.tasks = card.tasks;
  step.coverage = card.coverage;
  step.figure = card.figure;
  step.figure_unit = card.figure_unit;
  step.figure_value = card.figure_value;
  for (const auto& [name, value] : card.tags) step.tags.emplace(name, value);
  step.summary = SummaryOfCard(card, start, now);
  return step;
}

void StepHistory::List(const Selection& selection, Nanos now, ListCallback callback) const {
  Spawn(nullptr, Give(ListByProfiles(*this, selection, now), std::move(callback)));
}

void StepHistory::StepsOf(const std::string& job, Nanos now, StepsCallback callback) const {
  GetProfile(JobStep::Parse(job), [now, callback = std::move(callback)](Result<Profile> profile) {
    if (!profile.ok()) return callback(profile.status());
    const JobDescription& d = profile->job;
    Card card;
    const std::string made = MakeCard(*profile, 0, now);
    const Status status = DecodeCard(made, card);
    if (!status.ok()) return callback(status);
    callback(std::vector<StepInShort>{InShort("", d.id, card, d.start, now)});
  });
}

void StepHistory::ChangeTags(const JobStep& id, const UserTags& /*set*/,
                             const std::vector<std::string>& /*remove*/,
                             TagsCallback callback) const {
  callback(Status(Code::kBusy, id.ToString() +
                                   " is running; its tags can be changed when it has ended, "
                                   "with 'sonde tag' or at 'sonde serve'"));
}

void StepHistory::Compare(const std::vector<std::string>& /*groups*/, const std::string& /*align*/,
                          CompareCallback callback) const {
  callback(Status(Code::kNotFound,
                  "runs are compared when they have ended, by 'sonde diff' or at 'sonde serve'"));
}

void StepHistory::CompareMany(const ManyRunsQuestion& /*question*/,
                              CompareCallback callback) const {
  callback(Status(Code::kNotFound, "runs are compared when they have ended, at 'sonde serve'"));
}

void StepHistory::Bands(const ManyRunsQuestion& question,
                        const std::vector<std::string>& /*metrics*/, BandAxis /*axis*/,
                        CompareCallback callback) const {
  CompareMany(question, std::move(callback));
}

void StepHistory::Models(const ModelsQuestion& /*question*/, ModelsCallback callback) const {
  callback(Status(Code::kNotFound,
                  "runs are modelled when they have ended, by 'sonde model' or at 'sonde serve'"));
}

void StepHistory::Conclude(const JobStep& id, const std::string& of,
                           ConcludeCallback callback) const {
  callback(Status(Code::kNotFound, id.ToString() + " is running: its " + of +
                                       " can be asked for when it has ended, at 'sonde serve'"));
}

}  // namespace sonde::web
