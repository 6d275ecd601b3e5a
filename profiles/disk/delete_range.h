// Deletes the records of a database from one key to another.
//
// Thread safety: as the database.
#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"

namespace sonde {

// Adds to `batch` that the records from `first` to `last` go, both included; gives the bytes of
// their values. `name`: the database's, for errors. All or none: where one cannot be read, nothing
// is added.
inline Result<uint64_t> DeleteRange(leveldb::DB& db, const std::string& first,
                                    const std::string& last, const std::string& name,
                                    leveldb::WriteBatch& batch) {
  uint64_t bytes = 0;
  leveldb::WriteBatch deletes;
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  for (it->Seek(first); it->Valid() && it->key().compare(last) <= 0; it->Next()) {
    bytes += it->value().size();
    deletes.Delete(it->key());
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read " + name);
  batch.Append(deletes);
  return bytes;
}

}  // namespace sonde
