// sonde phases: the phases of a finished step, those that it told and those that show in its
// series.
#include <fmt/core.h>

#include <cmath>
#include <memory>

#include "cli/command.h"
#include "cli/step/step_of.h"
#include "insight/steps/step_phases.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using insight::PhaseFigures;
using insight::StepPhases;

struct PhasesOptions {
  std::string id;
  bool json = false;
};

// The processors' time also as a share of one for each task.
std::string FigureText(const insight::StepColumn& column, double value, uint32_t tasks) {
  if (std::isnan(value)) return "-";
  if (column.unit != "CPUs" || tasks == 0) return ValueText(value, column.unit);
  return text::Percent(value / tasks);
}

std::string PhaseTable(const StepPhases& all, const std::vector<PhaseFigures>& phases, bool told,
                       const Profile& profile, const Environment& env) {
  using enum text::Table::Align;
  std::vector<text::Table::Column> columns = {
      {"phase", kLeft, told}, {"begins", kRight}, {"lasts", kRight}, {told ? "times" : "", kRight}};
  for (const insight::StepColumn& column : all.columns) {
    columns.push_back({text::Printable(column.name), kRight});
  }
  text::Table table(std::move(columns));
  for (const PhaseFigures& phase : phases) {
    const double begins = static_cast<double>(phase.begin - profile.job.start) / kSecond;
    std::vector<std::string> cells = {
        text::Printable(phase.name), text::Seconds(std::max(0.0, begins)),
        text::Seconds(phase.seconds), told ? std::to_string(phase.intervals) : ""};
    for (size_t c = 0; c < all.columns.size(); ++c) {
      cells.push_back(FigureText(all.columns[c], phase.means[c], profile.job.expected_tasks));
    }
    table.Row(std::move(cells));
  }
  return table.Render("", env.width);
}

std::string PhasesText(const StepPhases& all, const Profile& profile, const Environment& env) {
  std::string out = TitleOf(profile);
  if (!all.told.empty()) {
    out += "\nPhases that the application told\n" + PhaseTable(all, all.told, true, profile, env);
  }
  if (all.found.empty()) {
    return out + "\nThe profile has no series in which phases could show.\n";
  }
  out += all.found.size() > 1 ? "\nPhases that show in the step's series\n"
                              : "\nNothing changed for long: the step shows as one phase\n";
  return out + PhaseTable(all, all.found, false, profile, env);
}

int Phases(const PhasesOptions& options, const Environment& env) {
  return ShowFinished(options.id, env,
                      [&](const Archive& archive, const FinishedStep& step) -> Result<std::string> {
                        const auto all = insight::PhasesOf(archive, step.key, step.profile);
                        if (!all.ok()) return all.status();
                        return options.json ? insight::PhasesToJson(*all, step.profile)
                                            : PhasesText(*all, step.profile, env);
                      });
}

}  // namespace

void RegisterPhases(Arguments app, Run& run) {
  const auto options = std::make_shared<PhasesOptions>();
  Arguments sub = app.Command("phases", "Show the phases of a step, told or found, with figures");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123_4.0; it must have ended")
      .Required();
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Phases(*options, env); };
  });
}

}  // namespace sonde::cli
