// The indexes of db/: what entries a profile has in them, and keeping them right.
//
// A profile stands in the index by time, with its card, in that by job, and in those by its
// command, job name, hosts, end state and tags. All of them are written in the batch that writes
// the profile, so there is none without the other. Beside them, how many profiles there are and how
// many bytes they take, of each user and of all.
//
// An archive that was written before there were cards has empty values in the index by time and
// nothing in the others but that by job; BuildIndexes makes them. Until then the key kIndexedKey is
// not there, and whoever reads makes the cards that he needs from the profiles.
//
// Thread safety: none; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "profiles/model/profile.h"

namespace sonde {

// The ids by which a job can be asked for: its own, that of the array or het job that it belongs
// to, and ARRAY_TASK.
std::vector<std::string> IdsOf(const JobDescription& job);

// Of every entry but that by time, whose value is the card: its key; the values are empty.
std::vector<std::string> IndexKeys(const JobDescription& job);

struct ProfileTotals {
  uint64_t profiles = 0;
  uint64_t bytes = 0;  // sum of Card::size
  // No profile lasted longer; not made less as they are removed. None in archives in which nobody
  // has noted it.
  std::optional<Nanos> longest = 0;
  bool operator==(const ProfileTotals&) const = default;
};
std::string TotalsToBytes(const ProfileTotals& totals);
Result<ProfileTotals> TotalsFromBytes(std::string_view bytes);
// Of a user or, without one, of all; kNotFound where the indexes are not complete.
Result<ProfileTotals> ReadTotals(leveldb::DB& db, std::optional<std::string_view> user = {});

bool IsIndexed(leveldb::DB& db);

// Writes profiles and their entries into batches. One for all batches that are not written yet.
class IndexWriter {
 public:
  // `fresh`: the database has no profiles yet, so its indexes are complete from the beginning.
  explicit IndexWriter(leveldb::DB& db, bool fresh = false);

  // The profile, its description and its entries in place of those that the database has of it.
  Status Put(const Profile& profile, leveldb::WriteBatch& batch);
  // Its entries alone, where its records are written otherwise; `profile_bytes` of its JSON.
  Status Enter(const Profile& profile, size_t profile_bytes, leveldb::WriteBatch& batch);
  // Takes the profile's entries out; its records are the caller's.
  Status Remove(const std::string& key, leveldb::WriteBatch& batch);
  // Last in the batch: totals.
  void Finish(leveldb::WriteBatch& batch);

 private:
  // The entries that the database has of the profile, and its card.
  struct Old {
    std::vector<std::string> keys;
    std::string by_time;  // "": the profile is not there
    std::string card;
  };
  Result<Old> Existing(const std::string& key) const;
  Status Count(std::string_view card, Nanos start, bool add);

  leveldb::DB& db_;
  const bool fresh_;
  const bool count_;
  std::map<std::string, ProfileTotals> totals_;  // by their keys
};

// Makes what is missing of the indexes, for about so long. Gives whether they are complete now.
Result<bool> BuildIndexes(leveldb::DB& db, Nanos budget,
                          const std::function<void(uint64_t done, uint64_t total)>& progress);

// What the indexes have, or ought to have, of a profile, by its record; where that cannot be read
// by its description or, in the end, its key.
struct StoredCard {
  std::string card;
  JobDescription job;
};
StoredCard IndexedFrom(leveldb::DB& db, const std::string& key);

}  // namespace sonde
