// sonde energy: what a finished step has taken of its nodes' energy, and what that means in carbon.
#include <fmt/core.h>

#include <cmath>
#include <memory>

#include "cli/command.h"
#include "cli/step/step_of.h"
#include "core/config.h"
#include "insight/steps/step_energy.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using insight::EnergyMeter;
using insight::FigureEnergy;
using insight::NodeEnergy;
using insight::StepEnergy;

struct EnergyOptions {
  std::string id;
  bool json = false;
};

constexpr size_t kMostNodes = 16;

// "12.3 kJ (0.0034 kWh)".
std::string Joules(double joules) {
  return fmt::format("{} ({} kWh)", text::Value(joules, "joules"),
                     text::Number(joules / insight::kJoulesPerKwh));
}

std::string NodeTable(const StepEnergy& all, const Environment& env) {
  using enum text::Table::Align;
  text::Table table({{"node", kLeft, true},
                     {"meter", kLeft},
                     {"node's", kRight},
                     {"step's", kRight},
                     {"at least", kRight, false, 1},
                     {"at most", kRight, false, 1},
                     {"of CPUs", kRight},
                     {"of CPU time", kRight},
                     {"at rest", kRight, false, 1},
                     {"GPUs", kRight}});
  size_t shown = 0;
  for (const NodeEnergy& node : all.nodes) {
    if (++shown > kMostNodes) break;
    const insight::EnergyShare& share = node.share;
    const bool whole = share.whole_node;
    table.Row(
        {text::Printable(node.host), std::string(ToString(node.meter)),
         text::Value(node.meter == EnergyMeter::kNone ? std::nan("") : node.use.joules, "joules"),
         text::Value(share.joules, "joules"), whole ? "" : text::Value(share.low, "joules"),
         whole ? "" : text::Value(share.high, "joules"),
         text::Percent(node.use.allocated / node.use.cpus),
         whole ? "" : text::Percent(node.use.step_cpu / node.use.busy_cpu),
         text::Value(node.use.idle.watts, "watts"), text::Value(node.gpu_joules, "joules")});
  }
  std::string out = table.Render("", env.width);
  if (shown > kMostNodes) {
    out += fmt::format("and {} nodes more; all with --json\n", all.nodes.size() - kMostNodes);
  }
  return out;
}

std::string FigureTable(const StepEnergy& all, const Environment& env) {
  using enum text::Table::Align;
  text::Table table({{"figure of merit", kLeft, true},
                     {"value", kRight},
                     {"J each", kRight},
                     {"in a kWh", kRight}});
  for (const FigureEnergy& one : all.figures) {
    table.Row({text::Printable(one.name), text::Printable(text::Number(one.value) + " " + one.unit),
               text::Number(one.joules_per_unit), text::Number(one.units_per_kwh)});
  }
  return table.Render("", env.width);
}

std::string CarbonText(const StepEnergy& all, const insight::CarbonOptions& carbon) {
  if (!all.carbon_grams) {
    return "Carbon   not known: sonde.conf has to say carbon_g_per_kwh and pue\n";
  }
  return fmt::format("Carbon   {} g CO2e: kWh x PUE {} x {} g/kWh\n",
                     text::Number(*all.carbon_grams), text::Number(*carbon.pue),
                     text::Number(*carbon.grams_per_kwh));
}

std::string EnergyText(const StepEnergy& all, const insight::CarbonOptions& carbon,
                       const Profile& profile, const Environment& env) {
  std::string out = TitleOf(profile);
  if (std::isnan(all.joules)) {
    return out + "\n" + all.no_energy + "\n";
  }
  out +=
      fmt::format("\nEnergy   {}, {} in the mean, {} for each task\n", Joules(all.joules),
                  text::Value(all.mean_watts, "watts"), text::Value(all.joules_per_task, "joules"));
  if (all.low < all.high) {
    out +=
        fmt::format("         between {} and {}: what shared nodes draw at rest was not measured\n",
                    text::Value(all.low, "joules"), text::Value(all.high, "joules"));
  }
  if (!std::isnan(all.processor_joules) && !std::isnan(all.gpu_joules)) {
    out += fmt::format("         of GPUs {}, the rest {}\n", text::Value(all.gpu_joules, "joules"),
                       text::Value(all.processor_joules, "joules"));
  }
  for (const std::string& what : all.missing) out += "         not in it: " + what + "\n";
  out += CarbonText(all, carbon);
  if (!all.figures.empty()) out += "\n" + FigureTable(all, env);
  if (!all.nodes.empty()) out += "\n" + NodeTable(all, env);
  return out;
}

int Energy(const EnergyOptions& options, const Environment& env) {
  const auto config = LoadConfig(env.config_path);
  if (!config.ok()) return Fail(config.status());
  const insight::CarbonOptions carbon{config->carbon_g_per_kwh, config->pue};
  return ShowFinished(options.id, env,
                      [&](const Archive& archive, const FinishedStep& step) -> Result<std::string> {
                        const auto all = insight::EnergyOf(archive, step.key, step.profile, carbon);
                        if (!all.ok()) return all.status();
                        return options.json ? insight::EnergyToJson(*all, step.profile)
                                            : EnergyText(*all, carbon, step.profile, env);
                      });
}

}  // namespace

void RegisterEnergy(Arguments app, Run& run) {
  const auto options = std::make_shared<EnergyOptions>();
  Arguments sub =
      app.Command("energy", "Show the energy of a step, by node and figure of merit, and carbon");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123_4.0; it must have ended")
      .Required();
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Energy(*options, env); };
  });
}

}  // namespace sonde::cli
