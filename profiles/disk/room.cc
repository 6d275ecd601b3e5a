#include "profiles/disk/room.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "core/unique_fd.h"

namespace sonde {
namespace {

// The bytes of small files that LevelDB makes when it is opened.
constexpr uint64_t kSpare = 128u << 10;
constexpr uint64_t kPlenty = 4 * kReserve;
constexpr uint64_t kStatBlock = 512;

bool IsFilled(const struct stat& file) {
  return static_cast<uint64_t>(file.st_blocks) * kStatBlock >= kReserve;
}

}  // namespace

uint64_t BytesIn(const std::string& path, std::string_view part_of_name) {
  uint64_t bytes = 0;
  struct stat info;
  for (const std::string& name : NamesIn(path)) {
    if (name.find(part_of_name) == std::string::npos) continue;
    if (::stat((path + "/" + name).c_str(), &info) == 0) {
      bytes += static_cast<uint64_t>(info.st_size);
    }
  }
  return bytes;
}

uint64_t RoomToOpen(const ArchivePaths& archive) {
  return BytesIn(archive.db(), ".log") + BytesIn(archive.db(), "MANIFEST") + kSpare;
}

Status CheckRoom(const ArchivePaths& archive, uint64_t bytes) {
  const std::string what =
      fmt::format("find room for {} KiB in {}", (bytes >> 10) + 1, archive.root);
  struct statvfs room {};
  // Some file systems have no size.
  const bool known =
      ::statvfs(archive.root.c_str(), &room) == 0 && room.f_blocks > 0 && room.f_frsize > 0;
  if (known && room.f_bavail < bytes / room.f_frsize) {
    return ArchiveError(what, ENOSPC);
  }
  const std::string path = archive.root + "/" + kHidden + "room";
  if (IsIrregular(path)) ::unlink(path.c_str());
  const UniqueFd file = OpenRegular(path, O_WRONLY | O_CREAT);
  if (file.get() < 0) return ArchiveError(what, errno);
  // The file vanishes with the descriptor, whatever becomes of this process.
  ::unlink(path.c_str());
  const bool taken =
      ::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0;
  if (taken || (errno != ENOSPC && errno != EDQUOT)) return {};
  return ArchiveError(what, errno);
}

void FillReserve(const ArchivePaths& archive) {
  struct stat info;
  const bool known = ::lstat(archive.reserve().c_str(), &info) == 0;
  if (known && IsFilled(info)) return;
  if (!known && !CheckRoom(archive, kPlenty).ok()) return;
  const UniqueFd file = OpenRegular(archive.reserve(), O_WRONLY | O_CREAT);
  if (file.get() < 0 || ::fallocate(file.get(), 0, 0, static_cast<off_t>(kReserve)) == 0) return;
  if (!known) {
    ::unlink(archive.reserve().c_str());
  } else {
    static_cast<void>(::ftruncate(file.get(), 0));
  }
}

bool EmptyReserve(const ArchivePaths& archive) {
  const UniqueFd file = OpenRegular(archive.reserve(), O_WRONLY);
  struct stat info;
  return file.get() >= 0 && ::fstat(file.get(), &info) == 0 && info.st_blocks > 0 &&
         ::ftruncate(file.get(), 0) == 0;
}

}  // namespace sonde
