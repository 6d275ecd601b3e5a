// An exclusive lock on a file, held by one open file description.
//
// LevelDB's own lock is a POSIX record lock: it belongs to the process, and any close of the file
// in that process drops the lock, even the close that LevelDB itself makes when it finds its
// database in use. Open file description locks have neither trap, are seen by other hosts on file
// systems that support record locks, and are gone when their holder is.
//
// A process that only reads what the holder writes takes a share in the file (FileShare): a share
// keeps no process out, and no lock keeps a share out. But the holder sees whether there are shares
// before it deletes files that may be in use by readers.
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

  // Creates the file (0600) if needed. Waits up to `wait`; then kBusy if another process has it.
  static Result<FileLock> Acquire(const std::string& path, Nanos wait);
  // Whether a process holds the lock now, or may: too few descriptors are left to look. A file that
  // does not exist is not locked. Writes nothing.
  static bool IsLocked(const std::string& path);

  // Writes the text for those who find the file locked, such as the holder's host.
  Status Write(std::string_view text);
  // The same, and removes all text that was there before.
  Status Replace(std::string_view text);
  bool held() const { return fd_ >= 0; }
  // Whether the file is the one at `path`: neither it nor its directory was renamed or deleted. An
  // error says nothing of that.
  Result<bool> IsAt(const std::string& path) const;
  // Sets the time of the file's change to now.
  void Touch() const;
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

  // Needs only the right to read the file, and writes nothing. Gives a share that is not held if it
  // cannot be taken: there is no such file, or its file system has no locks.
  static FileShare Take(const std::string& path);
  // Whether a share exists, of this process or another, or may exist.
  static bool IsTaken(const std::string& path);
  bool held() const { return fd_ >= 0; }

 private:
  explicit FileShare(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace sonde
