#include "series/block/thin.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

namespace sonde {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool IsGauge(const Series& series) { return series.metric.type == MetricType::kGauge; }

// A row on its way into a thinned one.
struct SourceRow {
  const Block* block;
  size_t row;
  uint32_t weight;
  bool thinned;  // has extremes of its own

  double At(size_t column) const { return block->Column(column)[row]; }
};

// The rows that become one.
using Window = std::span<const SourceRow>;

double LastOf(Window window, size_t column) {
  const auto last = std::find_if(window.rbegin(), window.rend(), [column](const SourceRow& row) {
    return !std::isnan(row.At(column));
  });
  return last == window.rend() ? kNothing : last->At(column);
}

double MeanOf(Window window, size_t column) {
  double sum = 0;
  double weight = 0;
  for (const SourceRow& row : window) {
    const double value = row.At(column);
    if (std::isnan(value)) continue;
    sum += value * row.weight;
    weight += row.weight;
  }
  return weight > 0 ? sum / weight : kNothing;
}

// `better(a, b)`: a goes before b.
template <typename Better>
double ExtremeOf(Window window, size_t column, size_t extreme, Better better) {
  double best = kNothing;
  for (const SourceRow& row : window) {
    const double value = row.At(row.thinned ? extreme : column);
    if (std::isnan(best) || better(value, best)) best = value;
  }
  return best;
}

// The rows of the sources, put together.
class Windows {
 public:
  Status Add(const ThinSource& source, const Schema& base, const ThinnedShape& thinned) {
    Result<Block> block = DecodeBlock(source.bytes);
    if (!block.ok()) return block.status();
    const bool is_thinned = !source.weights.empty();
    const size_t columns = is_thinned ? thinned.columns : base.size();
    if (block->columns() != columns ||
        (is_thinned && source.weights.size() != block->times.size())) {
      return {Code::kInvalid, fmt::format("thin a block: it has {} columns, expected {}",
                                          block->columns(), columns)};
    }
    blocks_.push_back(std::make_unique<Block>(*std::move(block)));
    const Block& added = *blocks_.back();
    for (size_t r = 0; r < added.times.size(); ++r) {
      rows_.push_back({&added, r, is_thinned ? source.weights[r] : 1, is_thinned});
    }
    return {};
  }

  void Close(uint32_t samples) {
    uint32_t weight = 0;
    for (size_t r = 0; r < rows_.size(); ++r) {
      weight += rows_[r].weight;
      if (weight < samples && r + 1 < rows_.size()) continue;
      ends_.push_back(r + 1);
      weights.push_back(weight);
      times.push_back(rows_[r].block->times[rows_[r].row]);
      weight = 0;
    }
  }

  size_t size() const { return ends_.size(); }
  Window operator[](size_t i) const {
    const size_t first = i == 0 ? 0 : ends_[i - 1];
    return {rows_.data() + first, ends_[i] - first};
  }

  std::vector<Nanos> times;
  std::vector<uint32_t> weights;

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<SourceRow> rows_;
  std::vector<size_t> ends_;
};

std::vector<double> Columns(const Windows& windows, const Schema& base,
                            const ThinnedShape& thinned) {
  const size_t rows = windows.size();
  std::vector<double> out(rows * thinned.columns);
  size_t extreme = base.size();
  for (size_t c = 0; c < base.size(); ++c) {
    const bool gauge = IsGauge(base[c]);
    for (size_t r = 0; r < rows; ++r) {
      out[c * rows + r] = gauge ? MeanOf(windows[r], c) : LastOf(windows[r], c);
    }
    if (!gauge || extreme == thinned.columns) continue;
    for (size_t r = 0; r < rows; ++r) {
      out[extreme * rows + r] = ExtremeOf(windows[r], c, extreme, std::less<>());
      out[(extreme + 1) * rows + r] = ExtremeOf(windows[r], c, extreme + 1, std::greater<>());
    }
    extreme += 2;
  }
  return out;
}

}  // namespace

bool IsExtreme(const Series& series) { return series.tags.Find(kThinnedTag) != nullptr; }

Schema::Ptr ThinnedSchema(const Schema& base) {
  std::vector<Series> series = base.series();
  for (const Series& one : base.series()) {
    if (!IsGauge(one)) continue;
    for (const char* which : {"min", "max"}) {
      series.push_back(one);
      series.back().tags.Set(kThinnedTag, which);
    }
  }
  if (series.size() > kMaxSeries) series.resize(base.size());
  return Schema::Make(std::move(series));
}

Result<ThinnedBlock> Thin(const Schema& base, const ThinnedShape& thinned,
                          std::span<const ThinSource> blocks, uint32_t samples,
                          BlockEncoder& encoder) {
  Windows windows;
  for (const ThinSource& block : blocks) {
    SONDE_RETURN_IF_ERROR(windows.Add(block, base, thinned));
  }
  windows.Close(samples);
  if (windows.size() == 0) return Status(Code::kInvalid, "thin blocks: there are none");
  if (windows.size() > kMaxBlockRows) {
    return Status(Code::kLimit, fmt::format("thin blocks: {} rows are left, at most {} fit one",
                                            windows.size(), kMaxBlockRows));
  }
  const std::vector<double> columns = Columns(windows, base, thinned);
  auto bytes = std::make_shared<std::string>();
  SONDE_RETURN_IF_ERROR(encoder.Encode(thinned.id, windows.times, columns.data(), thinned.columns,
                                       windows.size(), *bytes));
  ThinnedBlock out;
  out.info = {thinned.id, windows.size(), thinned.columns, windows.times.front(),
              windows.times.back()};
  out.bytes = std::move(bytes);
  out.weights = std::move(windows.weights);
  return out;
}

}  // namespace sonde
