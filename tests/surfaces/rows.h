// The model of the step's rows: what the head's record has of each tick, from what has arrived, by
// the rules of docs/queries.md ("Counters") and docs/transport.md ("Frames"). It is told when a row
// is made, and from then on knows by itself what is in it.
//
// A gauge is of the nodes whose sample of the tick has arrived, in time or late. A counter is of
// all nodes that ever counted: of a node that is not in the row it has what had arrived of the
// ticks before, and of one that has ended what the node had at its end.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/surfaces/algebra.h"
#include "tests/surfaces/cluster.h"
#include "tests/surfaces/plan.h"

namespace sonde::surfaces {

// One value of a row, and who measured it.
struct Entry {
  double value = 0;
  uint32_t daemon = 0;
  uint32_t task = kNobody;
};
using Entries = std::vector<Entry>;

struct Extreme {
  double value = 0;
  uint32_t daemon = 0;
  uint32_t task = kNobody;
};

class Rows final : public Witness {
 public:
  // `clock`: the step's.
  explicit Rows(const StepPlan& plan) : plan_(plan), known_(plan.daemons.size()) {}
  void UseClock(const Clock& clock) { clock_ = &clock; }

  void OnJoined(uint32_t daemon) override { known_[daemon].joined = true; }
  void OnArrived(uint32_t daemon, const Sample& sample) override;
  void OnLost(uint32_t daemon) override;
  void OnRow(Nanos tick) override;
  // The last row, with what all had at their ends.
  void OnFinish(Nanos time);

  struct Row {
    std::set<uint32_t> nodes;          // whose samples are in it
    std::set<uint32_t> stood_in;       // for whom other values of their own stand
    std::map<size_t, Entries> values;  // by series; without tasks
    std::map<size_t, std::vector<double>> spreads;
  };
  const std::map<Nanos, Row>& rows() const { return rows_; }
  Nanos newest() const { return rows_.empty() ? 0 : rows_.rbegin()->first; }

  // Whether all daemons that came are in all rows, up to the one that is asked for.
  bool steady() const;
  bool any_gone() const;

 private:
  struct Known {
    bool joined = false;
    bool ended = false;  // its last values have arrived
    Nanos lost_at = 0;
    std::set<Nanos> ticks;             // whose samples have arrived
    std::map<size_t, Entries> newest;  // the last that is known of each series
  };

  Entries ValuesOf(uint32_t daemon, const Sample& sample, size_t series) const;
  bool Counts(size_t series) const {
    return plan_.series[series].series.metric.type == MetricType::kCounter;
  }
  std::map<size_t, Entries> KnownBefore(uint32_t daemon, Nanos tick) const;
  bool Contributes(uint32_t daemon, Nanos tick, size_t series) const;
  void AddSample(uint32_t daemon, const Sample& sample, Row& row);
  void AddSpreads(uint32_t daemon, const Sample& sample, Row& row);
  void AddAbsent(Nanos tick, Row& row);
  void AddLate(uint32_t daemon, const Sample& sample);

  const StepPlan& plan_;
  const Clock* clock_ = nullptr;
  std::vector<Known> known_;                                                  // by daemon
  std::map<Nanos, std::vector<std::pair<uint32_t, const Sample*>>> waiting_;  // by tick
  std::map<Nanos, Row> rows_;
};

// Their values, and the sum of these without their signs.
std::pair<std::vector<double>, double> ValuesOf(const Entries& entries);
// The number of the whole step by the metric's reduction; NaN of nothing. Within the roundings of a
// sum in any order.
Number NumberOf(const Entries& entries, const Metric& metric);
Extreme LeastOf(const Entries& entries);
Extreme MostOf(const Entries& entries);

}  // namespace sonde::surfaces
