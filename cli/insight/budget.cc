// sonde budget: for what a finished step spent the CPU time that its tasks were allotted.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/step/step_of.h"
#include "insight/steps/step_budget.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using insight::Budget;
using insight::kSpentKinds;
using insight::Spent;
using insight::StepBudget;

constexpr size_t kBarWidth = 80;
constexpr size_t kMostShown = 3;        // of the nodes or ranks with most of something
constexpr double kLeastAwaited = 0.01;  // of the CPU time
constexpr std::array<std::string_view, kSpentKinds> kTitles = {
    "computing", "MPI wait", "MPI move", "I/O", "GPU wait", "stolen", "idle"};
// Full, dark, medium and light shades, halves, and nothing for idle time.
constexpr std::array<std::string_view, kSpentKinds> kBlocks = {
    "\u2588", "\u2592", "\u2593", "\u2584", "\u259a", "\u2573", "\u2591"};
constexpr std::array<std::string_view, kSpentKinds> kLetters = {"#", "w", "m", "o", "g", "x", "."};

struct BudgetOptions {
  std::string id;
  std::string by = "phase";
  bool json = false;
};

std::string_view MarkOf(size_t kind, const Environment& env) {
  return env.unicode ? kBlocks[kind] : kLetters[kind];
}

std::string PercentText(double share) { return std::isnan(share) ? "-" : text::Percent(share); }

double ShareOrNone(const Budget& budget, size_t kind) {
  const double share = budget.Share(static_cast<Spent>(kind));
  return std::isnan(share) ? 0 : share;
}

// Each kind as wide as its share: ends are rounded, so all are as wide as the bar together.
std::string BarOf(const Budget& budget, const Environment& env) {
  const size_t width = std::min(kBarWidth, std::max<size_t>(env.width, 20));
  std::string bar;
  double until = 0;
  size_t drawn = 0;
  for (size_t k = 0; k < kSpentKinds; ++k) {
    until += ShareOrNone(budget, k);
    const auto end =
        std::min(width, static_cast<size_t>(std::lround(until * static_cast<double>(width))));
    for (; drawn < end; ++drawn) bar += MarkOf(k, env);
  }
  return bar + "\n";
}

std::string WholeText(const StepBudget& all, const Environment& env) {
  std::string out = BarOf(all.whole, env) + "\n";
  for (size_t k = 0; k < kSpentKinds; ++k) {
    const auto kind = static_cast<Spent>(k);
    const insight::Source& source = all.sources[k];
    const std::string first =
        fmt::format("{} {:<16} {:>6}  {:<9}  ", MarkOf(k, env), NameOf(kind),
                    PercentText(all.whole.Share(kind)), ToString(source.certainty));
    out += text::Wrapped(first, std::string(text::Width(first), ' '), source.text, env.width);
  }
  return out;
}

std::string EfficiencyText(const insight::Efficiency& efficiency) {
  if (std::isnan(efficiency.parallel)) return "";
  return fmt::format("parallel efficiency {} = load balance {} * communication efficiency {}\n",
                     text::Percent(efficiency.parallel), text::Percent(efficiency.load_balance),
                     text::Percent(efficiency.communication));
}

// A table whose rows begin with some cells of their own.
class BudgetTable {
 public:
  explicit BudgetTable(std::vector<text::Table::Column> first, bool efficiency = false)
      : table_([&] {
          for (const std::string_view title : kTitles) {
            first.push_back({std::string(title), text::Table::Align::kRight});
          }
          if (efficiency) {
            first.push_back({"balance", text::Table::Align::kRight});
            first.push_back({"comm.", text::Table::Align::kRight});
          }
          return text::Table(std::move(first));
        }()) {}
  void Row(std::vector<std::string> cells, const Budget& budget,
           const insight::Efficiency* efficiency = nullptr) {
    for (size_t k = 0; k < kSpentKinds; ++k) {
      cells.push_back(PercentText(budget.Share(static_cast<Spent>(k))));
    }
    if (efficiency != nullptr) {
      cells.push_back(PercentText(efficiency->load_balance));
      cells.push_back(PercentText(efficiency->communication));
    }
    table_.Row(std::move(cells));
  }
  std::string Render(const Environment& env) const { return table_.Render("", env.width); }

 private:
  text::Table table_;
};

std::string PhaseText(const StepBudget& all, const Profile& profile, const Environment& env) {
  if (all.phases.empty()) return "\nNo phases: none were told, and none show in the series.\n";
  using enum text::Table::Align;
  BudgetTable table({{"phase", kLeft, true}, {"begins", kRight}, {"lasts", kRight}}, true);
  for (const insight::PhaseBudget& phase : all.phases) {
    const double begins = static_cast<double>(phase.begin - profile.job.start) / kSecond;
    table.Row({text::Printable(phase.name), text::Seconds(std::max(0.0, begins)),
               text::Seconds(phase.seconds)},
              phase.budget, &phase.efficiency);
  }
  const std::string_view title = all.phases_told ? "Phases that the application told"
                                                 : "Phases that show in the step's series";
  return fmt::format("\n{}\n{}", title, table.Render(env));
}

std::string NodeTable(const StepBudget& all, const Environment& env) {
  using enum text::Table::Align;
  BudgetTable table({{"node", kLeft, true}, {"ranks", kRight}});
  for (const insight::NodeBudget& node : all.nodes) {
    table.Row({text::Printable(node.host), std::to_string(node.ranks)}, node.budget);
  }
  return "\n" + table.Render(env);
}

std::string PollsText(const insight::RankBudget& rank) {
  if (!rank.mpi) return "-";
  if (!rank.in_mpi.found) return "assumed";
  return rank.in_mpi.polls ? "yes" : "no";
}

