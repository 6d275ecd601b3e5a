#include "profiles/reading/profile_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/model/parts.h"
#include "profiles/reading/assembly.h"
#include "profiles/reading/block_scan.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/records/stored_bytes.h"

namespace sonde {
namespace {

Result<std::string> Get(leveldb::DB& db, const std::string& at, std::string_view what) {
  std::string value;
  const leveldb::Status status = db.Get(CheckedRead(), at, &value);
  if (!status.ok()) return FromLevelDb(status, what);
  return value;
}

}  // namespace

Result<DescriptionPtr> ProfileReader::Description() const {
  const auto json = Get(db_, keys::Description(key_), "read the description of " + key_);
  if (!json.ok()) return json.status();
  if (kept_ != nullptr) return kept_->descriptions.Parse(key_, *json);
  auto job = DescriptionFromJson(*json);
  if (!job.ok()) return job.status();
  return std::make_shared<const JobDescription>(*std::move(job));
}

Result<Profile> ProfileReader::StoredProfile() const {
  const auto json = Get(db_, keys::Profile(key_), "read profile " + key_);
  if (!json.ok()) return json.status();
  if (kept_ == nullptr) return ProfileFromJson(*json);
  const auto profile = kept_->profiles.Parse(key_, *json);
  if (!profile.ok()) return profile.status();
  return **profile;
}

Result<StepMoments> ProfileReader::StoredMoments() const {
  const auto json = Get(db_, keys::Moments(key_), "read the moments of " + key_);
  if (!json.ok() && json.status().code() == Code::kNotFound) return StepMoments();
  if (!json.ok()) return json.status();
  return MomentsFromJson(*json);
}

Result<std::string> ProfileReader::Writer() const {
  return Get(db_, keys::Writer(key_), "read the writer of " + key_);
}

bool ProfileReader::finished() const { return Get(db_, keys::Finished(key_), "").ok(); }

Profile ProfileReader::Assemble(const JobDescription& job, ReadTally* tally_out) const {
  Profile profile;
  profile.job = job;
  Assembly assembly(job);
  ReadTally tally;
  std::set<uint64_t> schemas;
  Status status = ForEach(std::nullopt, tally, [&](const Stored& stored) {
    tally.last = std::max(tally.last, stored.info.last);
    if (schemas.insert(stored.info.schema_id).second) {
      tally.content += BytesInDb(stored.schema->encoded());
    }
    return true;
  });
  tally.content += tally.bytes;
  ReadTally rows;
  if (status.ok()) {
    status = ForEachReducedRow(0, std::numeric_limits<Nanos>::max(), rows,
                               [&](const Place& place, const Block& block, size_t row) {
                                 assembly.AddRow(place.key.group, place.schema, block, row);
                                 return Status();
                               });
  }
  if (!status.ok() && tally.first_error.empty()) tally.first_error = status.message();
  auto moments = StoredMoments();
  if (moments.ok()) {
    profile.moments = *std::move(moments);
  } else if (tally.first_error.empty()) {
    tally.first_error = moments.status().message();
  }
  profile.footprint = assembly.Footprint();
  tally.nodes_at = assembly.NodesAt();
  profile.cost.cpu_seconds = std::nan("");
  profile.cost.peak_node_memory = std::nan("");
  profile.cost.bytes_sent = std::nan("");
  if (job.end == 0 && tally.last > job.start) {
    const auto ticks = static_cast<uint64_t>(tally.last / job.period - job.start / job.period);
    Coverage& coverage = profile.job.coverage;
    coverage.got = NodeTicks(tally.nodes_at);
    coverage.expected = std::max<uint64_t>(coverage.got, ticks * job.expected_nodes);
  }
  profile.cost.stored_bytes = StoredBytes(tally.content, profile);
  if (tally_out != nullptr) *tally_out = tally;
  return profile;
}

Status ProfileReader::ForEach(std::optional<SeriesScope> scope, ReadTally& tally, const OnBlock& f,
                              Nanos first, Nanos last) const {
  const std::string reduced = keys::Block(key_, {kReducedNode, "", 0});
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
    if (status.code() == Code::kUnsupported) tally.unsupported = status;
    if (tally.first_error.empty()) tally.first_error = status.message();
  };
  const bool of_rows = scope == SeriesScope::kReduced;
  BlockScan scan(db_, key_, of_rows ? reduced.substr(0, reduced.size() - 9) : keys::Blocks(key_),
                 first, last);
  bool go_on = true;
  while (go_on && scan.Next()) {
    if (scope == SeriesScope::kNodes && scan.key().node == kReducedNode) break;
    ++tally.blocks;
    tally.bytes += scan.bytes().size();
    const auto info = ReadBlockInfo(scan.bytes());
    if (!info.ok()) {
      unreadable(info.status());
      continue;
    }
    const auto& schema = schema_of(info->schema_id);
    if (!schema.ok()) {
      unreadable(schema.status());
      continue;
    }
    if (info->columns != (*schema)->size()) {
      unreadable({Code::kCorrupt, "a block does not fit its schema"});
      continue;
    }
    go_on = f({scan.key(), *info, *schema, scan.bytes()});
  }
  // LevelDB passes over what it cannot read, and tells at the end.
  Status status = FromLevelDb(scan.status(), "read the blocks of " + key_);
  if (status.ok() && go_on && scope != SeriesScope::kReduced) {
    status = ForEachOfJoined(tally, f, first, last);
  }
  if (status.code() == Code::kCorrupt) unreadable(status);
  if (tally.unreadable > 0 && tally.unsupported.ok()) {
    Found("some of the blocks", {Code::kCorrupt, tally.first_error});
  }
  return status.code() == Code::kCorrupt ? Status() : status;
}

Status ProfileReader::ForEachOfJoined(ReadTally& tally, const OnBlock& f, Nanos first,
                                      Nanos last) const {
  std::map<uint64_t, Result<Schema::Ptr>> schemas;
  const auto unreadable = [&](const Status& status) {
    ++tally.unreadable;
    if (status.code() == Code::kUnsupported) tally.unsupported = status;
    if (tally.first_error.empty()) tally.first_error = status.message();
  };
  return ForEachJoined(
      db_, key_,
      [&](JoinedRecord& record) {
        const uint64_t id = record.info().schema_id;
        auto schema = schemas.find(id);
        if (schema == schemas.end()) {
          schema = schemas.emplace(id, ReadJoinedSchema(db_, key_, id)).first;
        }
        Status fits = schema->second.status();
        if (fits.ok() && (*schema->second)->size() != record.info().columns) {
          fits = Status(Code::kCorrupt, "joined blocks do not fit their schema");
        }
        tally.blocks += record.entries().size();
        tally.bytes += record.size();
        if (!fits.ok()) {
          unreadable(fits);
          return true;
        }
        for (size_t i = 0; i < record.entries().size(); ++i) {
          const JoinedEntry& entry = record.entries()[i];
          const BlockInfo info = record.InfoOf(i);
          if (info.last < first || info.first > last) continue;
          const BlockKey key{entry.node, entry.group, entry.sequence};
          if (!f({key, info, *schema->second, {}, &record, i})) return false;
        }
        return true;
      },
      unreadable);
}

}  // namespace sonde
