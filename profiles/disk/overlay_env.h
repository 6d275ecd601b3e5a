// LevelDB's view of a database that is only read.
//
// OverlayEnv shows a database as it is on disk and keeps whatever LevelDB writes to it in memory.
// So we can read a database that is another user's, read-only, damaged or being written right now,
// without changing a byte of it.
//
// Thread safety: as leveldb::Env, all methods from any thread.
#pragma once

#include <leveldb/env.h>
#include <leveldb/status.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiles/disk/read_failures.h"

namespace sonde {

class OverlayEnv : public leveldb::EnvWrapper {
 public:
  using Content = std::shared_ptr<std::string>;

  // For the database at `path`, also if the directory is renamed.
  explicit OverlayEnv(std::string path);
  ~OverlayEnv() override;

  // Tables whose index fails its checksum are refused from now on, as LevelDB itself does only with
  // paranoid checks: what it then takes from such an index may end the process.
  void CheckTables() { check_tables_ = true; }

  const ReadFailures& reads() const { return reads_; }

  // Refuses all writes from now on, so that LevelDB does not compact into memory.
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
  ReadFailures reads_;
  std::mutex mutex_;
  std::map<std::string, Content> files_;
  std::set<std::string> removed_;
  std::vector<std::pair<void (*)(void*), void*>> scheduled_;  // until Seal
  bool sealed_ = false;
  bool check_tables_ = false;  // set before LevelDB has the object
};

}  // namespace sonde
