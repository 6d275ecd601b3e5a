#include "insight/steps/read_pieces.h"

#include <algorithm>
#include <limits>
#include <map>

#include "series/block/thin.h"

namespace sonde::insight {
namespace {

class Counting {
 public:
  explicit Counting(const TickGrid& grid) : grid_(grid) {}

  // Whether it is the first block of its schema.
  bool Add(const BlockInfo& info) {
    const auto [at, is_new] = schemas_.try_emplace(info.schema_id, info.columns);
    blocks_.push_back({&at->second, grid_.At(info.first), grid_.At(info.last) + 1, info.rows});
    return is_new;
  }
  void SetSeries(uint64_t schema, size_t series) { schemas_.at(schema) = series; }

  std::vector<Nanos> Cut(size_t most) const {
    // By how much the points of a tick are more than those of the tick before.
    std::vector<double> more(grid_.count + 1);
    for (const Counted& block : blocks_) {
      const double in_a_tick = static_cast<double>(block.rows * *block.series) /
                               static_cast<double>(block.behind - block.first);
      more[block.first] += in_a_tick;
      more[block.behind] -= in_a_tick;
    }
    std::vector<Nanos> begins = {0};  // nothing is left out before the first tick
    double in_tick = 0, in_piece = 0;
    for (size_t t = 0; t < grid_.count; ++t) {
      in_tick += more[t];
      if (in_piece > 0 && in_piece + in_tick > static_cast<double>(most)) {
        begins.push_back(grid_.Begin(t));
        in_piece = 0;
      }
      in_piece += in_tick;
    }
    return begins;
  }

 private:
  // The times of its rows are taken to be even.
  struct Counted {
    const size_t* series;
    size_t first, behind;  // ticks
    size_t rows;
  };

  const TickGrid& grid_;
  // How many series are read of each schema; all of it until that is known.
  std::map<uint64_t, size_t> schemas_;
  std::vector<Counted> blocks_;
};

}  // namespace

Result<std::vector<Nanos>> FindPieces(const Archive& archive, const std::string& key,
                                      const TickGrid& grid, size_t most,
                                      const std::function<bool(uint32_t node)>& is_node,
                                      const std::function<bool(const Series&)>& is_series) {
  Counting counting(grid);
  RowsWanted wanted;
  wanted.window = std::numeric_limits<Nanos>::max();
  // Rows are read of the first block of each schema alone: they tell the schema.
  wanted.stream = [&](uint32_t node, const std::string& /*group*/, const BlockInfo& info) {
    return is_node(node) && counting.Add(info);
  };
  const auto is_read = [&](const Series& series) {
    return !IsExtreme(series) && is_series(series);
  };
  uint64_t known = 0;  // schema
  const Status status =
      archive.ReadRows(key, SeriesScope::kNodes, wanted, [&](const StoredRow& row) {
        if (row.schema->id() == known) return Status();
        known = row.schema->id();
        const auto& all = row.schema->series();
        counting.SetSeries(known,
                           static_cast<size_t>(std::count_if(all.begin(), all.end(), is_read)));
        return Status();
      });
  if (!status.ok()) return status;
  return counting.Cut(most);
}

}  // namespace sonde::insight
