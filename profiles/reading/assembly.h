// Makes a profile's footprint and coverage from its reduced rows, for profiles whose writer could
// not do it.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/job.h"
#include "profiles/model/footprint.h"
#include "profiles/model/profile.h"
#include "series/block/block.h"
#include "series/block/schema.h"
#include "series/query/counter_total.h"
#include "series/store/reduced.h"

namespace sonde {

class Assembly {
 public:
  // `job` must outlive this object.
  explicit Assembly(const JobDescription& job) : job_(job) {}

  // A row of a reduced block; rows of a group come in the order of time.
  void AddRow(const std::string& group, const Schema::Ptr& schema, const Block& block, size_t row);
  std::vector<FootprintEntry> Footprint() const;
  // How many nodes each row has.
  const std::map<Nanos, double>& NodesAt() const {
    return nodes_at_.empty() ? others_at_ : nodes_at_;
  }

 private:
  const JobDescription& job_;
  RowNodes nodes_;
  std::map<std::string, FootprintBuilder> groups_;
  std::map<Nanos, double> nodes_at_;
  std::map<Nanos, double> others_at_;
  Schema::Ptr schema_;  // of the previous row
  std::vector<Series> base_;
  FootprintBuilder* builder_ = nullptr;
  std::vector<double> columns_;
  std::vector<Reduced> row_;
  std::vector<Spread> spreads_;
};

}  // namespace sonde
