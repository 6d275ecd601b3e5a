// What a node measures and keeps: sampler, series stores and the node's own reduced values.
//
// Thread safety: none; the daemon's loop. Allocates nothing per tick while nothing changes.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/time.h"
#include "daemon/collect/sampler.h"
#include "daemon/node/record/own_reducer.h"
#include "daemon/node/record/past_rows.h"
#include "series/alarm/derived_series.h"
#include "series/query/part.h"
#include "series/store/store.h"
#include "series/store/task_ranks.h"

namespace sonde::node {

class Recorder {
 public:
  // `group`: with the node's first rank, if its series are of tasks (series/store/task_ranks.h).
  using OnSeal = std::function<void(const std::string& group, const SealedBlock& block)>;

  // `node` of `nodes`: so that they do not all seal their blocks in the same tick, and no more of
  // them in a second at first than later.
  Recorder(const collect::Sampler::Options& options, size_t memory_limit, uint32_t node,
           uint32_t nodes);

  collect::Sampler& sampler() { return sampler_; }
  void SetOnSeal(const OnSeal& f);
  void SetNode(uint32_t index);

  // What alarms need reduced besides what is measured, from the next sample on.
  void Derive(std::vector<alarms::Derived> wanted) { derived_.SetWanted(std::move(wanted)); }

  // Takes a sample and keeps it under `time`. True if the reduced schema changed.
  bool Sample(Nanos time, collect::Sampler::Extent extent = collect::Sampler::Extent::kTick);

  // Values of times that have passed, of the application's series, after the sample that has these.
  // False: there is no room for them any more.
  bool AddPast(std::span<const collect::PastValue> values, const std::vector<Series>& series);

  // The newest sample, reduced.
  const Schema::Ptr& reduced_schema() const { return reducer_.schema(); }
  const tree::SeriesUnion& reduced_series() const { return reducer_.reduced(); }
  const std::vector<Reduced>& reduced() const { return reducer_.values(); }
  tree::FrameValues reduced_frame() const { return reducer_.frame(); }

  // Bytes of all blocks sealed so far, and rows that none of them holds (of the past: values).
  uint64_t sealed_bytes() const { return sealed_bytes_; }
  uint64_t dropped_rows() const;

  // Seals what is open.
  void Seal();

  // This node's part of an answer: its series have the tag host.
  Result<QueryPart> Answer(const QuerySpec& spec, const QueryGrid& grid,
                           const std::string& host) const;

 private:
  Schema::Ptr RelativeRanks(const Schema::Ptr& schema);
  bool DeriveFrom(Nanos time);
  void Reduce();

  collect::Sampler sampler_;
  std::array<std::unique_ptr<GroupStore>, collect::kGroups> stores_;
  PastRows past_;
  std::array<Schema::Ptr, collect::kGroups> schemas_;
  uint32_t first_rank_ = kNoRank;  // from which the stores tell ranks, once there is one
  Nanos time_ = 0;                 // of the newest sample
  uint64_t sealed_bytes_ = 0;
  alarms::DerivedSeries derived_;
  tree::OwnReducer reducer_;  // of the groups and, as one more, what is derived
};

}  // namespace sonde::node
