#include "profiles/profile_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "profiles/footprint.h"
#include "profiles/keys.h"
#include "profiles/leveldb_env.h"
#include "series/thin.h"

namespace sonde {
namespace {

leveldb::ReadOptions Checked() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

leveldb::ReadOptions Scan() {
  leveldb::ReadOptions options = Checked();
  options.fill_cache = false;
  return options;
}

Result<std::string> Get(leveldb::DB& db, const std::string& at, std::string_view what) {
  std::string value;
  const leveldb::Status status = db.Get(Checked(), at, &value);
  if (!status.ok()) return FromLevelDb(status, what);
  return value;
}

std::string_view View(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

// Collects the points of one series out of many blocks.
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
  void Add(size_t index, const Block& block, size_t column, Nanos start, Nanos end) {
    const auto values = block.Column(column);
    std::vector<Point>& points = data_[index].points;
    for (size_t row = 0; row < block.times.size(); ++row) {
      const Nanos time = block.times[row];
      if (time >= start && time <= end && !std::isnan(values[row])) {
        points.push_back({time, values[row]});
      }
    }
  }
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
    return std::move(data_);
  }

 private:
  const std::function<bool(const Series&)>& wanted_;
  std::map<std::string, size_t> index_;
  std::vector<SeriesData> data_;
};

// The series as it is shown: per-node ones carry their host.
Series Shown(const Series& series, uint32_t node, const JobDescription& job) {
  if (node == kReducedNode) return series;
  Series shown = series;
  shown.tags.Set("host", node < job.nodes.size() && !job.nodes[node].host.empty()
                             ? job.nodes[node].host
                             : "node" + std::to_string(node));
  return shown;
}

// Where the columns of a schema go. An extreme of a thinned gauge goes, if it is the one asked for,
// to where the mean would have gone.
std::vector<size_t> TargetsOf(const Schema& schema, uint32_t node, const JobDescription& job,
                              Archive::Thinned thinned, SeriesCollector& collector) {
  std::vector<size_t> targets;
  const std::string_view which = thinned == Archive::Thinned::kMin   ? "min"
                                 : thinned == Archive::Thinned::kMax ? "max"
                                                                     : "";
  for (const Series& series : schema.series()) {
    const std::string* extreme = series.tags.Find(kThinnedTag);
    if (node == kReducedNode || extreme == nullptr) {
      targets.push_back(collector.Find(Shown(series, node, job)));
      continue;
    }
    size_t target = SeriesCollector::kUnwanted;
    if (*extreme == which) {
      Series mean = series;
      mean.tags.Erase(kThinnedTag);
      target = collector.Find(Shown(mean, node, job));
      std::replace(targets.begin(), targets.end(), target, SeriesCollector::kUnwanted);
    }
    targets.push_back(target);
  }
  return targets;
}

// The series whose reduction a schema holds; empty if the schema is none of ReducedSchema.
std::vector<Series> BaseSeries(const Schema& schema) {
  std::vector<Series> base;
  if (schema.size() % kStatColumns != 0) return {};
  for (size_t i = 0; i < schema.size(); ++i) {
    const std::string* stat = schema[i].tags.Find(kStatTag);
    if (stat == nullptr || *stat != kStatNames[i % kStatColumns]) return {};
    if (i % kStatColumns != 0) continue;
    base.push_back(schema[i]);
    base.back().tags.Erase(kStatTag);
  }
  // Statistics of a series are gauges to whoever reads them; their sum has the series' own type.
  return base;
}

// Rows of reduced blocks, group by group, into a footprint and a coverage.
class Assembly {
 public:
  explicit Assembly(const JobDescription& job) : job_(job) {}

