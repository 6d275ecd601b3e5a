// The indexes of db/: which entries a profile has in them, and the code that keeps them right.
//
// Each profile has an entry in the index by time, with its card, in the index by job, and in those
// by its command, job name, hosts, end state and tags. The batch that writes the profile writes all
// of these, so neither exists without the other. The indexes also hold how many profiles there are
// and how many bytes they take, for each user and in all.
//
// An archive that was written before there were cards has empty values in the index by time and
// entries only there and in the index by job; BuildIndexes makes the rest. Until then the key
// kIndexedKey is absent, and readers make the cards that they need from the profiles.
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

// The ids by which a job can be found: its own id, the id of the array or het job to which it
// belongs, and ARRAY_TASK.
std::vector<std::string> IdsOf(const JobDescription& job);

// The keys of all entries except the one by time, whose value is the card; these values are empty.
std::vector<std::string> IndexKeys(const JobDescription& job);

struct ProfileTotals {
  uint64_t profiles = 0;
  uint64_t bytes = 0;  // sum of Card::size
  // No profile lasted longer; it stays when profiles are removed. None in archives where no writer
  // has noted it.
  std::optional<Nanos> longest = 0;
  bool operator==(const ProfileTotals&) const = default;
};
std::string TotalsToBytes(const ProfileTotals& totals);
Result<ProfileTotals> TotalsFromBytes(std::string_view bytes);
// Of one user or, without `user`, of all; kNotFound if the indexes are not complete.
Result<ProfileTotals> ReadTotals(leveldb::DB& db, std::optional<std::string_view> user = {});

bool IsIndexed(leveldb::DB& db);

// Writes profiles and their entries into batches. Use one for all batches not written yet.
class IndexWriter {
 public:
  // `fresh`: the database has no profiles yet, so its indexes are complete from the beginning.
  explicit IndexWriter(leveldb::DB& db, bool fresh = false);

  // Puts the profile, its description and its entries, replacing those in the database.
  Status Put(const Profile& profile, leveldb::WriteBatch& batch);
  // Puts only the entries, if the caller writes the records; `profile_bytes` of its JSON.
  Status Enter(const Profile& profile, size_t profile_bytes, leveldb::WriteBatch& batch);
  // Removes the profile's entries; the caller removes its records.
  Status Remove(const std::string& key, leveldb::WriteBatch& batch);
  // Call it last in a batch: puts the totals.
  void Finish(leveldb::WriteBatch& batch);

 private:
  // The profile's entries in the database, and its card.
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
  bool lost_totals_ = false;
  std::map<std::string, ProfileTotals> totals_;  // by the keys of the totals
};

// Makes missing index entries, for about `budget`. Gives whether the indexes are complete now.
Result<bool> BuildIndexes(leveldb::DB& db, Nanos budget,
                          const std::function<void(uint64_t done, uint64_t total)>& progress);

// A profile's card and description, as the indexes have or should have them, from its record; if
// that cannot be read, from its description or, in the end, its key.
struct StoredCard {
  std::string card;
  JobDescription job;
};
StoredCard IndexedFrom(leveldb::DB& db, const std::string& key);

}  // namespace sonde
