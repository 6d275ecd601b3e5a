#include "cli/roofline/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "cli/roofline/plot.h"
#include "cli/step/step_of.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using insight::RooflinePhase;
using insight::StepRoofline;

constexpr char kWhole = '*';
constexpr size_t kMostLetters = 26;
constexpr size_t kPlotWidth = 80;

// '*' is the step, A to Z its phases; the others have no letter.
char LetterOf(size_t phase) { return phase < kMostLetters ? static_cast<char>('A' + phase) : ' '; }

std::string Plot(const StepRoofline& all, const Environment& env) {
  std::vector<PlottedPhase> plotted;
  // First those that are to stand where they are.
  plotted.push_back({kWhole, all.step.placed.intensity, all.step.placed.flops});
  for (size_t i = 0; i < std::min(all.phases.size(), kMostLetters); ++i) {
    plotted.push_back({LetterOf(i), all.phases[i].placed.intensity, all.phases[i].placed.flops});
  }
  PlotSize size;
  size.width = std::min(kPlotWidth, env.width);
  return RooflinePlot(plotted, all.roof, size, env.unicode);
}

std::string BoundText(const RooflinePhase& phase) {
  using insight::RoofBound;
  if (phase.placed.bound == RoofBound::kUnknown) return "-";
  return std::string(ToString(phase.placed.bound));
}

// All that were placed, the step first.
std::string PlacedTable(const StepRoofline& all, const Environment& env) {
  using enum text::Table::Align;
  text::Table table({{"", kLeft},
                     {"phase", kLeft, true},
                     {"lasts", kRight},
                     {"FLOP/s", kRight},
                     {"bytes/s", kRight},
                     {"FLOP/byte", kRight},
                     {"bound", kLeft},
                     {"of the roof", kRight},
                     {"CPU", kRight, false, 1}});
  const auto row = [&](char letter, const RooflinePhase& phase) {
    const insight::Placed& p = phase.placed;
    const double used = phase.evidence.busy_cpus / phase.evidence.cpus;
    table.Row({std::string(1, letter), text::Printable(phase.name), text::Seconds(phase.seconds),
               text::Value(p.flops, "flops_per_second"),
               text::Value(p.bytes_per_second, "bytes_per_second"),
               std::isfinite(p.intensity) ? text::Number(p.intensity) : "-", BoundText(phase),
               text::Percent(p.share), text::Percent(used)});
  };
  row(kWhole, all.step);
  for (size_t i = 0; i < all.phases.size(); ++i) row(LetterOf(i), all.phases[i]);
  return table.Render("", env.width);
}

// By what else was measured: the numbers, and then a line for each.
std::string JudgedText(const StepRoofline& all, const Environment& env) {
  using enum text::Table::Align;
  text::Table table({{"phase", kLeft, true},
                     {"lasts", kRight},
                     {"CPU", kRight},
                     {"instr./cycle", kRight},
                     {"cache misses", kRight},
                     {"memory stalls", kRight},
                     {"bound by", kLeft}});
  std::string lines;
  const auto row = [&](const RooflinePhase& phase) {
    const insight::Evidence& e = phase.evidence;
    table.Row({text::Printable(phase.name), text::Seconds(phase.seconds),
               text::Percent(e.busy_cpus / e.cpus), text::Number(e.instructions_per_cycle),
               text::Percent(e.cache_miss_ratio), text::Percent(e.memory_stall_ratio),
               std::string(phase.bottleneck.what)});
    lines += fmt::format("{}: {}\n", text::Printable(phase.name), phase.bottleneck.why);
  };
  row(all.step);
  for (const RooflinePhase& phase : all.phases) row(phase);
  return table.Render("", env.width) + "\n" + lines;
}

// As a sentence begins.
std::string Capital(std::string text) {
  if (!text.empty()) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string RoofText(const StepRoofline& all) {
  if (!(all.roof.flops > 0)) return Capital(text::Printable(all.no_roof)) + ".\n";
  return fmt::format("Roof of {} CPUs: {}, {} from memory, ridge at {} FLOP per byte\n",
                     text::Number(all.cpus), text::Value(all.roof.flops, "flops_per_second"),
                     text::Value(all.roof.bytes_per_second, "bytes_per_second"),
                     text::Number(all.roof.Ridge()));
}

}  // namespace

std::string RooflineToText(const StepRoofline& all, const Profile& profile,
                           const Environment& env) {
  std::string out = TitleOf(profile);
  for (const ProcessorType& type : all.types) {
    out += text::Printable(type.ToString()) + "\n";
  }
  out += "\n" + RoofText(all);
  if (all.counted) {
    if (all.roof.flops > 0) out += "\n" + Plot(all, env);
    out += "\n" + PlacedTable(all, env);
  }
  for (const std::string& note : all.notes) out += "\n" + Capital(text::Printable(note)) + ".\n";
  if (!all.counted) out += "By what was measured instead:\n\n" + JudgedText(all, env);
  if (!all.phases.empty()) {
    out += all.told ? "\nThe phases are those that the application told.\n"
                    : "\nThe phases are those that show in the step's series (sonde phases).\n";
  }
  return out;
}

}  // namespace sonde::cli
