// The union of the series that several senders have, in a stable order: new ones go to the end.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "series/schema.h"

namespace sonde::tree {

class SeriesUnion {
 public:
  const std::vector<Series>& series() const { return series_; }
  size_t size() const { return series_.size(); }
  // For each of the schema's columns, the one here; adds what is not there yet.
  std::vector<uint32_t> ColumnsOf(const Schema& schema);
  // All of them; made anew only after some were added.
  const Schema::Ptr& schema();

 private:
  std::vector<Series> series_;
  std::unordered_map<std::string, uint32_t> index_;
  Schema::Ptr schema_;
};

}  // namespace sonde::tree
