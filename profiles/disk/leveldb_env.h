// LevelDB's environment: how it reaches files, and how its errors are told.
//
// QuietOpenEnv leaves out the fsyncs and the lock file of creating a database. A running step's
// archive promises that what it acknowledged survives a kill of its writer, for which the page
// cache is enough; several fsyncs in the path of a step of a second are not. Once opened, LevelDB
// syncs as it always does.
//
// WriterEnv syncs the name CURRENT whenever another manifest gets it, which LevelDB does not, and
// deletes nothing that a reader needs. A process that reads a database which another one
// writes has a share in its lock (file_lock.h); as long as it has the share, it finds the tables
// and logs that a later compaction has made superfluous. They are deleted with the next compaction,
// when the database is closed, or when it is opened next. And WriterEnv stops at the first change
// of a file that fails: all later changes fail with the same error, so LevelDB cannot acknowledge
// records behind a gap (writable_db.h). LevelDB then leaves behind the files of an unfinished
// compaction, and on a full disk it could not delete them at the next open, which needs room
// itself. A failed opening leaves the new log, with another number each time.
//
// Tables are read by position rather than mapped: around each access to a mapped file Linux reads
// as much as it reads ahead elsewhere, on some file systems the whole table.
//
// Thread safety: as leveldb::Env, all methods from any thread.
#pragma once

#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/status.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "profiles/disk/claim.h"
#include "profiles/disk/read_failures.h"

namespace sonde {

// Converts LevelDB's status to ours; `what` was tried.
Status FromLevelDb(const leveldb::Status& status, std::string_view what);

// Whether the directory holds files of LevelDB without the file that names them. That is damage:
// LevelDB would make a new database there and delete these files.
Result<bool> LacksCurrent(const std::string& path);

// Drops LevelDB's own log, which would be one more file. Never deleted.
leveldb::Logger* NullLogger();
// One that its user deletes.
leveldb::Logger* NewNullLogger();

// Corruption if another thing than a regular file is there: LevelDB would wait for ever for the
// other end of a FIFO, which is damage like any other. `name` is for messages.
leveldb::Status CheckRegular(const std::string& path, const std::string& name);
// A table to be read by position. A missing file is not a missing key, as NotFound would say.
leveldb::Status OpenTable(const std::string& path, const std::string& name,
                          leveldb::RandomAccessFile** file);

// The environment of one open database.
class WriterEnv : public leveldb::EnvWrapper {
 public:
  // `lock`: the path of the database's lock. `fence`: asked before files are made, renamed, deleted
  // and synced; nullptr: nobody else can take the database.
  explicit WriterEnv(std::string lock, std::shared_ptr<Fence> fence = nullptr)
      : EnvWrapper(leveldb::Env::Default()), lock_(std::move(lock)), fence_(std::move(fence)) {}

  // Changes no file from now on; the first reason counts.
  void Stop(const leveldb::Status& why);
  // Stops if the database is not ours any more; gives why it has stopped, if it has.
  leveldb::Status CheckFence();
  // Why no file is written any more; ok if files are still written.
  leveldb::Status failure() const;
  // The database is open or, with `ok` false, could not be opened. Then deletes the files that were
  // made for the opening, also while there are readers: only a manifest that was put in place could
  // name these files.
  void EndOpening(bool ok);
  // Once LevelDB is closed: deletes the tables that no manifest can name (of a compaction that
  // failed or was given up), and files kept for readers, if there are no readers any more.
  void EndWriting();
  // Called by the manifest's file: the manifest may name all files made until then.
  void ManifestWritten();
  // Of reads. While the database is being opened the first one stops it: LevelDB would pass over
  // what a log has, and delete the log.
  const ReadFailures& reads() const { return reads_; }
  // Whether a sync is left out.
  virtual bool quiet() const { return false; }

  leveldb::Status NewSequentialFile(const std::string& name, leveldb::SequentialFile** f) override;
  leveldb::Status NewRandomAccessFile(const std::string& name,
                                      leveldb::RandomAccessFile** f) override;
  bool FileExists(const std::string& name) override;
  leveldb::Status GetChildren(const std::string& directory,
                              std::vector<std::string>* names) override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  // Also works after a failure: LevelDB then deletes the files that it could not write to the end
  // and, of the rest, only files that its manifest does not need. Keeps the manifest that CURRENT
  // names.
  leveldb::Status RemoveFile(const std::string& name) override;

  // Runs `change`, unless this has stopped; a failure of `change` stops it.
  template <typename Change>
  leveldb::Status Try(Change change) {
    leveldb::Status status = failure();
    if (!status.ok()) return status;
    status = change();
    if (!status.ok()) Stop(status);
    return status;
  }

 private:
  leveldb::Status Watched(const std::string& name, leveldb::Status opened,
                          leveldb::WritableFile** file);
  // Stops if a read of the opening has failed.
  void LookAtReads();
  // Whether there are readers or not.
  leveldb::Status Delete(const std::string& name);

  const std::string lock_;
  const std::shared_ptr<Fence> fence_;
  ReadFailures reads_;
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;  // guards the members below
  leveldb::Status why_;
  std::atomic<bool> opening_ = true;
  std::vector<std::string> made_;  // to open the database, since a manifest was put in place
  std::set<std::string> unnamed_;  // tables that were made since a manifest was last written to
  std::set<std::string> put_off_;  // files that LevelDB does not need any more and a reader does
};

class QuietOpenEnv : public WriterEnv {
 public:
  // `quiet`: the database is being made, not opened again.
  QuietOpenEnv(std::string lock, bool quiet, std::shared_ptr<Fence> fence)
      : WriterEnv(std::move(lock), std::move(fence)), quiet_(quiet) {}
  void Opened() { quiet_ = false; }
  bool quiet() const override { return quiet_; }

  // The user of this environment holds a lock of its own.
  leveldb::Status LockFile(const std::string&, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  leveldb::Status NewLogger(const std::string&, leveldb::Logger** logger) override;

 private:
  std::atomic<bool> quiet_;
};

}  // namespace sonde
