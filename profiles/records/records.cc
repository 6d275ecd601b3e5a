#include "profiles/records/records.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/model/parts.h"
#include "profiles/model/profile.h"
#include "profiles/records/card.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "series/block/block.h"
#include "series/block/schema.h"

namespace sonde {
namespace {

Status WrongRecord(std::string_view what) { return {Code::kCorrupt, std::string(what)}; }

// A kind and a profile, which ends in a zero byte; "" for another form.
std::string_view ProfileIn(std::string_view key) {
  const size_t end = key.find('\0');
  return end == std::string_view::npos ? std::string_view{} : key.substr(1, end - 1);
}

Status CheckJob(const JobDescription& job, std::string_view profile) {
  return keys::ProfileKey(job) == profile ? Status() : WrongRecord("it describes another step");
}

Result<RecordContent> CheckBlock(const Record& record, std::string_view key,
                                 std::string_view value) {
  if (!keys::ParseBlock(record.profile, key)) return WrongRecord("its key is none of a block");
  const auto block = DecodeBlock(value);
  if (!block.ok()) return block.status();
  return RecordContent{block->schema_id, block->columns(), 0};
}

Result<RecordContent> CheckSchema(std::string_view key, std::string_view value) {
  const auto schema = Schema::Decode(value);
  if (!schema.ok()) return schema.status();
  if (keys::ParseSchema(key) != (*schema)->id()) return WrongRecord("it is another schema");
  return RecordContent{(*schema)->id(), (*schema)->size(), 0};
}

Result<RecordContent> CheckBlockCount(std::string_view value) {
  RecordContent content;
  const char* end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, content.blocks);
  if (read.ec != std::errc() || read.ptr != end) return WrongRecord("it is no number");
  return content;
}

}  // namespace

Record ParseRecord(std::string_view key) {
  if (key == keys::kFormatKey) return {RecordKind::kFormat, {}};
  if (key == keys::kIndexedKey) return {RecordKind::kIndexed, {}};
  if (keys::ParseSchema(key)) return {RecordKind::kSchema, {}};
  if (key.starts_with(keys::kTotals)) return {RecordKind::kTotals, {}};
  if (key.starts_with(keys::kByTime)) {
    const std::string_view profile = keys::ProfileOfTimeIndex(key);
    if (keys::DescribeKey(profile)) return {RecordKind::kCard, profile};
  }
  constexpr std::pair<char, RecordKind> kKinds[] = {
      {'b', RecordKind::kBlock},           {'d', RecordKind::kDescription},
      {'p', RecordKind::kProfile},         {'q', RecordKind::kPart},
      {'n', RecordKind::kBlockCount},      {'m', RecordKind::kMoments},
      {keys::kOwedKind, RecordKind::kOwed}};
  for (const auto& [kind, record] : kKinds) {
    if (key.empty() || key[0] != kind) continue;
    const std::string_view profile = ProfileIn(key);
    if (keys::DescribeKey(profile)) return {record, profile};
  }
  if (const auto other = keys::ParseOther(key)) return {RecordKind::kOther, other->profile};
  if (!key.empty() && !keys::IsKnownKind(key[0])) return {RecordKind::kOther, {}};
  return {};
}