// "-" for what is not known, and where nobody waited: a column of "-" is left out.
std::string AwaitedCell(double seconds) { return seconds > 0 ? text::Seconds(seconds) : "-"; }

std::string RankTable(const StepBudget& all, const Environment& env) {
  using enum text::Table::Align;
  BudgetTable table({{"rank", kRight},
                     {"node", kLeft, true},
                     {"MPI polls", kLeft},
                     {"awaited", kRight},
                     {"in receives", kRight}});
  for (const insight::RankBudget& rank : all.ranks) {
    table.Row({std::to_string(rank.who.rank), text::Printable(rank.who.host), PollsText(rank),
               AwaitedCell(rank.awaited), AwaitedCell(rank.awaited_in_receives)},
              rank.budget);
  }
  return "\n" + table.Render(env);
}

struct Named {
  std::string name;
  const Budget* budget;
};

// "most computing: rank 3 on n4 81 %, ...": those with most of something; "" if nobody has any.
using NamedNumber = std::pair<std::string, double>;
std::string TopOf(std::string_view title, std::vector<NamedNumber> all,
                  std::string (*text)(double)) {
  if (all.empty()) return "";
  std::stable_sort(all.begin(), all.end(),
                   [](const NamedNumber& a, const NamedNumber& b) { return a.second > b.second; });
  std::string out = fmt::format("{}: ", title);
  for (size_t i = 0; i < std::min(kMostShown, all.size()); ++i) {
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", all[i].first, text(all[i].second));
  }
  return out + "\n";
}

std::string MostOf(const std::vector<Named>& all, Spent kind) {
  std::vector<NamedNumber> shares;
  for (const Named& one : all) {
    const double share = one.budget->Share(kind);
    if (share > 0) shares.emplace_back(one.name, share);
  }
  return TopOf(fmt::format("most {}", NameOf(kind)), std::move(shares), text::Percent);
}

std::string RankName(const insight::RankBudget& rank) {
  return fmt::format("rank {} on {}", rank.who.rank, text::Printable(rank.who.host));
}

std::string AwaitedText(std::string_view title, const StepBudget& all,
                        double insight::RankBudget::*awaited) {
  std::vector<NamedNumber> seconds;
  for (const insight::RankBudget& rank : all.ranks) {
    if (rank.*awaited >= kLeastAwaited * all.whole.whole()) {
      seconds.emplace_back(RankName(rank), rank.*awaited);
    }
  }
  return TopOf(title, std::move(seconds), text::Seconds);
}

std::string AwaitedText(const StepBudget& all) {
  using insight::RankBudget;
  return AwaitedText("awaited by the others in collectives", all, &RankBudget::awaited) +
         AwaitedText("awaited by the others in receives", all, &RankBudget::awaited_in_receives);
}

std::string MostOfAll(const std::vector<Named>& all) {
  std::string out;
  if (all.size() < 2) return out;
  for (const Spent kind : {Spent::kComputing, Spent::kMpiWaiting, Spent::kIo, Spent::kStolen}) {
    out += MostOf(all, kind);
  }
  return out;
}

std::string MostText(const StepBudget& all) {
  std::vector<Named> ranks, nodes;
  for (const insight::RankBudget& rank : all.ranks) {
    ranks.push_back({RankName(rank), &rank.budget});
  }
  for (const insight::NodeBudget& node : all.nodes) {
    nodes.push_back({"node " + text::Printable(node.host), &node.budget});
  }
  std::string out = MostOfAll(ranks) + AwaitedText(all);
  if (nodes.size() < ranks.size()) out += MostOfAll(nodes);
  return out.empty() ? "" : "\n" + out;
}

std::string BudgetText(const StepBudget& all, const BudgetOptions& options, const Profile& profile,
                       const Environment& env) {
  std::string out = TitleOf(profile) + "\n";
  if (!(all.whole.whole() > 0)) {
    return out + "The profile has no CPU time of tasks, which is measured from level 2 on.\n";
  }
  out += WholeText(all, env);
  out += fmt::format("\nof {} of CPU time, {} CPU{} a task{}\n", text::Seconds(all.whole.whole()),
                     text::Number(all.cpus), all.cpus == 1 ? "" : "s",
                     all.cpus_told ? "" : " (assumed)");
  if (all.nodes_read < profile.job.nodes.size()) {
    out += fmt::format("{} of {} nodes were read, spread over the step\n", all.nodes_read,
                       profile.job.nodes.size());
  }
  out += EfficiencyText(all.efficiency);
  if (options.by == "node") return out + NodeTable(all, env);
  if (options.by == "rank") return out + RankTable(all, env);
  return out + PhaseText(all, profile, env) + MostText(all);
}

int ShowBudget(const BudgetOptions& options, const Environment& env) {
  return ShowFinished(options.id, env,
                      [&](const Archive& archive, const FinishedStep& step) -> Result<std::string> {
                        const auto all = insight::BudgetOf(archive, step.key, step.profile);
                        if (!all.ok()) return all.status();
                        return options.json ? insight::BudgetToJson(*all, step.profile)
                                            : BudgetText(*all, options, step.profile, env);
                      });
}

}  // namespace

void RegisterBudget(Arguments app, Run& run) {
  const auto options = std::make_shared<BudgetOptions>();
  Arguments sub =
      app.Command("budget", "Say for what a step spent its CPU time: computing, MPI, I/O, waiting");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123_4.0; it must have ended")
      .Required();
  sub.Option("--by", options->by, "What the table has a row for")
      .OneOf({"phase", "node", "rank"})
      .ShowDefault();
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return ShowBudget(*options, env); };
  });
}

}  // namespace sonde::cli
