// The room of deleted profiles, which LevelDB keeps until it compacts where their blocks were:
// perhaps never. So it is asked to, behind a prune and while there is still room for that: as long
// as some is owed, a record says so (keys::Owed). It is written with the deletion, so that a
// process that is killed forgets nothing, and deleted when the room was given back.
//
// LevelDB rewrites a good deal to give back a little, so that waits until much is owed or somebody
// wants room.
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

// In the batch that deletes the blocks of a profile, `bytes` of them.
void Owe(leveldb::WriteBatch& batch, const std::string& key, uint64_t bytes);

struct OwedRoom {
  uint64_t profiles = 0;
  uint64_t bytes = 0;
  // Whether it is worth the work.
  bool much() const { return bytes >= (8u << 20) || profiles >= 1000; }
};
Result<OwedRoom> ReadOwedRoom(leveldb::DB& db);

// Has LevelDB give back what is owed, for about `budget`. Gives of how many profiles it did; for
// the rest it goes on next time.
Result<uint64_t> GiveBack(WritableDb& db, Nanos budget);
// Without asking LevelDB: all was compacted otherwise.
Status ForgetOwedRoom(WritableDb& db);

}  // namespace sonde
