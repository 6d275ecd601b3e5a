// The union of the series that several senders have, in a stable order: new ones go to the end.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "series/block/schema.h"

namespace sonde::tree {

class SeriesUnion {
 public:
  const std::vector<Series>& series() const { return series_; }
  size_t size() const { return series_.size(); }
  // How many of them have their spread.
  size_t spreads() const { return spreads_; }
  // For each of the schema's columns, the one here; adds what is not there yet.
  std::vector<uint32_t> ColumnsOf(const Schema& schema);
  // For each of its series that have their spread, the place among those here; kNoSpread if the
  // series is here without. After ColumnsOf.
  static constexpr uint32_t kNoSpread = UINT32_MAX;
  std::vector<uint32_t> SpreadsOf(const Schema& schema, const std::vector<uint32_t>& columns) const;
  // All of them; made anew only after some were added.
  const Schema::Ptr& schema();

 private:
  std::vector<Series> series_;
  std::vector<uint32_t> spread_;  // of each: its place among those that have it
  uint32_t spreads_ = 0;
  std::unordered_map<std::string, uint32_t> index_;
  Schema::Ptr schema_;
};

}  // namespace sonde::tree
