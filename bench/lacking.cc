// What a row of the whole step that lacks a node costs the head's loop, for steps of 1,000, 10,000
// and 100,000 nodes: CPU time of the alarms, and of keeping who is in the rows, when it is another
// node at every tick. In a large step somebody may be late at most ticks.
// usage: bench_lacking [NODES...]
#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/growth.h"
#include "core/log.h"
#include "daemon/head/alarms/alarms.h"
#include "daemon/head/record/presence.h"
#include "daemon/step_clock.h"

namespace sonde::head {
namespace {

constexpr int kRows = 20'000;
constexpr int kOpenRows = 100;  // of which those who were in them may still change

// Hears of alarms, and does nothing.
class Nobody final : public Alarms::Owner {
 public:
  void Derive(const std::string& /*payload*/) override {}
  void Remark(const collect::Moments& /*moments*/) override {}
  void OnAlarmsChanged() override {}
};

LaunchMessage Launch() {
  LaunchMessage launch;
  launch.job.id = {"7", "0"};
  launch.job.period = kSecond;
  return launch;
}

void MeasureStep(uint32_t nodes) {
  Loop loop;
  StepClock clock;
  const LaunchMessage launch = Launch();
  StepRecord record(launch.job);
  Nobody nobody;
  Config config;
  config.alarms = true;
  Alarms alarms(loop, clock, record, launch, config, "", nobody);
  tree::NodeSet all;
  for (uint32_t i = 0; i < nodes; ++i) {
    alarms.OnNode(i);
    all.Add(tree::NodeSet(i));
  }
  std::vector<tree::TickMerger::Row> rows(2 * kRows);
  const Nanos first = (clock.Now() / kSecond + 10) * kSecond;
  for (size_t i = 0; i < rows.size(); ++i) {
    const tree::NodeSet lacking(static_cast<uint32_t>(i * 7919 % nodes));
    rows[i].tick = first + static_cast<Nanos>(i) * kSecond;
    rows[i].nodes = all.Without(lacking);
  }
  // The alarm is raised within the first half of them, and then stays.
  const auto half = rows.begin() + kRows;
  for (auto row = rows.begin(); row != half; ++row) alarms.OnRow(*row, {});
  growth::Measure("alarms", "", nodes, kRows, [&] {
    for (auto row = half; row != rows.end(); ++row) alarms.OnRow(*row, {});
  });
  Presence presence(kSecond);
  presence.OnRow(first - kSecond, all);
  record.SetPresence(presence.Runs());
  growth::Measure("presence", "", nodes, kOpenRows, [&] {
    for (auto row = rows.begin(); row != rows.begin() + kOpenRows; ++row) {
      presence.OnRow(row->tick, row->nodes);
      if (presence.changed()) record.SetPresence(presence.Runs());
    }
  });
}

}  // namespace
}  // namespace sonde::head

int main(int argc, char** argv) {
  const auto sizes = sonde::growth::Sizes(argc, argv, 17, {1000, 10'000, 100'000});
  sonde::log::Discard("bench_lacking");
  for (const uint32_t nodes : sizes) sonde::head::MeasureStep(nodes);
}
