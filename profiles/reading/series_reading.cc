// The series of a profile, each with its points or by itself.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "profiles/model/shown_series.h"
#include "profiles/reading/counted_before.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "series/block/thin.h"
#include "series/store/past.h"
#include "series/store/task_ranks.h"

namespace sonde {
namespace {

// Collects the points of one series from many blocks.
class SeriesCollector {
 public:
  explicit SeriesCollector(const std::function<bool(const Series&)>& wanted) : wanted_(wanted) {}

  // Index of the series, or npos if it is not wanted.
  static constexpr size_t kUnwanted = std::numeric_limits<size_t>::max();
  size_t Find(const Series& series) {
    const auto [it, is_new] =
        index_.try_emplace(SeriesName(series.metric.name, series.tags), kUnwanted);
    if (is_new && (!wanted_ || wanted_(series))) {
      it->second = data_.size();
      data_.push_back({series, {}});
    }
    return it->second;
  }
  // `past`: it is a value of the past, in the order of telling.
  void Add(size_t index, const Block& block, size_t column, size_t row, Nanos start, Nanos end,
           bool past = false) {
    const Nanos time = block.times[row];
    const double value = block.Column(column)[row];
    if (time < start || time > end || std::isnan(value)) return;
    (past ? past_[index] : data_[index].points).push_back({time, value});
  }
  void AddEarlier(size_t index, const std::vector<Point>& points) {
    std::vector<Point>& all = data_[index].points;
    all.insert(all.end(), points.begin(), points.end());
  }
  bool Counts(size_t index) const { return IsCounting(data_[index].series.metric.type); }
  // Points in time order, each time once: parts of two writers may overlap.
  std::vector<SeriesData> Take() {
    const auto earlier = [](const Point& a, const Point& b) { return a.time < b.time; };
    const auto same = [](const Point& a, const Point& b) { return a.time == b.time; };
    for (SeriesData& series : data_) {
      auto& points = series.points;
      if (!std::is_sorted(points.begin(), points.end(), earlier)) {
        std::stable_sort(points.begin(), points.end(), earlier);
      }
      points.erase(std::unique(points.begin(), points.end(), same), points.end());
    }
    for (auto& [index, points] : past_) PutPast(std::move(points), data_[index].points);
    return std::move(data_);
  }

