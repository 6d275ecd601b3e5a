// One reading of a GroupStore that holds its owner's lock only for short copies: never while blocks
// are decoded or names are looked at.
//
//   GroupReading reading(wanted, start, end);
//   do {
//     { lock; reading.Share(store); }
//     reading.Choose();
//   } while (!(lock, reading.TakeOpen(store)));
//   ... = reading.Finish();
//
// So the owner's appends need not wait for a reader that decodes. This matters on a busy machine: a
// reader of less priority may be interrupted for long while it holds the lock.
//
// Thread safety: a reading is one thread's; Share and TakeOpen with the store's lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "series/store/store.h"

namespace sonde {

// Decoded columns of sealed blocks, kept for repeated questions; all are dropped when they are too
// many.
//
// Thread safety: every method from any thread.
class ColumnCache {
 public:
  struct Columns {
    std::shared_ptr<const std::vector<Nanos>> times;
    std::map<size_t, std::shared_ptr<const std::vector<double>>> values;  // by column
  };

  explicit ColumnCache(size_t limit) : limit_(limit) {}

  // The wanted columns of a block; decodes and keeps those that the cache does not have.
  Result<Columns> Read(const SealedBlock& block, const std::vector<bool>& wanted);
  // Blocks before this sequence are not asked for again.
  void ForgetBefore(uint64_t sequence);

 private:
  Columns Known(uint64_t sequence, const std::vector<bool>& wanted) const;
  void Keep(uint64_t sequence, const Columns& more);

  const size_t limit_;  // bytes
  mutable std::mutex mutex_;
  std::map<uint64_t, Columns> blocks_;
  size_t bytes_ = 0;
};

class GroupReading {
 public:
  // `wanted` is called without any lock and must live as long as this.
  GroupReading(const std::function<bool(const Series&)>& wanted, Nanos start, Nanos end,
               Earlier earlier = Earlier::kNone)
      : wanted_(wanted), start_(start), end_(end), earlier_(earlier) {}

  void Share(const GroupStore& store);
  void Choose();
  // False: a block was sealed, or the schema changed, since Share.
  bool TakeOpen(const GroupStore& store);
  std::vector<SeriesData> Finish();

 private:
  // Where a schema's columns go: an index into data_, or kUnwanted.
  static constexpr size_t kUnwanted = SIZE_MAX;
  struct Targets {
    std::vector<size_t> of;
    std::vector<bool> wanted;
    bool any = false;
  };
  const Targets& TargetsOf(const Schema& schema);
  void Add(size_t index, std::span<const Nanos> times, const double* values);
  void ReadBlock(const GroupStore::SharedBlock& block);
  void ReadPlain(const Targets& targets, const PlainBlock& block);
  void ReadEarlier();
  std::vector<bool> MissingBefore(const Targets& targets) const;
  void ReadBlockEarlier(const GroupStore::SharedBlock& one);
  template <typename Column>
  void AddBefore(const Targets& targets, const std::vector<bool>& missing,
                 std::span<const Nanos> times, const Column& column);
  // `column(c)`: where the values of column c start, by `times`.
  template <typename Column>
  void AddColumns(const Targets& targets, std::span<const Nanos> times, const Column& column);

  const std::function<bool(const Series&)>& wanted_;
  const Nanos start_;
  const Nanos end_;
  const Earlier earlier_;
  GroupStore::Shared shared_;
  GroupStore::OpenRows open_;
  std::vector<SeriesData> data_;
  std::vector<std::optional<Point>> before_;  // by data_
  std::unordered_map<std::string, size_t> by_name_;
  std::unordered_map<uint64_t, Targets> by_schema_;
  std::vector<double> values_;
};

}  // namespace sonde
