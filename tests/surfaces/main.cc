// The campaign across all readers: random steps, which the product runs in this process, and whose
// every surface is compared with models that know no code of the product's (plan.h, rows.h,
// algebra.h).
//
//   surfaces [--seeds FIRST-LAST | --seed N]
//
// A seed that differs is printed, with what differs, and gives the same again by itself.
#include <fmt/core.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/log.h"
#include "profiles/archive/open_archive.h"
#include "serve/archive_source.h"
#include "tests/surfaces/cluster.h"
#include "tests/surfaces/rows.h"
#include "tests/surfaces/scene.h"
#include "tests/unit/temp_dir.h"

namespace sonde::surfaces {
namespace {

// While the step ran; the time of the step that the archive serves is not asked for.
class Ended final : public Clock {
 public:
  explicit Ended(Nanos end) : end_(end) {}
  Nanos Now() const override { return end_; }
  Nanos Monotonic() const override { return end_; }

 private:
  const Nanos end_;
};

class Campaign {
 public:
  // `tells`: what the step is.
  Campaign(Tally& tally, bool tells) : tally_(tally), tells_(tells) {}

  void Run(uint64_t seed) {
    const StepPlan plan = MakePlan(seed);
    if (tells_) Tell(plan);
    const TempDir dir(TempDir::Memory());
    Rows rows(plan);
    Cluster cluster(plan, dir.path(), rows);
    rows.UseClock(cluster.clock());
    Chance chance(seed ^ 0xa5c);
    was_silent_ = false;
    cluster.Run([&] { AskRunning(plan, rows, cluster, chance); });
    cluster.Finish();
    AskEnded(plan, rows, cluster, chance, dir.path());
  }

 private:
  void AskRunning(const StepPlan& plan, const Rows& rows, Cluster& cluster, Chance& chance) {
    const Scene scene{.plan = plan,
                      .rows = rows,
                      .chance = chance,
                      .tally = tally_,
                      .source = cluster.source(),
                      .clock = cluster.clock(),
                      .settle = [&] { cluster.Settle(); },
                      .lose_patience = [&] { cluster.LosePatience(); },
                      .job = cluster.profile().job.id.ToString(),
                      .start = plan.start,
                      .end = cluster.clock().Now(),
                      .running = true,
                      .states = cluster.states(),
                      .was_silent = was_silent_};
    was_silent_ = was_silent_ || AnySilent(scene);
    if (rows.rows().empty()) return tally_.Skip("before the first row");
    CheckOpenTsdb(scene, 8);
    CheckSeries(scene);
    CheckTraces(scene);
    CheckFigures(scene);
    CheckNodeMetrics(scene);
    CheckLive(scene);
  }

  void AskEnded(const StepPlan& plan, Rows& rows, const Cluster& cluster, Chance& chance,
                const std::string& root) {
    const JobDescription job = cluster.profile().job;
    rows.OnFinish(job.end);
    const serve::ArchiveSource source(*Archive::Open(root));
    const Ended clock(job.end);
    Scene scene{.plan = plan,
                .rows = rows,
                .chance = chance,
                .tally = tally_,
                .source = source,
                .clock = clock,
                .settle = [] {},
                .lose_patience = [] {},
                .job = job.id.ToString(),
                .start = job.start,
                .end = job.end,
                .states = cluster.states()};
    scene.archive = *Archive::Open(root);
    const auto found = scene.archive->Find(job.id);
    if (!found.ok() || found->size() != 1) return tally_.Differ("the archive has no such step");
    scene.key = found->front().key;
    CheckOpenTsdb(scene, 25);
    CheckSeries(scene);
    CheckTraces(scene);
    CheckFigures(scene);
    CheckNodeMetrics(scene);
    CheckReport(scene);
    CheckExports(scene);
  }

  static void Tell(const StepPlan& plan) {
    const auto at = [&](Nanos time) {
      return static_cast<double>(time - plan.ticks.front()) / static_cast<double>(plan.period);
    };
    fmt::print("{} ticks every {}{}, asked after", plan.ticks.size(), FormatDuration(plan.period),
               plan.tree ? ", in a tree" : "");
    for (const size_t tick : plan.asked_after) fmt::print(" {}", tick);
    fmt::print("\n");
    for (const Daemon& daemon : plan.daemons) {
      fmt::print("  {} ({} tasks): {:.3f} to {:.3f}{}", daemon.host, daemon.tasks,
                 at(daemon.joined()), at(daemon.last()), daemon.lost ? ", lost" : "");
      if (daemon.parent != kNobody) fmt::print(", to {}", plan.daemons[daemon.parent].host);
      if (daemon.replaces != SIZE_MAX) fmt::print(", anew");
      if (daemon.stuck_for > 0) {
        fmt::print(", stuck at {} for {}", daemon.stuck_from, daemon.stuck_for);
      }
      Nanos expected = daemon.samples[1].time;
      for (const Sample& sample : daemon.samples) {
        if (!sample.tick) continue;
        for (; expected < sample.time; expected += plan.period) {
          fmt::print(", without {}", at(expected));
        }
        expected += plan.period;
      }
      fmt::print("\n");
    }
  }

  Tally& tally_;
  const bool tells_;
  bool was_silent_ = false;  // a node, when the step was asked
};

struct Arguments {
  uint64_t first = 1;
  uint64_t last = 100;
  bool good = true;
};

bool ReadNumber(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Arguments Read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--seed" && ReadNumber(value, arguments.first)) {
      arguments.last = arguments.first;
      ++i;
    } else if (const size_t dash = value.find('-');
               option == "--seeds" && dash != std::string_view::npos &&
               ReadNumber(value.substr(0, dash), arguments.first) &&
               ReadNumber(value.substr(dash + 1), arguments.last)) {
      ++i;
    } else {
      arguments.good = false;
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Read(argc, argv);
  if (!arguments.good) {
    fmt::print(stderr, "usage: surfaces [--seeds FIRST-LAST | --seed N]\n");
    return 2;
  }
  log::Discard("surfaces");
  Tally tally;
  Campaign campaign(tally, arguments.first == arguments.last);
  uint64_t seeds = 0;
  uint64_t wrong = 0;
  for (uint64_t seed = arguments.first; seed <= arguments.last; ++seed, ++seeds) {
    const uint64_t before = tally.differences();
    try {
      campaign.Run(seed);
    } catch (const std::exception& e) {
      tally.Ask("", "");
      tally.Differ(e.what());
    }
    if (tally.differences() != before) {
      ++wrong;
      fmt::print("seed {}: {} differences\n", seed, tally.differences() - before);
      for (const std::string& text : tally.told()) fmt::print("  {}\n", text);
      std::fflush(stdout);
    }
    tally.Forget();
  }
  std::string skipped;
  for (const auto& [why, times] : tally.skipped()) {
    skipped += fmt::format("{}{} ({})", skipped.empty() ? "" : ", ", times, why);
  }
  fmt::print("{} steps (seeds {} to {}), {} questions, {} numbers, {} differences in {} steps; ",
             seeds, arguments.first, arguments.last, tally.questions(), tally.numbers(),
             tally.differences(), wrong);
  fmt::print("not compared: {}\n", skipped.empty() ? "nothing" : skipped);
  return tally.differences() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sonde::surfaces

int main(int argc, char** argv) { return sonde::surfaces::Main(argc, argv); }
