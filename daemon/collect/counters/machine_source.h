// The node's energy and memory traffic, as counters beside the processors tell them.
//
// machine_events.h finds which counters there are; the launcher opens them if the step may have
// them, and hands over the descriptors. They are read once a second at most, as each read asks a
// processor of the node; at the ticks between, their values are missing. Energy that anybody may
// read by powercap is left to the power source.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/unique_fd.h"
#include "daemon/collect/counters/machine_events.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

class MachineSource final : public Source {
 public:
  MachineSource(const Roots& roots, int level);

  // The events that the launcher is to open, in this order.
  std::vector<launch::MachineEvent> events() const;
  // What the launcher has opened, from event `first` on: descriptors, which belong to this source
  // from now on, or -errno.
  void Take(size_t first, std::span<const int> descriptors);
  // The step may not have these counters.
  void Refuse();
  // While the step is suspended the node may be another's: nothing is counted, and nothing read.
  void SetPaused(bool paused);

  std::string_view name() const override { return "machine"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;
  void SampleLast(Nanos now) override { ReadAll(now); }

 private:
  struct Opened {
    UniqueFd fd;
    size_t series;
    double scale;
  };

  void ReadAll(Nanos now);
  size_t SeriesOf(const MachineCounter& counter);

  std::vector<MachineCounter> counters_;
  std::vector<Opened> opened_;
  std::vector<bool> whole_;  // by series: all of its counters were opened
  Nanos read_at_ = 0;
  bool refused_ = false;
  bool paused_ = false;
};

std::vector<MetricDecl> MachineMetrics();

}  // namespace sonde::collect