  void Add(const BlockKey& key, const Schema& schema, const Block& block) {
    const std::vector<Series> base = BaseSeries(schema);
    if (base.empty()) return;
    FootprintBuilder& builder = groups_.try_emplace(key.group, job_.start).first->second;
    builder.SetSeries(base);
    std::vector<Reduced> row(base.size());
    double columns[kStatColumns];
    for (size_t r = 0; r < block.times.size(); ++r) {
      double nodes = 0;
      for (size_t i = 0; i < base.size(); ++i) {
        for (size_t k = 0; k < kStatColumns; ++k)
          columns[k] = block.Column(i * kStatColumns + k)[r];
        row[i] = FromColumns(columns);
        nodes = std::max(nodes, row[i].count);
      }
      builder.AddRow(block.times[r], row);
      // The group "os" has one value per node; others may have one per task, but there are no more
      // nodes than the step has.
      nodes = std::min(nodes, static_cast<double>(job_.expected_nodes));
      double& seen = (key.group == "os" ? nodes_at_ : others_at_)[block.times[r]];
      seen = std::max(seen, nodes);
    }
  }
  std::vector<FootprintEntry> Footprint() const {
    std::vector<FootprintEntry> all;
    for (const auto& [group, builder] : groups_) {
      for (FootprintEntry& entry : builder.Entries()) all.push_back(std::move(entry));
    }
    return all;
  }
  uint64_t NodeTicks() const {
    double sum = 0;
    for (const auto& [time, nodes] : nodes_at_.empty() ? others_at_ : nodes_at_) sum += nodes;
    return static_cast<uint64_t>(sum);
  }

 private:
  const JobDescription& job_;
  std::map<std::string, FootprintBuilder> groups_;
  std::map<Nanos, double> nodes_at_;
  std::map<Nanos, double> others_at_;
};

}  // namespace

Result<JobDescription> ProfileReader::Description() const {
  const auto json = Get(db_, keys::Description(key_), "read the description of " + key_);
  if (!json.ok()) return json.status();
  return DescriptionFromJson(*json);
}

Result<Profile> ProfileReader::StoredProfile() const {
  const auto json = Get(db_, keys::Profile(key_), "read profile " + key_);
  if (!json.ok()) return json.status();
  return ProfileFromJson(*json);
}

Result<StepMoments> ProfileReader::StoredMoments() const {
  const auto json = Get(db_, keys::Moments(key_), "read the moments of " + key_);
  if (!json.ok() && json.status().code() == Code::kNotFound) return StepMoments();
  if (!json.ok()) return json.status();
  return MomentsFromJson(*json);
}

bool ProfileReader::finished() const { return Get(db_, keys::Finished(key_), "").ok(); }

Result<Profile> ProfileReader::Load() const {
  auto stored = StoredProfile();
  if (stored.ok() || stored.status().code() != Code::kNotFound) return stored;
  const auto job = Description();
  if (!job.ok()) return job.status();
  return Assemble(*job);
}

Profile ProfileReader::Assemble(const JobDescription& job, ReadTally* tally_out) const {
  Profile profile;
  profile.job = job;
  Assembly assembly(job);
  ReadTally tally;
  const Status status = ForEach(std::nullopt, tally, [&](const Stored& stored) {
    tally.last = std::max(tally.last, stored.info.last);
    if (stored.key.node != kReducedNode) return;
    const auto block = DecodeBlock(stored.bytes);
    if (block.ok() && block->columns() == stored.schema->size()) {
      assembly.Add(stored.key, *stored.schema, *block);
    }
  });
  if (!status.ok() && tally.first_error.empty()) tally.first_error = status.message();
  auto moments = StoredMoments();
  if (moments.ok()) {
    profile.moments = *std::move(moments);
  } else if (tally.first_error.empty()) {
    tally.first_error = moments.status().message();
  }
  profile.footprint = assembly.Footprint();
  profile.cost.cpu_seconds = std::nan("");
  profile.cost.peak_node_memory = std::nan("");
  profile.cost.bytes_sent = std::nan("");
  profile.cost.stored_bytes = static_cast<double>(tally.bytes);
  if (job.end == 0 && tally.last > job.start) {
    const auto ticks = static_cast<uint64_t>(tally.last / job.period - job.start / job.period);
    Coverage& coverage = profile.job.coverage;
    coverage.got = assembly.NodeTicks();
    coverage.expected = std::max<uint64_t>(coverage.got, ticks * job.expected_nodes);
  }
  if (tally_out != nullptr) *tally_out = tally;
  return profile;
}

