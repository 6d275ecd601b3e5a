// Reads one profile from a LevelDB that holds it: db/ or that of a live step, which use the same
// keys. Every block and schema is checked; one that fails is passed over and counted.
//
// Thread safety: const methods from any thread; the database must outlive the reader.
#pragma once

#include <leveldb/db.h>

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model/profile.h"
#include "profiles/reading/stored_rows.h"
#include "profiles/records/kept_parsed.h"
#include "series/block/block.h"
#include "series/block/schema.h"
#include "series/store/store.h"

namespace sonde {

// What the reader found.
struct ReadTally {
  uint64_t blocks = 0;
  uint64_t bytes = 0;       // of blocks
  uint64_t content = 0;     // Assemble: of blocks and, as db/ has them, schemas
  uint64_t unreadable = 0;  // blocks that fail their checks or whose schema is missing
  std::string first_error;
  Status unsupported;                // blocks of another version of Sonde
  Nanos last = 0;                    // time of the last row
  std::map<Nanos, double> nodes_at;  // Assemble: in each reduced row
};

class Damage;
class JoinedRecord;
struct FileRecord;
struct Part;

class ProfileReader {
 public:
  // `damage` hears of what cannot be read; nullptr: nobody has to know. `kept` has what was parsed
  // before; nullptr: all is parsed here.
  ProfileReader(leveldb::DB& db, std::string key, Damage* damage = nullptr,
                KeptRecords* kept = nullptr)
      : db_(db), key_(std::move(key)), damage_(damage), kept_(kept) {}

  const std::string& key() const { return key_; }
  Result<DescriptionPtr> Description() const;
  // kNotFound if the profile has no stored record.
  Result<Profile> StoredProfile() const;
  // The moments so far, of a step without a stored profile; empty if there are none.
  Result<StepMoments> StoredMoments() const;
  bool finished() const;
  // The writer of a live directory.
  Result<std::string> Writer() const;
  // Whether there is any such profile; a record of it may be damaged.
  bool IsThere() const;
  // Whether its description or its summary can be read.
  bool IsReadable() const;
  // The description; if it is damaged, what the other records tell, with a note.
  Result<DescriptionPtr> Described() const;
  // The stored profile; if there is none, the one that Assemble makes; if it is damaged, what the
  // other records tell, with a note.
  Result<Profile> Load() const;
  // The profile that its parts, at least one, and its blocks make together.
  Profile Whole(std::vector<Part> parts) const;
  // The profile made from the blocks, for a step whose end is not known: footprint and coverage
  // from the reduced blocks, up to the last one, and the moments that were stored by then. Of the
  // cost only the stored bytes.
  Profile Assemble(const JobDescription& job, ReadTally* tally = nullptr) const;

  Result<std::vector<SeriesData>> Read(SeriesScope scope, const SeriesWanted& wanted, Nanos start,
                                       Nanos end, Thinned thinned = Thinned::kMean,
                                       Earlier earlier = Earlier::kNone) const;
  // See Archive.
  Result<std::vector<Series>> AllSeries(SeriesScope scope, const SeriesWanted& wanted = {},
                                        size_t limit = SIZE_MAX) const;
  Status ReadShapes(SeriesScope scope, const OnStoredShape& f) const;
  // See Archive::ReadRows.
  Status ReadRows(SeriesScope scope, const RowsWanted& wanted, const OnStoredRow& f) const;
  // See Archive::ReadRecords. The tally counts what is unreadable.
  Status ForEachRecord(const std::function<Status(const FileRecord&)>& f, ReadTally& tally) const;

 private:
  struct Stored {
    BlockKey key;
    BlockInfo info;
    Schema::Ptr schema;
    std::string_view bytes;          // valid until the next block
    JoinedRecord* joined = nullptr;  // it is among these, and `bytes` are none; as valid
    size_t entry = 0;
  };
  // False: these are enough.
  using OnBlock = std::function<bool(const Stored&)>;
  // Calls `f` for the joined blocks that have rows of that time.
  Status ForEachOfJoined(ReadTally& tally, const OnBlock& f, Nanos first, Nanos last) const;
  // Where a block is.
  struct Place {
    static constexpr uint32_t kApart = UINT32_MAX;
    BlockKey key;
    BlockInfo info;
    // Of its rows that were not read yet the first one's. Where rows are thinned few spans of time
    // have any, and a block is not read for those without.
    Nanos next = 0;
    Schema::Ptr schema;
    uint32_t record = kApart;  // of joined blocks, by Places::records; kApart: none, but its own
    uint32_t entry = 0;        // of the record
  };
  struct Places {
    std::vector<Place> blocks;         // stream by stream, in the order of time
    std::vector<std::string> records;  // the keys of those that have joined blocks
  };
  Result<Places> FindPlaces(SeriesScope scope, Nanos start, Nanos end, ReadTally& tally) const;
  // The blocks of one stream that overlap in time, and are read together.
  using Unit = std::vector<Place*>;
  // In the order in which they are read. `daemons`: for each node, how many daemons its host had
  // before it; empty: none.
  static std::vector<Unit> UnitsOf(const std::vector<Place*>& blocks,
                                   const std::vector<uint32_t>& daemons);
  class BlockReading;
  // Calls `f` for the unit's rows of [from, to], in the order of time, each time once; `f` may end
  // it. Where reduced rows of two writers overlap, it is the row of more nodes. `row` is an index
  // into `block`. What is next at each place then lies behind `to`.
  using OnRow = std::function<Status(const Place& place, const Block& block, size_t row)>;
  Status MergeRows(const Unit& unit, BlockReading& blocks, Nanos from, Nanos to,
                   const OnRow& f) const;
  // Of the reduced blocks that reach into the time.
  Status ForEachReducedRow(Nanos start, Nanos end, ReadTally& tally, const OnRow& f) const;
  // Calls `f` for every good block in the order of keys that has rows of that time, those of one
  // scope or all. Others are not looked at, unless all times are asked for.
  Status ForEach(std::optional<SeriesScope> scope, ReadTally& tally, const OnBlock& f,
                 Nanos first = std::numeric_limits<Nanos>::min(),
                 Nanos last = std::numeric_limits<Nanos>::max()) const;

  // Tells that some of the profile cannot be read.
  void Found(std::string_view what, const Status& why) const;
  bool IsFinished() const;
  std::vector<Part> ReadableParts() const;

  leveldb::DB& db_;
  std::string key_;
  Damage* damage_;
  KeptRecords* kept_;
};

}  // namespace sonde
