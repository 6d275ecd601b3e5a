#include "profiles/records/owed_room.h"

#include <charconv>
#include <memory>
#include <string_view>
#include <vector>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/records/keys.h"

namespace sonde {
namespace {

// The bytes compacted in one go: reading that much may take a second.
constexpr uint64_t kAtOnce = 64u << 20;

struct Owed {
  std::string key;  // the profile's
  uint64_t bytes = 0;
};

// Neighbours in db/.
struct OwedRange {
  std::string first;  // profiles
  std::string last;
  uint64_t profiles = 0;
  uint64_t bytes = 0;
  leveldb::WriteBatch records;  // deletes the records that say that room is owed
};

// In the order of their blocks.
Result<std::vector<Owed>> ReadOwed(leveldb::DB& db) {
  std::vector<Owed> all;
  const std::string prefix(1, keys::kOwedKind);
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    std::string_view key = View(it->key());
    key.remove_prefix(prefix.size());
    Owed& owed = all.emplace_back();
    owed.key = key.substr(0, key.find('\0'));
    const leveldb::Slice bytes = it->value();
    std::from_chars(bytes.data(), bytes.data() + bytes.size(), owed.bytes);
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read what room is owed");
  return all;
}

// Whether there is a profile between `from` and `to`.
bool HasProfileBetween(leveldb::Iterator& it, const std::string& from, const std::string& to) {
  it.Seek(keys::Description(from));
  return it.Valid() && it.key().compare(keys::Description(to)) < 0;
}

// As few as possible, since LevelDB compacts all of its upper levels for each.
std::vector<OwedRange> RangesOf(leveldb::DB& db, const std::vector<Owed>& all) {
  std::vector<OwedRange> ranges;
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  for (const Owed& owed : all) {
    if (ranges.empty() || ranges.back().bytes >= kAtOnce ||
        HasProfileBetween(*it, ranges.back().last, owed.key)) {
      ranges.emplace_back().first = owed.key;
    }
    OwedRange& range = ranges.back();
    range.last = owed.key;
    ++range.profiles;
    range.bytes += owed.bytes;
    range.records.Delete(keys::Owed(owed.key));
  }
  return ranges;
}

}  // namespace

void Owe(leveldb::WriteBatch& batch, const std::string& key, uint64_t bytes) {
  batch.Put(keys::Owed(key), std::to_string(bytes));
}

Result<OwedRoom> ReadOwedRoom(leveldb::DB& db) {
  const auto all = ReadOwed(db);
  if (!all.ok()) return all.status();
  OwedRoom room;
  for (const Owed& owed : *all) {
    ++room.profiles;
    room.bytes += owed.bytes;
  }
  return room;
}

Result<uint64_t> GiveBack(WritableDb& db, Nanos budget) {
  const Nanos until = Clock::System().Monotonic() + budget;
  const auto all = ReadOwed(db);
  if (!all.ok()) return all.status();
  uint64_t given = 0;
  for (OwedRange& range : RangesOf(db, *all)) {
    if (Clock::System().Monotonic() > until) break;
    const std::string first = keys::Blocks(range.first);
    const std::string last = keys::Blocks(range.last) + "\xff";
    const leveldb::Slice begin(first);
    const leveldb::Slice end(last);
    db.CompactRange(&begin, &end);
    SONDE_RETURN_IF_ERROR(db.failure());
    SONDE_RETURN_IF_ERROR(
        FromLevelDb(db.Write(leveldb::WriteOptions(), &range.records), "note what was given back"));
    given += range.profiles;
  }
  // LevelDB may still be deleting files when it reports the end. It is not when it has done some
  // more work, since one thread does both. Files that were kept for readers are deleted now, too.
  const leveldb::Slice nothing;
  db.CompactRange(&nothing, &nothing);
  SONDE_RETURN_IF_ERROR(db.failure());
  return given;
}

Status ForgetOwedRoom(WritableDb& db) {
  const auto all = ReadOwed(db);
  if (!all.ok()) return all.status();
  leveldb::WriteBatch batch;
  for (const Owed& owed : *all) batch.Delete(keys::Owed(owed.key));
  return all->empty()
             ? Status()
             : FromLevelDb(db.Write(leveldb::WriteOptions(), &batch), "note what was given back");
}

}  // namespace sonde
