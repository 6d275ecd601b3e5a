// Finds the values of counters before a time, from as few stored blocks as possible.
//
// Within one daemon's series no counter falls (daemon/collect/sampler.h), so its last point before
// the time is enough: mostly that of the newest block. If a node's daemon was restarted, the series
// has points of several daemons. The first and last point of each daemon then show whether the next
// daemon went on or began anew (series/query/counter.cc adds them up).
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/status.h"
#include "profiles/model/block_key.h"
#include "series/block/block.h"
#include "series/store/store.h"

namespace sonde {

class CountedBefore {
 public:
  // Columns of a block, each with the index of its series.
  using Columns = std::vector<std::pair<size_t, size_t>>;
  // A block that begins before the time.
  struct Place {
    BlockKey key;
    BlockInfo info;
    const Columns* columns = nullptr;  // columns of the wanted counters; they outlive this object
  };
  // Gives those columns of the block, in that order.
  using Read = std::function<Result<Block>(const Place& place, const Columns& columns)>;

  explicit CountedBefore(Nanos time) : time_(time) {}
  // A block that is read only if it is needed.
  void Add(Place place) { places_.push_back(std::move(place)); }
  // A counter's values in a block that was read.
  void Take(uint32_t node, size_t series, std::span<const Nanos> times,
            std::span<const double> values);
  // By the index of the series. Blocks that cannot be read are passed over.
  std::map<size_t, std::vector<Point>> Find(const Read& read);

 private:
  using SeriesOfNode = std::pair<size_t, uint32_t>;
  using Found = std::map<SeriesOfNode, Point>;
  // Looks through the blocks in their order and keeps for each series the point that is foremost by
  // `ahead`. `may_have`: whether a block may have a point ahead of the given time.
  void Look(const Read& read, const std::function<bool(const SeriesOfNode&)>& wanted,
            const std::function<bool(const BlockInfo&, Nanos)>& may_have,
            const std::function<bool(Nanos, Nanos)>& ahead, Found& found) const;

  const Nanos time_;
  std::vector<Place> places_;
  Found lasts_, firsts_;  // of the blocks that were read
};

}  // namespace sonde
