#include "forward/formats/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "profiles/archive/step_numbers.h"

namespace sonde::forward {
namespace {

constexpr uint64_t kMissingBits = 0x7ff8000000000000;
const double kMissingValue = std::bit_cast<double>(kMissingBits);

// Rows of one schema: those of their values that are wanted, each with the table's column.
using Places = std::vector<std::pair<size_t, size_t>>;

// One row for all rows of a step of time.
class Resampler {
 public:
  Resampler(Nanos step, const std::vector<Column>& columns) : step_(step) {
    for (const Column& column : columns) {
      counts_.push_back(IsCounting(column.series.metric.type));
    }
    Clear();
  }
  // The time of the row that gets a sample of `time`.
  Nanos RowOf(Nanos time) const { return (time + step_ - 1) / step_ * step_; }
  bool any() const { return any_; }
  Nanos row() const { return row_; }

  void Add(Nanos time, const double* values) {
    row_ = RowOf(time);
    any_ = true;
    for (size_t c = 0; c < counts_.size(); ++c) {
      if (std::isnan(values[c])) continue;
      // Sums differences, so that the mean of equal values is exactly that value.
      if (counts_[c] || samples_[c] == 0) first_[c] = values[c];
      if (values[c] != first_[c]) sums_[c] += values[c] - first_[c];
      ++samples_[c];
    }
  }
  void Take(std::vector<double>& out) {
    for (size_t c = 0; c < counts_.size(); ++c) {
      out.push_back(samples_[c] == 0 ? kMissingValue : first_[c] + sums_[c] / samples_[c]);
    }
    Clear();
  }

 private:
  void Clear() {
    any_ = false;
    samples_.assign(counts_.size(), 0);
    first_.assign(counts_.size(), 0);
    sums_.assign(counts_.size(), 0);
  }
  const Nanos step_;
  std::vector<bool> counts_;
  std::vector<double> first_;  // of counters the last value
  std::vector<double> sums_;   // of the differences from it
  std::vector<double> samples_;
  Nanos row_ = 0;
  bool any_ = false;
};

// Reads a profile and gives it to a sink.
class Table {
 public:
  Table(const Archive& archive, const ProfileEntry& entry, const Destination& to, TableSink& sink,
        const OnSamples& on_samples, size_t values, size_t most_columns)
      : archive_(archive),
        entry_(entry),
        to_(to),
        sink_(sink),
        on_samples_(on_samples),
        values_(values),
        most_columns_(most_columns),
        numbers_(entry.job.presence) {}

  Result<Written> Write();
  Status FindColumns();

 private:
  using Shape = std::tuple<uint32_t, std::string, uint64_t>;  // node, group, schema
  static Shape ShapeOf(const StoredRow& row) {
    return {row.node, std::string(row.group), row.schema->id()};
  }
  void AddColumns(uint32_t node, const std::string& group, const Schema& schema);
  Status AddRow(const StoredRow& row);
  double* RowAt(Nanos time);
  Status Flush(Nanos until);
  void Append(Nanos time, const double* values);
  Status GiveWindow(Nanos until);

  const Archive& archive_;
  const ProfileEntry& entry_;
  const Destination& to_;
  TableSink& sink_;
  const OnSamples& on_samples_;
  const size_t values_;
  const size_t most_columns_;

  std::vector<Column> columns_;
  std::map<Shape, Places> places_;
  std::map<std::string, size_t> index_;  // of columns
  StepNumbers numbers_;
  std::vector<double> row_numbers_;

  std::map<Nanos, size_t> rows_;  // of the window: their places in `waiting_`
  std::vector<double> waiting_;
  std::optional<Resampler> resampler_;
  std::vector<Nanos> times_;  // of the rows for the sink
  std::vector<double> out_;
  Written written_;
};

void Table::AddColumns(uint32_t node, const std::string& group, const Schema& schema) {
  Places& places = places_[{node, group, schema.id()}];
  size_t value = 0;
  for (auto& column : ColumnsOf(entry_.job, node, group, schema, to_)) {
    const size_t of = value++;
    if (!column) continue;
    const std::string name =
        SeriesName(column->series.metric.name + column->suffix, column->series.tags);
    const auto [at, is_new] = index_.try_emplace(name, columns_.size());
    if (is_new) columns_.push_back(*std::move(column));
    places.emplace_back(of, at->second);
  }
}

// Node by node, whatever the order of the rows.
Status Table::FindColumns() {
  struct Found {
    uint32_t node;
    std::string group;
    Nanos first;
    Schema::Ptr schema;
  };
  std::vector<Found> all;
  SONDE_RETURN_IF_ERROR(archive_.ReadShapes(entry_.key, to_.scope, [&](const StoredShape& shape) {
    all.push_back({shape.node, std::string(shape.group), shape.first, shape.schema});
    return true;
  }));
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return std::tie(a.node, a.group, a.first) < std::tie(b.node, b.group, b.first);
  });
  for (const Found& one : all) {
    AddColumns(one.node, one.group, *one.schema);
    if (columns_.size() <= most_columns_) continue;
    return {Code::kLimit,
            fmt::format("a table has {} columns at most, and one of step {} has a column for each "
                        "series of each node: name metrics (--metrics), nodes (--node), or write "
                        "OpenMetrics text (.om), which has no columns",
                        most_columns_, entry_.job.id.ToString())};
  }
  return {};
}

