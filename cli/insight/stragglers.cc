// sonde stragglers: which nodes and ranks of a finished step do not behave as the others do.
#include <fmt/core.h>

#include <cmath>
#include <memory>

#include "cli/command.h"
#include "cli/step/step_of.h"
#include "insight/steps/step_stragglers.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using insight::ComparedMetric;
using insight::NamedCause;
using insight::NamedStraggler;
using insight::NameOf;
using insight::RowsBy;
using insight::StepStragglers;
using text::Printable;

constexpr size_t kMostCauses = 6;

struct StragglersOptions {
  std::string id;
  bool json = false;
};

std::string ShareText(double share) {
  if (!std::isfinite(share)) return "the others have none";
  if (share >= 10) return fmt::format("x{}", text::Number(std::round(share + 1)));
  return fmt::format("{:+.{}f} %", 100 * share, std::abs(share) < 0.0995 ? 1 : 0);
}

std::string BesideText(const insight::Beside& beside, std::string_view unit) {
  return fmt::format("{}, the others {} ({})", ValueText(beside.value, unit),
                     ValueText(beside.others, unit), ShareText(beside.Share()));
}

std::string CauseText(const NamedCause& named) {
  const insight::Cause& cause = named.cause;
  std::string out = fmt::format("    {}: {}, the others {}", Printable(named.name),
                                ValueText(cause.inside.value, named.unit),
                                ValueText(cause.inside.others, named.unit));
  if (!std::isnan(cause.outside_value)) {
    out += fmt::format("; at other times {} and {}", ValueText(cause.outside_value, named.unit),
                       ValueText(cause.outside_others, named.unit));
  }
  if (cause.follows) out += fmt::format("; correlation {:.2f}", cause.correlation);
  return out + "\n";
}

std::string StragglerText(const StepStragglers& all, const ComparedMetric& metric,
                          const NamedStraggler& named, const JobDescription& job) {
  const insight::Straggler& found = named.found;
  std::string out = fmt::format("{}: {} {}, {}", Printable(NameOf(named.who, metric.by)),
                                Printable(metric.name), BesideText(found.overall, metric.unit),
                                SinceText(all.grid.Begin(found.begin), job, found.begin == 0));
  if (found.end < all.grid.count) {
    out += ", until " + SinceText(all.grid.Begin(found.end), job, false);
  }
  out += "\n";
  for (const auto& [phase, beside] : found.phases) {
    out += fmt::format("  in phase {}: {}\n", Printable(phase), BesideText(beside, metric.unit));
  }
  if (named.causes.empty()) {
    out += "  nothing else that was measured goes with it\n";
    return out;
  }
  out += "  goes with it:\n";
  for (size_t i = 0; i < std::min(kMostCauses, named.causes.size()); ++i) {
    out += CauseText(named.causes[i]);
  }
  return out;
}

std::string MetricsTable(const StepStragglers& all, const Environment& env) {
  using enum text::Table::Align;
  text::Table table({{"", kLeft, true},
                     {"by", kLeft},
                     {"", kRight},
                     {"typical", kRight},
                     {"spread", kRight},
                     {"imbalance", kRight},
                     {"lost", kRight},
                     {"at each tick", kRight},
                     {"most", kLeft},
                     {"least", kLeft}});
  for (const ComparedMetric& metric : all.metrics) {
    const auto percent = [](double ratio) {
      return std::isnan(ratio) ? std::string("-") : text::Percent(ratio);
    };
    const insight::StragglerFindings& found = metric.found;
    table.Row({Printable(metric.name), metric.by == RowsBy::kRank ? "rank" : "node",
               std::to_string(found.rows), ValueText(found.level, metric.unit),
               percent(found.level > 0 ? found.spread / found.level : std::nan("")),
               percent(metric.imbalance.overall.factor), percent(metric.imbalance.overall.lost),
               percent(metric.imbalance.lost_by_tick), Printable(NameOf(metric.most, metric.by)),
               Printable(NameOf(metric.least, metric.by))});
  }
  return table.Render("", env.width);
}

std::string TextOf(const StepStragglers& all, const Profile& profile, const Environment& env) {
  std::string out = TitleOf(profile) + "\n";
  if (all.metrics.empty()) {
    return out + "There is nothing to compare: no two ranks have values in this profile.\n";
  }
  bool any = false;
  for (const ComparedMetric& metric : all.metrics) {
    for (const NamedStraggler& named : metric.stragglers) {
      out += StragglerText(all, metric, named, profile.job);
      any = true;
    }
    if (!metric.found.differ) continue;
    out += fmt::format("{} and {} differ in {}; of two nobody can say which is wrong\n",
                       Printable(NameOf(metric.most, metric.by)),
                       Printable(NameOf(metric.least, metric.by)), Printable(metric.name));
    any = true;
  }
  if (!any) out += "No node or rank stands out.\n";
  return out + "\n" + MetricsTable(all, env);
}

int Stragglers(const StragglersOptions& options, const Environment& env) {
  return ShowFinished(options.id, env,
                      [&](const Archive& archive, const FinishedStep& step) -> Result<std::string> {
                        const auto all = insight::StragglersOf(archive, step.key, step.profile);
                        if (!all.ok()) return all.status();
                        return options.json ? insight::StragglersToJson(*all, step.profile)
                                            : TextOf(*all, step.profile, env);
                      });
}

}  // namespace

void RegisterStragglers(Arguments app, Run& run) {
  const auto options = std::make_shared<StragglersOptions>();
  Arguments sub =
      app.Command("stragglers", "Say which nodes and ranks of a step do not behave as the others");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123_4.0; it must have ended")
      .Required();
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Stragglers(*options, env); };
  });
}

}  // namespace sonde::cli
