// A node's values of the past (series/store/past.h), as rows of their ticks.
//
// Thread safety: none; the daemon's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/time.h"
#include "daemon/collect/app/past.h"
#include "series/block/schema.h"
#include "series/store/store.h"

namespace sonde::node {

class PastRows {
 public:
  // `memory_limit`: of all blocks that are made of what is told, in bytes; then no more is kept. So
  // nothing that was kept is forgotten.
  PastRows(size_t memory_limit, Nanos period);

  // False: there is no room for them any more. `series`: by the values' columns. Ticks are
  // those that are nearest to the values' times, up to `newest`. `stored`: what the store has for
  // such a schema (ranks relative to the node's).
  bool Add(std::span<const collect::PastValue> values, const std::vector<Series>& series,
           Nanos newest, const std::function<Schema::Ptr(const Schema::Ptr&)>& stored);
  const GroupStore& store() const { return store_; }
  void OnSeal(const std::function<void(const SealedBlock&)>& f);
  void Seal() { store_.Seal(); }
  // Values that were not kept.
  uint64_t dropped() const { return dropped_; }

 private:
  // Schemas may take so many times the room of blocks: that of many series is large.
  static constexpr size_t kSchemas = 8;

  bool IsFull() const { return sealed_ >= memory_limit_ || schemas_ >= kSchemas * memory_limit_; }
  void FindColumns(std::span<const collect::PastValue> values, const std::vector<Series>& series);

  const size_t memory_limit_;
  const Nanos period_;
  GroupStore store_;
  std::vector<Series> series_;                      // by column of the store
  std::unordered_map<uint32_t, uint32_t> columns_;  // of the application -> of the store
  bool grown_ = false;
  size_t sealed_ = 0;   // bytes of all blocks
  size_t schemas_ = 0;  // and of what they have for schemas
  Schema::Ptr last_schema_;
  uint64_t dropped_ = 0;
};

}  // namespace sonde::node
