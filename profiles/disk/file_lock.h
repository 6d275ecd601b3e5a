// An exclusive lock on a file, held by one open file description.
//
// LevelDB's own lock is a POSIX record lock: it belongs to the process, and any close of the file
// in that process drops it, also the one LevelDB itself makes when it finds its database in use.
// Open file description locks have neither trap, are seen by other hosts on file systems that
// support record locks, and are gone when their holder is.
//
// Who only reads what the holder writes takes a share in the file (FileShare): it keeps nobody out,
// and nobody keeps it out, but the holder can see that there are some before he deletes what they
// may be reading.
//
// Thread safety: values that can be moved, one thread at a time; IsLocked and IsTaken from any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"

namespace sonde {

class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // Creates the file (0600) if needed. Waits up to `wait`; kBusy if somebody else has it then.
  static Result<FileLock> Acquire(const std::string& path, Nanos wait);
  // Whether somebody holds it now. A file that does not exist is not locked. Disturbs nobody.
  static bool IsLocked(const std::string& path);

  // What the file says to those who find it locked, such as the holder's host.
  Status Write(std::string_view text);
  // The same, and nothing that stood there before.
  Status Replace(std::string_view text);
  bool held() const { return fd_ >= 0; }
  void Release();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

class FileShare {
 public:
  FileShare() = default;
  FileShare(FileShare&& other) noexcept;
  FileShare& operator=(FileShare&& other) noexcept;
  ~FileShare();

  // Needs no right but to read the file, and writes nothing. One that is not held if that cannot be
  // had: there is no such file, or its file system has no locks.
  static FileShare Take(const std::string& path);
  // Whether there is one, of this process or another.
  static bool IsTaken(const std::string& path);
  bool held() const { return fd_ >= 0; }

 private:
  explicit FileShare(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace sonde
