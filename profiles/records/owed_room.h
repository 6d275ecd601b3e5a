// The room of deleted profiles. LevelDB keeps this room until it compacts the range of their
// blocks: perhaps never. So we ask LevelDB to compact, after a prune and while there is still room
// for that. As long as room is owed, a record says so (keys::Owed). It is written with the
// deletion, so a killed process forgets nothing, and is deleted when the room was given back.
//
// LevelDB rewrites a lot to give back a little, so this waits until much is owed or somebody needs
// room.
//
// Thread safety: functions without state; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/disk/writable_db.h"

namespace sonde {

// For the batch that deletes the blocks of a profile, `bytes` of them: adds the record.
void Owe(leveldb::WriteBatch& batch, const std::string& key, uint64_t bytes);

struct OwedRoom {
  uint64_t profiles = 0;
  uint64_t bytes = 0;
  // Whether giving it back is worth the work.
  bool much() const { return bytes >= (8u << 20) || profiles >= 1000; }
};
Result<OwedRoom> ReadOwedRoom(leveldb::DB& db);

// Has LevelDB give back the owed room, for about `budget`. Gives the number of profiles whose room
// it gave back; the next call goes on with the rest.
Result<uint64_t> GiveBack(WritableDb& db, Nanos budget);
// Deletes the records without a compaction: LevelDB has compacted everything already.
Status ForgetOwedRoom(WritableDb& db);

}  // namespace sonde
