// What follows from the numbers of a finished step.
#include <algorithm>
#include <utility>

#include "insight/hints/step_hints.h"
#include "insight/runs/modelled_runs.h"
#include "insight/steps/peaks_file.h"
#include "insight/steps/step_budget.h"
#include "insight/steps/step_energy.h"
#include "insight/steps/step_periods.h"
#include "insight/steps/step_phases.h"
#include "insight/steps/step_roofline.h"
#include "insight/steps/step_stragglers.h"
#include "serve/archive_source.h"

namespace sonde::serve {
namespace {

using Concluded = Result<std::string>;

// The JSON of a conclusion, or why there is none.
template <typename T>
Concluded ToJson(const Result<T>& found, const Profile& profile,
                 std::string (*json)(const T&, const Profile&)) {
  if (!found.ok()) return found.status();
  return json(*found, profile);
}

}  // namespace

Task<Result<std::string>> ArchiveSource::DoConclude(JobStep id, std::string of) const {
  const Result<Steps> entries = archive_->Find(id);
  if (!entries.ok()) co_return entries.status();
  if (entries->empty()) {
    co_return Status(Code::kNotFound, "the archive has no step " + id.ToString());
  }
  const auto ended = std::find_if(entries->begin(), entries->end(),
                                  [](const ProfileEntry& one) { return !one.running; });
  if (ended == entries->end()) {
    co_return Status(Code::kNotFound,
                     id.ToString() + " is running: its " + of + " are known when it has ended");
  }
  const ProfileEntry& entry = *ended;
  const Result<Profile> profile = archive_->Load(entry.key);
  if (!profile.ok()) co_return profile.status();
  const Archive& archive = *archive_;
  if (of == "hints") {
    co_return ToJson(insight::HintsOfStep(archive, entry.key, *profile, conclude_.hint_rules,
                                          Clock::System().Now()),
                     *profile, insight::HintsToJson);
  }
  if (of == "budget") {
    co_return ToJson(insight::BudgetOf(archive, entry.key, *profile), *profile,
                     insight::BudgetToJson);
  }
  if (of == "phases") {
    co_return ToJson(insight::PhasesOf(archive, entry.key, *profile), *profile,
                     insight::PhasesToJson);
  }
  if (of == "energy") {
    co_return ToJson(insight::EnergyOf(archive, entry.key, *profile, conclude_.carbon), *profile,
                     insight::EnergyToJson);
  }
  if (of == "roofline") {
    const auto peaks = insight::ReadPeaks(conclude_.peak_files);
    if (!peaks.ok()) co_return peaks.status();
    co_return ToJson(insight::RooflineOf(archive, entry.key, *profile, *peaks), *profile,
                     insight::RooflineToJson);
  }
  if (of == "stragglers") {
    co_return ToJson(insight::StragglersOf(archive, entry.key, *profile), *profile,
                     insight::StragglersToJson);
  }
  co_return ToJson(insight::PeriodsOf(archive, entry.key, *profile, {}), *profile,
                   insight::PeriodsToJson);
}

void ArchiveSource::Conclude(const JobStep& id, const std::string& of,
                             ConcludeCallback callback) const {
  workers_.Begin("conclude", std::move(callback), DoConclude(id, of), Workers::Length::kLong);
}

Task<Result<std::string>> ArchiveSource::DoModels(web::ModelsQuestion question) const {
  insight::RunsQuestion runs;
  runs.words = std::move(question.runs);
  runs.last = question.last;
  if (!question.by.empty()) {
    auto parameters = insight::ParseParameters(question.by);
    if (!parameters.ok()) co_return parameters.status().Within("parameter by");
    runs.parameters = *std::move(parameters);
  }
  const auto asked = insight::LoadAskedRuns(*archive_, runs, nullptr);
  if (!asked.ok()) co_return asked.status();
  co_return insight::ModelsToJson(
      *asked, insight::ModelsOf(*asked, insight::WantedBy(question.metrics, question.all)));
}

void ArchiveSource::Models(const web::ModelsQuestion& question, ModelsCallback callback) const {
  workers_.Begin("model runs", std::move(callback), DoModels(question), Workers::Length::kLong);
}

}  // namespace sonde::serve
