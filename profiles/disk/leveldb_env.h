// What LevelDB is given by us: how it reaches files, and how its errors are told.
//
// QuietOpenEnv leaves out the fsyncs and the lock file of creating a database. A running step's
// archive promises that what it acknowledged survives a kill of its writer, for which the page
// cache is enough; several fsyncs in the path of a step of a second are not. Once opened, LevelDB
// syncs as it always does.
//
// WriterEnv deletes nothing that somebody reads: whoever reads a database that is another's to
// write has a share in its lock (file_lock.h), and finds tables and logs that a later compaction
// has made superfluous as long as he has it. They go with the next compaction, when the database is
// closed, or when it is opened next. And it stops at the first change of a file that fails: all
// later ones fail with the same error, so that LevelDB cannot acknowledge what it writes behind a
// gap (writable_db.h). LevelDB leaves behind then what a compaction had written by that time, and
// on a full disk could not delete it when it opens the database next: that needs room itself. Of an
// opening that fails it leaves the new log, with another number each time.
//
// OverlayEnv shows a database as it is on disk and keeps whatever LevelDB writes to it in memory:
// so one can be read that is another's, read-only, damaged or written by somebody else right now,
// without changing a byte of it.
//
// Tables are read by position rather than mapped: of a mapped file Linux reads as much around each
// place that is looked at as it reads ahead elsewhere, on some file systems all of the table.
//
// Thread safety: as leveldb::Env, all methods from any thread.
#pragma once

#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/status.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"

namespace sonde {

// LevelDB's status as ours; `what` was tried.
Status FromLevelDb(const leveldb::Status& status, std::string_view what);

// Whether the directory holds data of LevelDB without the file that names them, which is damage:
// LevelDB would make a new database there and delete them.
bool LacksCurrent(const std::string& path);

// Drops LevelDB's own log, which would be one more file. Never deleted.
leveldb::Logger* NullLogger();

// Of one handle of a database.
class WriterEnv : public leveldb::EnvWrapper {
 public:
  // `lock`: the path of the database's lock.
  explicit WriterEnv(std::string lock)
      : EnvWrapper(leveldb::Env::Default()), lock_(std::move(lock)) {}

  // From now on no file is changed; the first reason counts.
  void Stop(const leveldb::Status& why);
  // Why nothing is written any more; ok as long as that is not so.
  leveldb::Status failure() const;
  // The database at `path` is open or, with `ok` false, could not be opened. Then what was made for
  // that is deleted, also while somebody reads: only a manifest that was put in place could name
  // it.
  void EndOpening(const std::string& path, bool ok);
  // Once LevelDB is closed: deletes the tables that no manifest can name, those of a compaction
  // that failed or was given up, and what somebody was reading, if nobody does any more.
  void EndWriting();
  // By its file: whatever was made until then may be named by it.
  void ManifestWritten();
  // Whether a sync is left out.
  virtual bool quiet() const { return false; }

  leveldb::Status NewRandomAccessFile(const std::string& name,
                                      leveldb::RandomAccessFile** f) override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  // Also after a failure: LevelDB deletes then what it could not write to its end, and of the rest
  // only what its manifest does not need.
  leveldb::Status RemoveFile(const std::string& name) override;

  // `change`, unless it has stopped; what that fails with stops it.
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

  const std::string lock_;
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;  // of those below
  leveldb::Status why_;
  bool opening_ = true;
  std::vector<std::string> made_;  // to open it, since a manifest was last put in place
  std::set<std::string> unnamed_;  // tables that were made since a manifest was last written to
  std::set<std::string> put_off_;  // what LevelDB does not need any more and somebody was reading
};

class QuietOpenEnv : public WriterEnv {
 public:
  // `quiet`: the database is made, not opened again.
  QuietOpenEnv(std::string lock, bool quiet) : WriterEnv(std::move(lock)), quiet_(quiet) {}
  void Opened() { quiet_ = false; }
  bool quiet() const override { return quiet_; }

  // Whoever uses this environment holds a lock of its own.
  leveldb::Status LockFile(const std::string&, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  leveldb::Status NewLogger(const std::string&, leveldb::Logger** logger) override;

 private:
  std::atomic<bool> quiet_;
};

class OverlayEnv : public leveldb::EnvWrapper {
 public:
  using Content = std::shared_ptr<std::string>;

  // Of the database at `path`, also if the directory gets another name.
  explicit OverlayEnv(std::string path);
  ~OverlayEnv() override;

  // From now on nothing more can be written, so that LevelDB does not compact into memory.
  void Seal();

  leveldb::Status NewSequentialFile(const std::string& name, leveldb::SequentialFile** f) override;
  leveldb::Status NewRandomAccessFile(const std::string& name,
                                      leveldb::RandomAccessFile** f) override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** f) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** f) override;
  bool FileExists(const std::string& name) override;
  leveldb::Status GetChildren(const std::string& dir, std::vector<std::string>* names) override;
  leveldb::Status RemoveFile(const std::string& name) override;
  leveldb::Status CreateDir(const std::string&) override { return leveldb::Status::OK(); }
  leveldb::Status RemoveDir(const std::string&) override { return leveldb::Status::OK(); }
  leveldb::Status GetFileSize(const std::string& name, uint64_t* size) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status LockFile(const std::string&, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  void Schedule(void (*function)(void*), void* argument) override;
  leveldb::Status NewLogger(const std::string&, leveldb::Logger** logger) override;

 private:
  // The file in memory; nullptr if it is on disk or nowhere.
  Content Find(const std::string& name);
  bool Hidden(const std::string& name);
  // Where the file is on disk.
  std::string Real(const std::string& name) const;

  const std::string path_;
  const int directory_;
  std::mutex mutex_;
  std::map<std::string, Content> files_;
  std::set<std::string> removed_;
  std::vector<std::pair<void (*)(void*), void*>> scheduled_;  // until Seal
  bool sealed_ = false;
};

}  // namespace sonde
