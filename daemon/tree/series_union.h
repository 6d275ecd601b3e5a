// The union of the series that several senders have, in a stable order: new ones go to the end.
//
// It has no more than a schema has room for (SchemaRoom), so that every receiver takes it: the
// first ones stay, those that come later are left out and counted. An application may tell of any
// number, by a tag of its processes or times.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "series/block/schema.h"

namespace sonde::tree {

class SeriesUnion {
 public:
  // The column of a series that is left out.
  static constexpr uint32_t kLeftOut = UINT32_MAX;

  const std::vector<Series>& series() const { return series_; }
  size_t size() const { return series_.size(); }
  // How many of them have their spread.
  size_t spreads() const { return spreads_; }
  // The series' column, or kLeftOut; adds it if it is not there yet.
  uint32_t ColumnOf(const Series& series);
  // For each of the schema's columns.
  std::vector<uint32_t> ColumnsOf(const Schema& schema);
  // For each of its series that have their spread, the place among those here; kNoSpread if the
  // series is here without. After ColumnsOf.
  static constexpr uint32_t kNoSpread = UINT32_MAX;
  std::vector<uint32_t> SpreadsOf(const Schema& schema, const std::vector<uint32_t>& columns) const;
  // All of them; made anew only after some were added.
  const Schema::Ptr& schema();

  // The series that were left out so far: each counts once, and at most kMaxSeries are counted.
  size_t left_out() const { return left_out_.size(); }
  // For the profile's reader.
  std::string LeftOutNote() const;

 private:
  uint32_t Add(std::string name, const Series& series);
  void LeaveOut(std::string name);

  std::vector<Series> series_;
  std::vector<uint32_t> spread_;  // of each: its place among those that have it
  uint32_t spreads_ = 0;
  std::unordered_map<std::string, uint32_t> index_;
  Schema::Ptr schema_;
  SchemaRoom room_;
  std::unordered_set<uint64_t> left_out_;  // hashes of their names
  std::string first_left_out_;
};

}  // namespace sonde::tree