Status ProfileReader::ForEach(std::optional<Archive::Scope> scope, ReadTally& tally,
                              const std::function<void(const Stored&)>& f) const {
  const std::string prefix = keys::Blocks(key_);
  const std::string reduced = keys::Block(key_, {kReducedNode, "", 0});
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(Scan()));
  std::map<uint64_t, Result<Schema::Ptr>> schemas;
  const auto schema_of = [&](uint64_t id) -> const Result<Schema::Ptr>& {
    const auto found = schemas.find(id);
    if (found != schemas.end()) return found->second;
    const auto bytes = Get(db_, keys::Schema(id), "read a block's schema");
    Result<Schema::Ptr> schema = bytes.ok() ? Schema::Decode(*bytes) : bytes.status();
    if (schema.ok() && (*schema)->id() != id) schema = Status(Code::kCorrupt, "wrong schema");
    return schemas.emplace(id, std::move(schema)).first->second;
  };
  const auto unreadable = [&](const Status& status) {
    ++tally.unreadable;
    if (tally.first_error.empty()) tally.first_error = status.message();
  };
  it->Seek(scope == Archive::Scope::kReduced ? reduced.substr(0, reduced.size() - 9) : prefix);
  for (; it->Valid() && it->key().starts_with(prefix); it->Next()) {
    const auto key = keys::ParseBlock(key_, View(it->key()));
    if (!key) continue;
    if (scope == Archive::Scope::kNodes && key->node == kReducedNode) break;
    ++tally.blocks;
    tally.bytes += it->value().size();
    const auto info = ReadBlockInfo(View(it->value()));
    if (!info.ok()) {
      unreadable(info.status());
      continue;
    }
    const auto& schema = schema_of(info->schema_id);
    if (!schema.ok()) {
      unreadable(schema.status());
      continue;
    }
    f({*key, *info, *schema, View(it->value())});
  }
  return FromLevelDb(it->status(), "read the blocks of " + key_);
}

Result<std::vector<SeriesData>> ProfileReader::Read(
    Archive::Scope scope, const std::function<bool(const Series&)>& wanted, Nanos start, Nanos end,
    Archive::Thinned thinned) const {
  const auto job = Description();
  if (!job.ok()) return job.status();
  SeriesCollector collector(wanted);
  // Which column of a schema goes to which series: the same for all blocks of a node.
  std::map<std::pair<uint32_t, uint64_t>, std::vector<size_t>> targets;
  ReadTally tally;
  const Status status = ForEach(scope, tally, [&](const Stored& stored) {
    if (stored.info.last < start || stored.info.first > end) return;
    const auto [it, is_new] = targets.try_emplace({stored.key.node, stored.info.schema_id});
    std::vector<size_t>& target = it->second;
    if (is_new) target = TargetsOf(*stored.schema, stored.key.node, *job, thinned, collector);
    const auto wanted_column = [](size_t t) { return t != SeriesCollector::kUnwanted; };
    if (std::none_of(target.begin(), target.end(), wanted_column)) return;
    const auto block = DecodeBlock(stored.bytes);
    if (!block.ok() || block->columns() != target.size()) return;
    for (size_t i = 0; i < target.size(); ++i) {
      if (wanted_column(target[i])) collector.Add(target[i], *block, i, start, end);
    }
  });
  if (!status.ok()) return status;
  return collector.Take();
}

Result<std::vector<Series>> ProfileReader::AllSeries(Archive::Scope scope) const {
  const auto job = Description();
  if (!job.ok()) return job.status();
  const std::function<bool(const Series&)> all_of_them;
  SeriesCollector collector(all_of_them);
  std::map<std::pair<uint32_t, uint64_t>, bool> seen;
  ReadTally tally;
  SONDE_RETURN_IF_ERROR(ForEach(scope, tally, [&](const Stored& stored) {
    if (!seen.try_emplace({stored.key.node, stored.info.schema_id}).second) return;
    for (const Series& series : stored.schema->series()) {
      if (stored.key.node != kReducedNode && IsExtreme(series)) continue;
      collector.Find(Shown(series, stored.key.node, *job));
    }
  }));
  std::vector<Series> all;
  for (SeriesData& data : collector.Take()) all.push_back(std::move(data.series));
  return all;
}

}  // namespace sonde
