// The series of a profile, each with its points or by itself.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
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

// Collects the points of wanted series from many blocks.
class SeriesCollector {
 public:
  explicit SeriesCollector(const SeriesWanted& wanted) : wanted_(wanted) {}

  // Index of the series, or kUnwanted. Of what is not wanted nothing is kept.
  static constexpr size_t kUnwanted = std::numeric_limits<size_t>::max();
  size_t Find(const Series& series) {
    if (wanted_.series && !wanted_.series(series)) return kUnwanted;
    const auto [it, is_new] =
        index_.try_emplace(SeriesName(series.metric.name, series.tags), data_.size());
    if (is_new) data_.push_back({series, {}});
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
  const SeriesWanted& wanted_;
  std::unordered_map<std::string, size_t> index_;
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

// Finds the wanted columns of blocks, each with the index of its series.
class Targets {
 public:
  using Columns = CountedBefore::Columns;
  // All of these outlive it.
  Targets(const JobDescription& job, const SeriesWanted& wanted, Thinned thinned,
          SeriesCollector& collector)
      : job_(job), wanted_(wanted), thinned_(thinned), collector_(collector) {}

  // In ascending order. They are the same for all blocks of a node that have this schema.
  const Columns& Of(const BlockKey& key, const Schema& schema) {
    static const Columns kNone;
    const auto [candidates, is_new_schema] = candidates_.try_emplace(schema.id());
    if (is_new_schema) candidates->second = CandidatesOf(schema, key.node == kReducedNode);
    if (candidates->second.empty()) return kNone;
    const auto [found, is_new] = columns_.try_emplace(SchemaOf(key, schema.id()));
    if (is_new) found->second = Find(key, candidates->second);
    return found->second;
  }

 private:
  // A column whose metric is wanted.
  struct Candidate {
    size_t column = 0;
    bool is_extreme = false;  // of a thinned gauge: it takes the place of the mean
    Tags tags;                // as they are stored
    Series shown;             // as it comes out, of the node that was looked at last
  };

  std::vector<Candidate> CandidatesOf(const Schema& schema, bool reduced) const {
    const std::string_view which = thinned_ == Thinned::kMin   ? "min"
                                   : thinned_ == Thinned::kMax ? "max"
                                                               : "";
    std::vector<Candidate> candidates;
    for (size_t column = 0; column < schema.size(); ++column) {
      const Series& series = schema[column];
      if (wanted_.metric && !wanted_.metric(series.metric)) continue;
      const std::string* extreme = reduced ? nullptr : series.tags.Find(kThinnedTag);
      if (extreme != nullptr && *extreme != which) continue;
      candidates.push_back({column, extreme != nullptr, series.tags, {series.metric, {}}});
      if (extreme != nullptr) candidates.back().tags.Erase(kThinnedTag);
    }
    return candidates;
  }
  Columns Find(const BlockKey& key, std::vector<Candidate>& candidates) {
    Columns columns;
    for (Candidate& candidate : candidates) {
      candidate.shown.tags = candidate.tags;
      AddShownTags(key.node, key.group, job_, candidate.shown.tags);
      const size_t target = collector_.Find(candidate.shown);
      if (target == SeriesCollector::kUnwanted) continue;
      if (candidate.is_extreme) {
        std::erase_if(columns, [&](const auto& column) { return column.second == target; });
      }
      columns.emplace_back(candidate.column, target);
    }
    return columns;
  }

  const JobDescription& job_;
  const SeriesWanted& wanted_;
  const Thinned thinned_;
  SeriesCollector& collector_;
  std::map<uint64_t, std::vector<Candidate>> candidates_;  // by schema
  std::map<NodesSchema, Columns> columns_;
};

// Those columns, each with the index of its series. If few of many series are wanted, the others
// cost a tenth.
Result<Block> DecodeSome(std::string_view bytes, size_t columns, const Targets::Columns& wanted) {
  std::vector<bool> is_wanted(columns);
  for (const auto& [column, series] : wanted) is_wanted[column] = true;
  return DecodeColumns(bytes, is_wanted);
}

}  // namespace

Result<std::vector<SeriesData>> ProfileReader::Read(SeriesScope scope, const SeriesWanted& wanted,
                                                    Nanos start, Nanos end, Thinned thinned,
                                                    Earlier earlier) const {
  const auto job = Described();
  if (!job.ok()) return job.status();
  SeriesCollector collector(wanted);
  Targets targets(*job, wanted, thinned, collector);
  const auto targets_of = [&](const Stored& stored) -> const Targets::Columns& {
    return targets.Of(stored.key, *stored.schema);
  };
  ReadTally tally;
  if (scope == SeriesScope::kReduced) {
    SONDE_RETURN_IF_ERROR(ForEachReducedRow(
        start, end, tally, [&](const Stored& stored, const Block& block, size_t row) {
          for (const auto [column, target] : targets_of(stored)) {
            collector.Add(target, block, column, row, start, end);
          }
        }));
    if (!tally.unsupported.ok()) return tally.unsupported;
    return collector.Take();
  }
  CountedBefore before(start);
  const Nanos from = earlier == Earlier::kCounted ? 0 : start;
  const auto remember = [&](const Stored& stored) {
    Targets::Columns columns = targets_of(stored);
    std::erase_if(columns, [&](const auto& column) { return !collector.Counts(column.second); });
    if (columns.empty()) return;
    before.Add({stored.key.node, stored.info, PlaceOf(stored), std::move(columns)});
  };
  SONDE_RETURN_IF_ERROR(ForEach(
      scope, tally,
      [&](const Stored& stored) {
        if (earlier == Earlier::kCounted && stored.info.first < start) remember(stored);
        if (stored.info.last < start || stored.info.first > end) return;
        const Targets::Columns& wanted_columns = targets_of(stored);
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
  const auto counted = before.Find(
      [&](const CountedBefore::Place& place, const Targets::Columns& columns) -> Result<Block> {
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
  const SeriesWanted all_of_them;
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
