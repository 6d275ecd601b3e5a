// The in-memory series store of one group: an open block of rows and sealed, compressed ones.
//
// Rows of one group share their time. The open block is sealed when it is full, and when series go;
// when series come it goes on, and its rows before them are empty there. The first blocks are short
// and grow (16, 32, 64, 128 rows by default), so that a step that is killed early has lost little.
// Sealed blocks are kept until they exceed the memory limit; then the oldest is dropped, and its
// rows are counted in dropped_rows().
//
// Thread safety: none; the owner locks. It need not do so while blocks are decoded
// (series/store/store_reading.h). Append allocates nothing between two seals.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "series/block/block.h"
#include "series/block/schema.h"

namespace sonde {

struct Point {
  Nanos time;
  double value;
  bool operator==(const Point&) const = default;
};

// Whole numbers beyond 2^53, by their points' times.
using LargeIntegers = std::map<Nanos, int64_t>;

// A double holds all smaller ones.
inline constexpr int64_t kLargestExact = int64_t{1} << 53;

inline bool IsLarge(int64_t number) { return number > kLargestExact || number < -kLargestExact; }

// One series' points in time order; NaN (missing) points are left out.
struct SeriesData {
  Series series;
  std::vector<Point> points;
  // Which points are whole numbers for which OpenTSDB has arithmetic of its own; empty: none. Nodes
  // measure no such points.
  std::vector<bool> integers = {};
  // Of those the ones that a double does not hold, whose points are rounded.
  LargeIntegers large = {};
};

// Which points before `start` are read, besides the points of [start, end].
enum class Earlier {
  kNone,
  // Of counters those that tell their value at `start`: the last point before it and, in a profile,
  // where a node's daemon was started anew, the first and the last point of each daemon.
  kCounted,
};

struct SealedBlock {
  uint64_t sequence = 0;  // counts from 1 within the store
  BlockInfo info;
  Schema::Ptr schema;
  std::shared_ptr<const std::string> bytes;
};

class ColumnCache;

class GroupStore {
 public:
  struct Options {
    size_t first_rows = 16;
    size_t max_rows = 128;  // up to kMaxBlockRows
    // Newest rows that stay open for Amend when a block is full.
    size_t late_rows = 0;
    size_t memory_limit = 8u << 20;  // of sealed blocks, bytes
    // Bytes of the newest blocks, kept decompressed beside the sealed ones: for a store that is
    // often asked about the same time. It costs 1 ms a MB when a block is sealed, and no question
    // waits.
    size_t plain_limit = 0;
    // Bytes of decoded columns that were read from other blocks: repeated questions about a longer
    // time need a few columns of many.
    size_t column_limit = 0;
  };
  explicit GroupStore(Options options);
  ~GroupStore();

  // Called with each block as it is sealed.
  void OnSeal(std::function<void(const SealedBlock&)> f);

  // The columns of the rows that follow. The same schema again changes nothing.
  void SetSchema(Schema::Ptr schema);
  const Schema::Ptr& schema() const;

  // `row` has schema()->size() values. Time must not run backwards: a row that would is dropped
  // and counted.
  void Append(Nanos time, std::span<const double> row);
  // Changes the row of `time` while it is one of the open ones: `change` gets its values by
  // schema(). False if there is no such row (any more).
  bool Amend(Nanos time, const std::function<void(std::span<double> row)>& change);
  // Changes the row of `time`, which is made if no open one is of that time: for a store whose rows
  // come in any order, and to which none is appended. Its blocks may overlap in time.
  void Place(Nanos time, const std::function<void(std::span<double> row)>& change);
  void Seal();
  // The open rows as the blocks that sealing would make of them now. Later sealed blocks have the
  // same sequences again, the last one with more rows.
  std::vector<SealedBlock> Open() const;

  // The points of [start, end] of every series that `wanted` accepts; a series that outlived a
  // change of schema comes in one piece.
  std::vector<SeriesData> Read(const std::function<bool(const Series&)>& wanted, Nanos start,
                               Nanos end, Earlier earlier = Earlier::kNone) const;

  // Two steps of a Read, for which the owner must hold its lock (series/store/store_reading.h).
  // Shared objects do not change.
  struct SharedBlock {
    SealedBlock block;
    std::shared_ptr<const PlainBlock> plain;  // may be null
  };
  struct Shared {
    std::vector<SharedBlock> blocks;       // of the range
    Schema::Ptr open;                      // of the rows that are not sealed
    uint64_t sequence = 0;                 // of the newest block
    uint64_t oldest = 0;                   // that is still held
    std::shared_ptr<ColumnCache> columns;  // null: none are kept
  };
  Shared Share(Nanos start, Nanos end) const;
  struct OpenRows {
    std::vector<Nanos> times;
    std::vector<double> columns;  // those that are wanted, one after the other
  };
  // False if the open rows are no more those that follow `shared`.
  bool CopyOpen(const Shared& shared, const std::vector<bool>& wanted, OpenRows& rows) const;

  // The newest row: its time and values by schema(); time 0 if there is none.
  Nanos last_time() const;
  std::span<const double> last_row() const;

  uint64_t rows() const;          // appended
  uint64_t dropped_rows() const;  // out of order, or forgotten for lack of memory
  size_t sealed_bytes() const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
