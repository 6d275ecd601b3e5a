// A data source with one step that is made by formula: of any number of nodes, an hour long, with
// two ranks on each node unless it is told otherwise, MPI, a GPU, phases, and devices that do
// nothing. Points are made when they are asked for, so that 10,000 nodes take no memory.
//
// One node (Slow) computes less and waits less than the others from the middle on, one (Away) has
// no samples for five minutes, and every twentieth comes ten minutes late.
//
// There is a sample a second, of more ranks than kMany nodes usually have one every half minute.
//
// Thread safety: that of DataSource.
#pragma once

#include <string>
#include <vector>

#include "web/source/data_source.h"

namespace sonde::web {

class MadeStep final : public DataSource {
 public:
  static constexpr int kSeconds = 3600;
  static constexpr int kMany = 100;
  static constexpr int kUsualRanks = 2;  // of a node

  // `now`: when it is asked; the step ended a minute before, or runs.
  MadeStep(int nodes, Nanos now, bool running, int ranks = kUsualRanks);

  int Slow() const { return nodes_ / 3; }
  int Away() const { return nodes_ / 2; }

  void Jobs(size_t limit, JobsCallback callback) const override;
  void GetProfile(const JobStep& id, ProfileCallback callback) const override;
  void Conclude(const JobStep& id, const std::string& of, ConcludeCallback callback) const override;
  void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const override;
  void Query(const QuerySpec& spec, Callback callback) const override;

 private:
  struct Shape;
  static const std::vector<Shape>& Shapes();
  Series SeriesOf(const Shape& shape, size_t value, int node, int rank) const;
  std::vector<SeriesData> Make(const QuerySpec& spec, const SeriesFilter& filter) const;
  void AddPoints(const Shape& shape, size_t value, int node, const TimeRange& range,
                 SeriesData& data) const;
  double ValueOf(const Shape& shape, size_t value, int node, double t) const;
  void AddFootprint(const Shape& shape);
  bool IsThere(int node, int64_t second) const;

  int nodes_;
  int ranks_;   // of a node
  int period_;  // s
  Profile profile_;
};

}  // namespace sonde::web
