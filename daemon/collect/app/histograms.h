// The application's histograms on this node: of each rank as ordinary series, and of all ranks
// together as sketches for the tree.
//
// A rank's histogram NAME is recorded as the counters NAME_count and NAME_sum, and as the gauges
// NAME_p50, NAME_p99 and NAME_max of the observations since the last tick, missing without any.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/metric.h"
#include "daemon/collect/app/distributions.h"
#include "daemon/collect/app/moments.h"
#include "series/sketch/sketch.h"

namespace sonde::collect {

class AppHistograms {
 public:
  // The series of a histogram, in this order.
  enum : size_t { kCount, kSum, kMedian, kP99, kMax, kSeries };
  static std::array<Series, kSeries> SeriesOf(const Series& histogram);

  // The number of a rank's histogram by its SeriesName.
  std::optional<uint32_t> Find(const std::string& name) const;
  // A new one, with the tag `task`, and the columns of its series.
  uint32_t Add(std::string name, const Series& histogram, std::array<uint32_t, kSeries> columns);
  uint32_t ColumnOf(uint32_t number, size_t series) const { return ranks_[number].columns[series]; }

  // What a process of the rank observed.
  void Observe(uint32_t number, const AppObservations& observations);

  // At a tick: writes the gauges of the observations since the last tick.
  void Fill(std::span<double> values);

  // The observations of all ranks up to the last tick that were not taken yet; no empty sketches.
  void Take(Moments& out);

 private:
  struct Rank {
    std::array<uint32_t, kSeries> columns;
    uint32_t node;  // number in nodes_
    Sketch came;
  };
  // Of all ranks.
  struct Node {
    Series series;  // without the tag `task`
    Sketch came;
  };

  uint32_t NodeOf(const Series& histogram);

  std::vector<Rank> ranks_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t> rank_numbers_;  // by SeriesName
  std::unordered_map<std::string, uint32_t> node_numbers_;
  std::vector<uint32_t> came_;    // ranks that observed since the last tick
  std::vector<uint32_t> filled_;  // ranks whose gauges have values
};

}  // namespace sonde::collect