double* Table::RowAt(Nanos time) {
  const auto [at, is_new] = rows_.try_emplace(time, waiting_.size());
  if (is_new) waiting_.resize(waiting_.size() + columns_.size(), kMissingValue);
  return waiting_.data() + at->second;
}

Status Table::AddRow(const StoredRow& row) {
  const bool reduced = row.node == kReducedNode;
  if (reduced) numbers_.Add(row, row_numbers_);
  if (row.time() < to_.since) return {};
  const auto found = places_.find(ShapeOf(row));
  if (found == places_.end()) return {};  // it came after the columns were told
  const Places& places = found->second;
  double* into = nullptr;
  for (const auto& [of, column] : places) {
    const double value = reduced ? row_numbers_[of] : row.block.Column(of)[row.row];
    if (IsMissing(value)) continue;
    if (into == nullptr) into = RowAt(row.time());
    into[column] = value;
    ++written_.samples;
  }
  return {};
}

void Table::Append(Nanos time, const double* values) {
  if (!resampler_) {
    times_.push_back(time);
    out_.insert(out_.end(), values, values + columns_.size());
    return;
  }
  if (resampler_->any() && resampler_->row() != resampler_->RowOf(time)) {
    times_.push_back(resampler_->row());
    resampler_->Take(out_);
  }
  resampler_->Add(time, values);
}

Status Table::GiveWindow(Nanos until) {
  if (!times_.empty()) SONDE_RETURN_IF_ERROR(sink_.Add({times_, out_, columns_.size()}));
  times_.clear();
  out_.clear();
  if (on_samples_) on_samples_(written_.samples, until);
  return {};
}

Status Table::Flush(Nanos until) {
  for (const auto& [time, at] : rows_) Append(time, waiting_.data() + at);
  rows_.clear();
  waiting_.clear();
  return GiveWindow(until);
}

Result<Written> Table::Write() {
  auto profile = archive_.Load(entry_.key);
  if (!profile.ok()) return profile.status();
  SONDE_RETURN_IF_ERROR(FindColumns());
  if (to_.step > 0) resampler_.emplace(to_.step, columns_);
  written_.series = columns_.size();
  SONDE_RETURN_IF_ERROR(sink_.Begin(*profile, columns_));
  RowsWanted wanted = RowsFor(entry_.job, to_);
  const size_t rows =
      std::clamp<size_t>(values_ / std::max<size_t>(columns_.size(), 1), 1, 1 << 16);
  wanted.window = static_cast<Nanos>(rows) * std::max<Nanos>(entry_.job.period, kMinPeriod);
  wanted.on_window = [&](Nanos until) { return Flush(until); };
  SONDE_RETURN_IF_ERROR(archive_.ReadRows(entry_.key, to_.scope, wanted,
                                          [&](const StoredRow& row) { return AddRow(row); }));
  if (resampler_ && resampler_->any()) {
    times_.push_back(resampler_->row());
    resampler_->Take(out_);
    SONDE_RETURN_IF_ERROR(GiveWindow(entry_.job.end));
  }
  SONDE_RETURN_IF_ERROR(sink_.End());
  return written_;
}

}  // namespace

bool IsMissing(double value) { return std::bit_cast<uint64_t>(value) == kMissingBits; }

std::unique_ptr<TableSink> MakeTableSink(Protocol protocol, TextSink sink) {
  if (protocol == Protocol::kCsv) return MakeCsv(std::move(sink));
  if (protocol == Protocol::kJsonLines) return MakeJsonLines(std::move(sink));
  return MakeTrace(std::move(sink));
}

Result<Written> WriteTable(const Archive& archive, const ProfileEntry& entry,
                           const Destination& destination, TableSink& sink,
                           const OnSamples& on_samples, size_t values, size_t columns) {
  return Table(archive, entry, destination, sink, on_samples, values, columns).Write();
}

Status CheckWidth(const Archive& archive, const ProfileEntry& entry, const Destination& destination,
                  size_t columns) {
  const auto sink = MakeTableSink(destination.protocol, [](std::string_view) { return Status(); });
  return Table(archive, entry, destination, *sink, nullptr, kWindowValues, columns).FindColumns();
}

void AppendNumber(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  out.append(text, end);
}

}  // namespace sonde::forward
