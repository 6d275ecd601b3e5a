#include "profiles/archive/step_numbers.h"

#include <cmath>

namespace sonde {
namespace {

bool Counts(const Metric& metric) { return IsCounting(metric.type); }

}  // namespace

std::vector<StepNumbers::Number> StepNumbers::NumbersOf(const Schema& schema) {
  std::vector<Number> numbers;
  const std::vector<Series> base = BaseSeries(schema);
  for (size_t i = 0; i < base.size(); ++i) numbers.push_back({base[i], "", i});
  for (size_t i = 0; i < base.size(); ++i) {
    const Metric& metric = base[i].metric;
    if (!metric.spread) continue;
    for (const std::string_view name : kSpreadNames) {
      Number number{base[i], Counts(metric) ? "_rate_spread" : "_spread", i};
      number.series.metric.type = MetricType::kGauge;
      number.series.tags.Set("percentile", name.substr(1));
      numbers.push_back(std::move(number));
    }
  }
  return numbers;
}

const StepNumbers::Shape& StepNumbers::ShapeOf(const Schema::Ptr& schema) {
  const auto [at, is_new] = shapes_.try_emplace(schema->id());
  if (is_new) {
    at->second.base = BaseSeries(*schema);
    for (const Series& series : at->second.base) {
      CounterTotal* total =
          Counts(series.metric) ? &totals_[SeriesName(series.metric.name, series.tags)] : nullptr;
      at->second.totals.push_back(total);
    }
  }
  return at->second;
}

void StepNumbers::Add(const StoredRow& row, std::vector<double>& out) {
  const Shape& shape = ShapeOf(row.schema);
  nodes_.Changed(presence_, row.time());
  out.clear();
  if (shape.base.empty()) return;
  columns_.resize(row.block.columns());
  for (size_t c = 0; c < columns_.size(); ++c) columns_[c] = row.block.Column(c)[row.row];
  FromColumns(shape.base, columns_, row_, spreads_);
  for (size_t i = 0; i < row_.size(); ++i) {
    const Reduced& value = row_[i];
    if (!(value.count > 0) || std::isnan(value.sum)) {
      out.push_back(std::nan(""));
    } else if (shape.totals[i] != nullptr) {
      out.push_back(shape.totals[i]->Add(value, nodes_.changes()));
    } else {
      out.push_back(value.Value(shape.base[i].metric.reduction));
    }
  }
  for (const Spread& spread : spreads_) out.insert(out.end(), spread.begin(), spread.end());
}

}  // namespace sonde
