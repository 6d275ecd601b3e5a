// The archive's directories and plain files; docs/archive.md says where each one is.
//
// Thread safety: functions without state.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "core/unique_fd.h"

namespace sonde {

// Paths below the archive's root.
struct ArchivePaths {
  explicit ArchivePaths(std::string archive) : root(std::move(archive)) {}
  std::string root;
  std::string live() const { return root + "/live"; }
  std::string waiting() const { return root + "/waiting"; }  // see live_steps.h
  std::string db() const { return root + "/db"; }
  std::string db_lock() const { return db() + ".lock"; }       // CreateDb knows it so
  std::string db_owner() const { return root + "/db.owner"; }  // see claim.h
  std::string db_format() const { return root + "/db.format"; }
  std::string reserve() const { return root + "/db.reserve"; }  // see room.h
};

// Paths of one running or not yet ingested step, below live/<name>/.
struct LivePaths {
  explicit LivePaths(std::string directory) : dir(std::move(directory)) {}
  std::string dir;
  std::string lock() const { return dir + "/lock"; }  // held by the writer; see LiveStep
  std::string description() const { return dir + "/description.json"; }
  std::string endpoint() const { return dir + "/endpoint.json"; }
  std::string state() const { return dir + "/state"; }    // for the next writer of the step
  std::string blocks() const { return dir + "/blocks"; }  // LevelDB
};

// Suffix of a live directory that could not be read completely: it is kept for people and never
// ingested again. Directories whose names start with kHidden are being made or being deleted.
inline constexpr std::string_view kCorruptSuffix = ".corrupt";
inline constexpr char kHidden = '.';

// Makes the root and the directories that are asked for below it (0700). Fails with advice if the
// root is a file, not ours, not writable or on a full file system.
Status PrepareArchive(const ArchivePaths& paths);
// Whether we can only read the archive at `root`: it is another user's, or a read-only mount.
// kNotFound if there is no archive.
Result<bool> IsReadOnly(const ArchivePaths& paths);
// kPermission if we can only read it.
Status CheckNotReadOnly(const ArchivePaths& paths);

// Advice for an archive that fails with errno `error`: "; free some space or ...".
std::string ArchiveAdvice(int error);
// Whether `error` means that the disk or the quota is full.
bool WantsRoom(const Status& status);
// SystemError with that advice.
Status ArchiveError(const std::string& what, int error);

// Replaces the file in one step (0600): a reader sees the old text or the new one, also after the
// machine lost its power. A new file is there for readers at once, and on the disk after a sync.
Status WriteFileAtomically(const std::string& path, std::string_view text);
// Opens a regular file by open(2), which makes it with mode 0600. A FIFO or a device in its place
// would have us wait for its other end: then there is no descriptor, and errno is EINVAL. Links are
// not followed.
UniqueFd OpenRegular(const std::string& path, int flags);
// Whether there is anything of that name. An error says nothing of that.
Result<bool> Exists(const std::string& path);
// Whether something else than a regular file is there, behind links as well.
bool IsIrregular(const std::string& path);
// Reads at most `limit` bytes; refuses a file that is not a regular file.
Result<std::string> ReadSmallFile(const std::string& path, size_t limit);
// The same of an open file; `path` is for messages.
Result<std::string> ReadSmallFile(int fd, const std::string& path, size_t limit);
// Whether the file is there and could not be read: not missing, and not damaged.
bool IsUnread(const Status& read);
// Whether `path` is the name of the open file or directory: neither it nor what it lies in was
// renamed or deleted. An error says nothing of that.
Result<bool> IsAt(int fd, const std::string& path);

// Flushes a file, or the names in a directory, to the disk.
Status SyncPath(const std::string& path);
// Flushes everything directly in the directory, then its names.
Status SyncDirectory(const std::string& path);

// Names in a directory, sorted; none if it does not exist.
Result<std::vector<std::string>> ListNames(const std::string& path);
// The same for whoever can do without them: none if they cannot be read.
std::vector<std::string> NamesIn(const std::string& path);

// When a file's content last changed.
Nanos ChangeOf(const struct stat& file);
// When anything directly in the directory last changed; 0 if there is nothing.
Result<Nanos> NewestChange(const std::string& path);

// The time by the clock that the file system of a directory uses for its files, which may be that
// of a server. Makes a file there for a moment.
Result<Nanos> FileSystemTime(const std::string& directory);

std::string HostName();

// For a name that nobody else has.
Result<uint64_t> RandomNumber();

}  // namespace sonde
