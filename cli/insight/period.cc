// sonde period: which metrics of a finished step repeat themselves, and how often.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/step/step_of.h"
#include "insight/steps/step_periods.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

struct PeriodOptions {
  std::string id;
  std::vector<std::string> metrics;
  bool json = false;
};

std::string PeriodsText(const insight::StepPeriods& periods, const Profile& profile,
                        const Environment& env) {
  std::string out = TitleOf(profile) + "\n";
  using enum text::Table::Align;
  text::Table table({{"metric", kLeft, true},
                     {"repeats every", kRight},
                     {"times", kRight},
                     {"confidence", kRight},
                     {"like itself", kRight}});
  text::Table others({{"metric", kLeft, true}, {"why no period is named", kLeft}});
  const double seconds = periods.grid.Seconds() * static_cast<double>(periods.grid.count);
  for (const insight::StepPeriod& one : periods.all) {
    const insight::Periodicity& found = one.found;
    if (!found.dominant || !found.period) {
      others.Row({text::Printable(one.column.name), found.why_not});
      continue;
    }
    table.Row({text::Printable(one.column.name), text::Seconds(*found.period),
               text::Number(std::max(1.0, std::round(seconds / *found.period))),
               text::Percent(found.dominant->confidence), text::Percent(found.correlation)});
  }
  if (periods.all.empty()) return out + "The profile has no series that could repeat themselves.\n";
  out += table.empty() ? "No metric repeats itself.\n" : table.Render("", env.width);
  if (!others.empty()) out += "\n" + others.Render("", env.width);
  return out;
}

int Period(const PeriodOptions& options, const Environment& env) {
  return ShowFinished(
      options.id, env,
      [&](const Archive& archive, const FinishedStep& step) -> Result<std::string> {
        const auto periods = insight::PeriodsOf(archive, step.key, step.profile, options.metrics);
        if (!periods.ok()) return periods.status();
        for (const std::string& metric : options.metrics) {
          const bool there =
              std::any_of(periods->all.begin(), periods->all.end(),
                          [&](const auto& one) { return one.column.metric == metric; });
          if (!there) {
            return Result<std::string>(
                Status(Code::kNotFound,
                       fmt::format("{} has no metric '{}'", step.profile.job.id.ToString(),
                                   text::Printable(metric))));
          }
        }
        return options.json ? insight::PeriodsToJson(*periods, step.profile)
                            : PeriodsText(*periods, step.profile, env);
      });
}

}  // namespace

void RegisterPeriod(Arguments app, Run& run) {
  const auto options = std::make_shared<PeriodOptions>();
  Arguments sub = app.Command("period", "Show which metrics of a step repeat themselves");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123_4.0; it must have ended")
      .Required();
  sub.Option("--metric", options->metrics, "Of this metric; may be repeated").Repeated();
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Period(*options, env); };
  });
}

}  // namespace sonde::cli