 private:
  const std::function<bool(const Series&)>& wanted_;
  std::map<std::string, size_t> index_;
  std::vector<SeriesData> data_;
  std::map<size_t, std::vector<Point>> past_;  // by data_
};

Series Shown(const Series& series, const BlockKey& key, const JobDescription& job) {
  return ShownSeries(series, key.node, key.group, job);
}

// Blocks with equal values of these have the same series: node, its first rank, schema.
using NodesSchema = std::tuple<uint32_t, uint32_t, uint64_t>;
NodesSchema SchemaOf(const BlockKey& key, uint64_t schema_id) {
  return {key.node, FirstRankOf(key.group), schema_id};
}

// The series to which each column of a schema belongs. The wanted extreme of a thinned gauge takes
// the place of the mean.
std::vector<size_t> TargetsOf(const Schema& schema, const BlockKey& key, const JobDescription& job,
                              Thinned thinned, SeriesCollector& collector) {
  std::vector<size_t> targets;
  const std::string_view which = thinned == Thinned::kMin   ? "min"
                                 : thinned == Thinned::kMax ? "max"
                                                            : "";
  for (const Series& series : schema.series()) {
    const std::string* extreme = series.tags.Find(kThinnedTag);
    if (key.node == kReducedNode || extreme == nullptr) {
      targets.push_back(collector.Find(Shown(series, key, job)));
      continue;
    }
    size_t target = SeriesCollector::kUnwanted;
    if (*extreme == which) {
      Series mean = series;
      mean.tags.Erase(kThinnedTag);
      target = collector.Find(Shown(mean, key, job));
      std::replace(targets.begin(), targets.end(), target, SeriesCollector::kUnwanted);
    }
    targets.push_back(target);
  }
  return targets;
}

// Those columns, each with the index of its series. If few of many series are wanted, the others
// cost a tenth.
using Columns = CountedBefore::Columns;
Result<Block> DecodeSome(std::string_view bytes, size_t columns, const Columns& wanted) {
  std::vector<bool> is_wanted(columns);
  for (const auto& [column, series] : wanted) is_wanted[column] = true;
  return DecodeColumns(bytes, is_wanted);
}

}  // namespace

Result<std::vector<SeriesData>> ProfileReader::Read(
    SeriesScope scope, const std::function<bool(const Series&)>& wanted, Nanos start, Nanos end,
    Thinned thinned, Earlier earlier) const {
  const auto job = Described();
  if (!job.ok()) return job.status();
  SeriesCollector collector(wanted);
  // Which columns of a schema are wanted and their series: the same for all blocks of a node.
  std::map<NodesSchema, Columns> targets;
  const auto targets_of = [&](const Stored& stored) {
    const auto [it, is_new] = targets.try_emplace(SchemaOf(stored.key, stored.info.schema_id));
    if (!is_new) return &it->second;
    size_t column = 0;
    for (const size_t target : TargetsOf(*stored.schema, stored.key, *job, thinned, collector)) {
      if (target != SeriesCollector::kUnwanted) it->second.emplace_back(column, target);
      ++column;
    }
    return &it->second;
  };
  ReadTally tally;
  if (scope == SeriesScope::kReduced) {
    SONDE_RETURN_IF_ERROR(ForEachReducedRow(
        start, end, tally, [&](const Stored& stored, const Block& block, size_t row) {
          for (const auto [column, target] : *targets_of(stored)) {
            collector.Add(target, block, column, row, start, end);
          }
        }));
    if (!tally.unsupported.ok()) return tally.unsupported;
    return collector.Take();
  }
  CountedBefore before(start);
  const Nanos from = earlier == Earlier::kCounted ? 0 : start;
  const auto remember = [&](const Stored& stored) {
    Columns columns = *targets_of(stored);
    std::erase_if(columns, [&](const auto& column) { return !collector.Counts(column.second); });
    if (columns.empty()) return;
    before.Add({stored.key.node, stored.info, PlaceOf(stored), std::move(columns)});
  };
  SONDE_RETURN_IF_ERROR(ForEach(
      scope, tally,
      [&](const Stored& stored) {
        if (earlier == Earlier::kCounted && stored.info.first < start) remember(stored);
        if (stored.info.last < start || stored.info.first > end) return;
        const Columns& wanted_columns = *targets_of(stored);
        if (wanted_columns.empty()) return;
        const auto block = stored.joined != nullptr
                               ? stored.joined->Columns(stored.entry, wanted_columns)
                               : DecodeSome(stored.bytes, stored.schema->size(), wanted_columns);
        if (!block.ok()) return Found("some of the blocks", block.status());
        const bool past = IsPastGroup(stored.key.group);
        for (size_t taken = 0; taken < wanted_columns.size(); ++taken) {
          for (size_t row = 0; row < block->times.size(); ++row) {
            collector.Add(wanted_columns[taken].second, *block, taken, row, start, end, past);
          }
        }
      },
      from, end));
  if (!tally.unsupported.ok()) return tally.unsupported;
  const auto counted =
      before.Find([&](const CountedBefore::Place& place, const Columns& columns) -> Result<Block> {
        const auto bytes = ReadAt(place.at);
        if (!bytes.ok()) return bytes.status();
        return DecodeSome(*bytes, place.info.columns, columns);
      });
  for (const auto& [series, points] : counted) collector.AddEarlier(series, points);
  return collector.Take();
}

Result<std::vector<Series>> ProfileReader::AllSeries(SeriesScope scope) const {
  const auto job = Described();
  if (!job.ok()) return job.status();
  const std::function<bool(const Series&)> all_of_them;
  SeriesCollector collector(all_of_them);
  std::set<NodesSchema> seen;
  ReadTally tally;
  SONDE_RETURN_IF_ERROR(ForEach(scope, tally, [&](const Stored& stored) {
    if (!seen.insert(SchemaOf(stored.key, stored.info.schema_id)).second) return;
    for (const Series& series : stored.schema->series()) {
      if (stored.key.node != kReducedNode && IsExtreme(series)) continue;
      collector.Find(Shown(series, stored.key, *job));
    }
  }));
  std::vector<Series> all;
  for (SeriesData& data : collector.Take()) all.push_back(std::move(data.series));
  return all;
}

}  // namespace sonde
