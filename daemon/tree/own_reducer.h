// A node's own rows as reduced values: what it contributes to its frames.
//
// Series that differ only in the tag `task` become one, owned by node and rank; everything else
// keeps its tags and is owned by the node.
//
// Thread safety: none. Allocates nothing per tick while the schemas stay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "series/reduced.h"
#include "series/schema.h"

namespace sonde::tree {

class OwnReducer {
 public:
  // The node's groups' schemas, in a fixed order; nullptr for an empty group. True if the reduced
  // schema changed.
  bool SetSchemas(std::span<const Schema::Ptr> groups);
  const Schema::Ptr& schema() const { return schema_; }
  void SetNode(uint32_t node);

  void Begin();
  // The values of group `i`, by its schema.
  void Add(size_t group, std::span<const double> row);
  const std::vector<Reduced>& values() const { return values_; }

 private:
  struct Column {
    uint32_t reduced;
    Owner owner;
  };
  std::vector<Schema::Ptr> groups_;
  std::vector<std::vector<Column>> columns_;  // by group
  Schema::Ptr schema_;
  std::vector<Reduced> values_;
  uint32_t node_ = 0;
};

}  // namespace sonde::tree