Result<RecordContent> CheckRecord(std::string_view key, std::string_view value) {
  const Record record = ParseRecord(key);
  switch (record.kind) {
    case RecordKind::kFormat:
      if (value != keys::kFormat) return WrongRecord("it names another format");
      return RecordContent();
    case RecordKind::kBlock:
      return CheckBlock(record, key, value);
    case RecordKind::kSchema:
      return CheckSchema(key, value);
    case RecordKind::kBlockCount:
      return CheckBlockCount(value);
    case RecordKind::kDescription: {
      const auto job = DescriptionFromJson(value);
      const Status status = job.ok() ? CheckJob(*job, record.profile) : job.status();
      if (!status.ok()) return status;
      return RecordContent();
    }
    case RecordKind::kProfile:
    case RecordKind::kPart: {
      const auto profile = ProfileFromJson(value);
      const Status status =
          profile.ok() ? CheckJob(profile->job, record.profile) : profile.status();
      if (!status.ok()) return status;
      return RecordContent();
    }
    case RecordKind::kCard: {
      Card card;
      // Without a value it is an entry of an archive that has no cards yet.
      const Status status = value.empty() ? Status() : DecodeCard(value, card);
      if (!status.ok()) return status;
      return RecordContent();
    }
    case RecordKind::kTotals: {
      const auto totals = TotalsFromBytes(value);
      if (!totals.ok()) return totals.status();
      return RecordContent();
    }
    case RecordKind::kMoments: {
      const auto moments = MomentsFromJson(value);
      if (!moments.ok()) return moments.status();
      return RecordContent();
    }
    case RecordKind::kOther:
      return Status(Code::kUnsupported, "a record of a kind that a later Sonde has added");
    case RecordKind::kIndexed:
    case RecordKind::kOwed:
    case RecordKind::kIndex:
      return RecordContent();
  }
  return RecordContent();
}

Result<JobDescription> ReadDescription(leveldb::DB& db, std::string_view profile) {
  std::string json;
  const leveldb::Status read = db.Get(CheckedRead(), keys::Description(profile), &json);
  if (!read.ok()) return FromLevelDb(read, "read the description of " + std::string(profile));
  return DescriptionFromJson(json);
}

Result<Profile> ReadProfile(leveldb::DB& db, std::string_view profile) {
  std::string json;
  const leveldb::Status read = db.Get(CheckedRead(), keys::Profile(profile), &json);
  if (!read.ok()) return FromLevelDb(read, "read profile " + std::string(profile));
  return ProfileFromJson(json);
}

Result<std::string> OtherKinds(leveldb::DB& db) {
  std::string kinds;
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  for (int c = 0; c <= 0xff; ++c) {
    if (keys::IsKnownKind(static_cast<char>(c))) continue;
    it->Seek(std::string(1, static_cast<char>(c)));
    if (!it->Valid()) break;
    const auto found = static_cast<unsigned char>(it->key().empty() ? 0 : it->key()[0]);
    // The next key is of a known kind: the search goes on behind it.
    c = std::max<int>(c, found);
    if (!keys::IsKnownKind(static_cast<char>(found))) kinds.push_back(static_cast<char>(found));
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read the kinds of records");
  return kinds;
}

Status ForEachOther(leveldb::DB& db, std::string_view kinds, std::string_view profile,
                    const std::function<void(std::string_view, std::string_view)>& f) {
  for (const char kind : kinds) {
    SONDE_RETURN_IF_ERROR(ForEachRecord(db, keys::Other(kind, profile), f));
  }
  return {};
}

std::vector<std::string> DescribedProfiles(leveldb::DB& db) {
  std::set<std::string, std::less<>> profiles;
  for (const std::string_view kind : {"d", "p", "q", "n"}) {
    static_cast<void>(ForEachRecord(db, kind, [&](std::string_view key, std::string_view) {
      const Record record = ParseRecord(key);
      if (!record.profile.empty()) profiles.emplace(record.profile);
    }));
  }
  return {profiles.begin(), profiles.end()};
}

Status ForEachRecord(leveldb::DB& db, std::string_view prefix,
                     const std::function<void(std::string_view, std::string_view)>& f) {
  const leveldb::ReadOptions options = CheckedScan();
  const leveldb::Slice from(prefix.data(), prefix.size());
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(options));
  for (it->Seek(from); it->Valid() && it->key().starts_with(from); it->Next()) {
    const leveldb::Slice key = it->key();
    const leveldb::Slice value = it->value();
    f({key.data(), key.size()}, {value.data(), value.size()});
  }
  return FromLevelDb(it->status(), "read the database");
}

}  // namespace sonde
