// Reads of a database that failed, though nothing is known to be wrong with its files: too few
// descriptors, no memory, an error of the disk or of the network behind it.
//
// LevelDB passes over some of them as it does over damage: what could not be read then seems not to
// be there. So whoever changes something for good by what was read asks here whether all of it was.
// A file that is missing, and one that fails its checks, is damage and not counted.
//
// Thread safety: any thread.
#pragma once

#include <leveldb/env.h>
#include <leveldb/status.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace sonde {

class ReadFailures {
 public:
  // Takes note of how a read ended, and gives that back.
  leveldb::Status Hear(leveldb::Status status);
  // So many have failed.
  uint64_t count() const { return count_; }
  // The newest of them; ok if there was none.
  leveldb::Status newest() const;

  // The same file, whose reads are heard. This object must outlive it.
  leveldb::SequentialFile* Heard(leveldb::SequentialFile* file);
  leveldb::RandomAccessFile* Heard(leveldb::RandomAccessFile* file);

 private:
  std::atomic<uint64_t> count_ = 0;
  mutable std::mutex mutex_;  // guards the member below
  leveldb::Status newest_;
};

}  // namespace sonde
